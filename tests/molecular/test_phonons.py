"""Phonons of chains with known dispersion, the sum rule, derivatives, and supercells that are too small."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import interactions
from simkit.molecular.phonons import density_of_states, mesh, path, phonons
from simkit.molecular.potentials import lennard_jones

REPEATS = (6, 1)


def springs(x, cell, p):
    """Springs along a chain on x, at rest at the lattice sites, and weak ones across it."""
    ahead = jnp.roll(x, -1, axis=0).at[-1, 0].add(cell[0, 0]) - x
    stretch = ahead[:, 0] - cell[0, 0] / len(x)
    return jnp.sum(p["along"] * stretch**2 + p["across"] * ahead[:, 1] ** 2) / 2


def chain(count, wave_vectors, params, mass):
    """Return the phonons of a chain of unit spacing with this number of atoms in its unit cell."""
    position = jnp.stack([jnp.arange(count) * 1.0, jnp.zeros(count)], axis=1)
    cell = jnp.diag(jnp.asarray([count * 1.0, 5.0]))
    energy = interactions.user_energy(springs)
    return phonons(energy, position, cell, params, wave_vectors, repeats=REPEATS, mass=mass)


def compare(found, expected):
    np.testing.assert_allclose(found[1:], expected[1:], atol=1e-10)
    np.testing.assert_allclose(found[0] ** 2, expected[0] ** 2, atol=1e-14)


PARAMS = {"along": 4.0, "across": 0.25}


def test_chains_have_the_dispersion_of_their_closed_forms(x64):
    # At the zone center frequencies are roots of round-off: squares are compared there.
    q = jnp.linspace(0, jnp.pi, 13)
    vectors = jnp.stack([q, 0 * q], axis=1)
    found = jax.jit(lambda: chain(1, vectors, PARAMS, 1.5).frequency)()
    # The wave across the chain is the softer one.
    expected = [2 * np.sqrt(k / 1.5) * np.abs(np.sin(q / 2)) for k in (0.25, 4.0)]
    compare(found, np.stack(expected, axis=1))

    masses = jnp.asarray([1.0, 3.0])
    found = jax.jit(lambda: chain(2, vectors / 2, PARAMS, masses).frequency)()
    total = np.sum(1 / masses)
    root = np.sqrt(total**2 - 4 * np.sin(q / 2) ** 2 / np.prod(masses))
    branches = [np.sqrt(np.abs(k * (total + sign * root))) for k in (0.25, 4.0) for sign in (-1, 1)]
    compare(found, np.sort(np.stack(branches, axis=1), axis=1))


def test_frequencies_differentiate_by_springs_masses_and_wave_vectors(x64):
    masses, q = jnp.asarray([1.0, 3.0]), jnp.asarray([[0.7, 0.3]])

    def frequency(params, masses, q):
        return chain(2, q, params, masses).frequency[0]

    at, step = (PARAMS, masses, q), 1e-6
    forward, reverse = (jax.jit(derive(frequency, (0, 1, 2)))(*at) for derive in (jax.jacfwd, jax.jacrev))
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-10), forward, reverse)
    value = jax.jit(frequency)
    moved = [value({**PARAMS, "along": 4 + sign * step}, masses, q) for sign in (1, -1)]
    np.testing.assert_allclose(forward[0]["along"], (moved[0] - moved[1]) / (2 * step), atol=1e-6)
    moved = [value(PARAMS, masses, q.at[0, 0].add(sign * step)) for sign in (1, -1)]
    np.testing.assert_allclose(forward[2][:, 0, 0], (moved[0] - moved[1]) / (2 * step), atol=1e-6)


def test_density_of_states_counts_the_branches_and_the_path_ends_at_its_corners(x64):
    cell = jnp.diag(jnp.asarray([2.0, 5.0]))
    frequency = chain(2, mesh(cell, (20, 1)), PARAMS, jnp.asarray([1.0, 3.0])).frequency
    at = jnp.linspace(-1, 6, 701)
    assert float(density_of_states(frequency, at, 0.1).sum() * 0.01) == pytest.approx(4, rel=1e-3)
    vectors, along = path(cell, [[0, 0], [0.5, 0], [0.5, 0.5]], points=3)
    np.testing.assert_allclose(vectors[::3], np.pi * np.asarray([[0, 0], [0.5, 0], [0.5, 0.2]]), atol=1e-12)
    np.testing.assert_allclose(along[::3], np.pi * np.asarray([0, 0.5, 0.7]))


def far_springs(x, cell, p):
    """Springs between all particles three sites apart, half the supercell of six."""
    ahead = jnp.roll(x, -3, axis=0).at[-3:, 0].add(cell[0, 0]) - x - jnp.asarray([3.0, 0.0])
    return springs(x, cell, p) + jnp.sum(ahead**2) / 2


def test_supercells_that_are_too_small_are_nan_except_at_their_own_wave_vectors(x64):
    vectors = jnp.asarray([[0.5, 0.0], [2 * np.pi / 6, 0.0]])
    cell = jnp.diag(jnp.asarray([1.0, 5.0]))
    energy = interactions.user_energy(far_springs)
    found = phonons(energy, jnp.zeros((1, 2)), cell, PARAMS, vectors, repeats=REPEATS).frequency
    assert np.isnan(found[0]).all()
    # 4 along sin(q / 2)^2 + 4 sin(3 q / 2)^2 at q = pi / 3.
    np.testing.assert_allclose(found[1], np.sqrt([4.25, 8.0]), rtol=1e-12)
    with pytest.raises(UserError, match="repeats has shape"):
        phonons(energy, jnp.zeros((1, 2)), cell, PARAMS, vectors, repeats=(6, 1, 1))


def test_a_supercell_narrower_than_twice_the_cutoff_of_pairs_has_nan(x64):
    pairs = interactions.pair_interaction(lennard_jones(), cutoff=1.2)
    q, p = jnp.asarray([[0.0, 0.0], [np.pi, 0.0]]), {"epsilon": 1.0, "sigma": 1.0}
    for count, is_cut in ((2, True), (3, False)):
        traced = jax.jit(lambda cell, n=(count, count): phonons(pairs, jnp.zeros((1, 2)), cell, p, q, repeats=n))
        frequency = traced(jnp.eye(2)).frequency
        assert bool(jnp.isnan(frequency).all()) == is_cut
        assert bool(jnp.isfinite(frequency).all()) != is_cut
