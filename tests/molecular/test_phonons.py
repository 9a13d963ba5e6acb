"""Phonons of chains with known dispersion, the sum rule, derivatives, and supercells that are too small."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import interactions
from simkit.molecular.phonons import phonons

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
