"""Phonons of chains with known dispersion, the sum rule, derivatives, and supercells that are too small."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import interactions
from simkit.molecular.phonons import density_of_states, mesh, path, phonons
from simkit.molecular.potentials import lennard_jones
from tests.molecular.test_phonons import PARAMS, chain


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


def test_a_supercell_narrower_than_twice_the_cutoff_of_pairs_has_nan(x64):
    pairs = interactions.pair_interaction(lennard_jones(), cutoff=1.2)
    q, p = jnp.asarray([[0.0, 0.0], [np.pi, 0.0]]), {"epsilon": 1.0, "sigma": 1.0}
    for count, is_cut in ((2, True), (3, False)):
        traced = jax.jit(lambda cell, n=(count, count): phonons(pairs, jnp.zeros((1, 2)), cell, p, q, repeats=n))
        frequency = traced(jnp.eye(2)).frequency
        assert bool(jnp.isnan(frequency).all()) == is_cut
        assert bool(jnp.isfinite(frequency).all()) != is_cut
