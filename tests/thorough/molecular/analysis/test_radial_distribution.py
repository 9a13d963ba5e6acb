"""Radial distribution function of an ideal gas and of crystals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.structures import lattices
from tests.molecular.analysis.test_radial_distribution import distribution
from tests.tables import every


@every(
    ("build", "repeats", "shells"),
    [
        (lattices.face_centered_cubic, (4, 4, 4), {1.0: 12, 2**0.5: 6, 3**0.5: 24, 2.0: 12, 5**0.5: 24}),
        (lattices.diamond, (3, 3, 3), {1.0: 4, (8 / 3) ** 0.5: 12, (11 / 3) ** 0.5: 12}),
        (lattices.triangular, (7, 4), {1.0: 6, 3**0.5: 6, 2.0: 6, 7**0.5: 12}),
        (lattices.square, (7, 7), {1.0: 4, 2**0.5: 4, 2.0: 4, 5**0.5: 8}),
    ],
)
def test_crystal_has_its_shells(x64, build, repeats, shells):
    lattice = build(repeats)
    count, dimension = lattice.position.shape
    reach, bins = float(max(shells)) * 1.02, 80
    volume = float(jnp.diagonal(lattice.cell).prod())
    for cell in (lattice.cell, jnp.diagonal(lattice.cell)):
        # Where the origin is makes no difference, nor how many cells away an atom is.
        moved = lattice.position + 0.123 + jnp.asarray(np.random.default_rng(1).integers(-2, 3, (count, 1))) * cell[0]
        found = np.asarray(distribution(moved if cell.ndim == 2 else lattice.position, cell, reach, bins))
        ball = np.pi if dimension == 2 else 4 / 3 * np.pi
        edges = reach * np.arange(bins + 1) / bins
        neighbors = found * count / volume * ball * np.diff(edges**dimension)
        expected = np.zeros(bins)
        for distance, number in shells.items():
            expected[int(distance / reach * bins)] += number
        # Whole numbers up to the round-off of their normalization.
        np.testing.assert_allclose(neighbors, expected, rtol=0, atol=1e-10)


@every("dimension", [2, 3])
def test_ideal_gas_has_one_less_a_particle_at_every_distance(x64, dimension):
    count, bins, copies, side = 101, 10, 200, 3.0
    position = jax.random.uniform(jax.random.key(0), (copies, count, dimension)) * side
    found = np.asarray(jax.vmap(lambda x: distribution(x, jnp.full(dimension, side), 1.5, bins))(position))
    # The spread of the mean over independent configurations, from their own scatter.
    error = found.std(axis=0, ddof=1) / np.sqrt(copies)
    # The innermost of ten shells in three dimensions holds 1/1000 of a ball of half the volume: 520 pairs in all, 4 %.
    assert error.max() < 0.06
    assert error[-1] < 0.004
    # Ten normal deviates: one in 300 draws has one beyond 3.6.
    assert np.abs((found.mean(axis=0) - (1 - 1 / count)) / error).max() < 3.6


@every("count", [2, 9])
def test_every_pair_is_counted_twice(x64, count):
    position = jax.random.uniform(jax.random.key(2), (count, 3))
    found = np.asarray(distribution(position, jnp.full(3, 10.0), 5.0, 1))
    # All within one shell: N (N - 1) ordered pairs.
    assert float(found[0]) == pytest.approx(1000 / count**2 * count * (count - 1) / (4 / 3 * np.pi * 125), rel=1e-14)
