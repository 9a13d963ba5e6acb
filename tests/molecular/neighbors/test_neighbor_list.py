"""Neighbor lists against brute-force searches, with moving particles and deforming cells."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.molecular import spaces
from simkit.molecular.neighbors import neighbor_list

PARTICLES = 60
KINDS = ["free", "orthorhombic", "triclinic"]
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


def check_moving(kind):
    rng = np.random.default_rng(3)
    position, cell, cutoff = rng.uniform(0, 5, (PARTICLES, 2)), cell_of(kind, 2, 5.0), 1.0
    refresh = jax.jit(lambda n, x, c: neighbor_list.refresh(n, x, c, cutoff, 1.3))
    found = jax.jit(lambda x, c: neighbor_list.build(x, c, 1.3, PARTICLES))(jnp.asarray(position), cell)
    for _ in range(60):
        position = position + rng.normal(0, 0.015, position.shape)
        if cell is not None:
            strain = rng.normal(0, 0.002, (2, 2)) * (np.eye(2) if cell.ndim == 1 else 1)
            position = position + position @ strain
            cell = cell + (jnp.diag(jnp.asarray(strain)) * cell if cell.ndim == 1 else cell @ jnp.asarray(strain))
        found = refresh(found, jnp.asarray(position), cell)
        within = near(position, cell, cutoff)
        assert np.all(listed(found)[within] == 1)
    # After n steps of a random walk the furthest of 60 particles has gone about 0.045 sqrt(n); half the skin, 0.15,
    # takes some eleven steps, fewer where the cell deforms.
    assert 3 < int(found.builds) < 30
