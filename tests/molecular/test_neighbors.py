"""Neighbor lists against brute-force searches, and sums over all pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.neighbors import neighbor_list
from simkit.molecular.neighbors.cell_list import split_over_cores
from simkit.molecular.potentials import soft_sphere

PARTICLES = 60
SHAPE = np.array([[1.0, 0, 0], [0.4, 1.2, 0], [-0.3, 0.5, 1.4]])


def cell_of(kind, dimension, side):
    if kind == "free":
        return None
    shape = SHAPE[:dimension, :dimension]
    return jnp.asarray(side * (np.diag(shape) if kind == "orthorhombic" else shape))


def listed(neighbors):
    """Return how often each pair of particles is listed, (N, N)."""
    index, order = np.asarray(neighbors.index), np.asarray(neighbors.order)
    used = index != np.arange(index.shape[1])
    times = np.zeros((index.shape[1],) * 2, dtype=int)
    np.add.at(times, (np.broadcast_to(order, index.shape)[used], order[index[used]]), 1)
    return times


def near(position, cell, reach):
    """Return which pairs are within reach by looking at all of them and, in a cell, at all images around."""
    position = np.asarray(position)
    dimension = position.shape[1]
    apart = position[:, None] - position[None]
    images = np.zeros((1, dimension))
    if cell is not None:
        vectors = np.asarray(spaces.lattice_vectors(cell))
        apart = apart - np.round(apart @ np.linalg.inv(vectors)) @ vectors
        images = np.stack(np.meshgrid(*[[-1, 0, 1]] * dimension), -1).reshape(-1, dimension) @ vectors
    distance = np.linalg.norm(apart[:, :, None] + images, axis=-1).min(axis=-1)
    return (distance < reach) & ~np.eye(len(position), dtype=bool)


def check_list(dimension, kind):
    build = jax.jit(lambda position, cell: neighbor_list.build(position, cell, 1.0, PARTICLES))
    rng = np.random.default_rng(0)
    # From a cell just two reaches wide, where every bin borders on itself, to one that is nearly empty; the smallest
    # width of the triclinic cell is 0.77 of its side. Positions lie up to two cells outside.
    for side in (2.7, 3.3, 4.2, 5.5, 9.0, 40.0, 1e6):
        cell = cell_of(kind, dimension, side)
        position = jnp.asarray(rng.uniform(-2 * side, 3 * side, (PARTICLES, dimension)))
        if side == 9.0:
            # A dense cluster in an empty cell.
            position = position / 40
        found = build(position, cell)
        expected = near(position, cell, 1.0)
        np.testing.assert_array_equal(listed(found), expected)
        assert int(found.needed) == expected.sum(axis=1).max()
        assert not bool(found.overflowed)


def test_list_holds_every_pair_within_reach_exactly_once(x64):
    check_list(3, "triclinic")


def test_a_list_of_all_others_holds_every_pair_of_particles_that_are_present_once():
    position = np.random.default_rng(0).uniform(0, 9, (7, 3))
    position[4] = np.nan
    expected = ~np.eye(7, dtype=bool)
    expected[4] = expected[:, 4] = False
    np.testing.assert_array_equal(listed(neighbor_list.all_others(jnp.asarray(position), None)), expected)
    assert not listed(neighbor_list.all_others(jnp.zeros((1, 3)), None)).any()


def test_split_over_cores_returns_its_number_under_vmap_too():
    def total(x):
        return jax.lax.fori_loop(0, 5, lambda k, sums: sums + split_over_cores(k) * x, jnp.zeros_like(x))

    numbers = jnp.arange(6.0).reshape(3, 2)
    # 0 + 1 + 2 + 3 + 4, exact in binary.
    np.testing.assert_array_equal(jax.jit(jax.vmap(total))(numbers), 10 * numbers)


def test_an_exponent_without_finite_stiffness_is_refused():
    for exponent in (1.5, float("nan")):
        with pytest.raises(UserError, match=r"below its lower bound 2|is not a finite number"):
            soft_sphere(exponent)
