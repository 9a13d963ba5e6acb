"""Neighbor lists against brute-force searches, with moving particles and deforming cells."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.neighbors import neighbor_list
from tests.molecular.neighbors.test_neighbor_list import (
    KINDS,
    PARTICLES,
    cell_of,
    check_list,
    check_moving,
    listed,
    near,
)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_lists_of_a_few_particles_hold_every_pair(x64, count):
    position = 0.5 * jnp.arange(count, dtype=float)[:, None] * jnp.ones(3)
    for cell in (None, jnp.full(3, 2.5)):
        found = neighbor_list.build(position, cell, 1.0, 4)
        np.testing.assert_array_equal(listed(found), near(position, cell, 1.0))


@pytest.mark.parametrize("kind", KINDS)
def test_coinciding_particles_are_neighbors_and_no_particle_is_its_own(x64, kind):
    found = neighbor_list.build(jnp.zeros((9, 2)), cell_of(kind, 2, 5.0), 1.0, 8)
    np.testing.assert_array_equal(listed(found), 1 - np.eye(9, dtype=int))


def test_moves_by_lattice_vectors_or_with_the_cell_do_not_rebuild_the_list(x64):
    rng = np.random.default_rng(4)
    cell = cell_of("triclinic", 3, 5.0)
    position = jnp.asarray(rng.uniform(0, 5, (PARTICLES, 3)))
    found = neighbor_list.build(position, cell, 1.2, PARTICLES)
    jumped = position + jnp.asarray(rng.integers(-3, 4, position.shape), float) @ cell
    assert int(neighbor_list.refresh(found, jumped, cell, 1.0, 1.2).builds) == 1
    # A strain of 0.03 |F - 1| = 0.052 shrinks the reach of 1.2 by 0.06, less than the skin of 0.2.
    assert int(neighbor_list.refresh(found, position * 1.03, cell * 1.03, 1.0, 1.2).builds) == 1
    assert int(neighbor_list.refresh(found, position * 0.88, cell * 0.88, 1.0, 1.2).builds) == 2
    assert int(neighbor_list.refresh(found, position, cell, 1.19999, 1.3).builds) == 1
    # A cut-off that outgrows the reach.
    assert int(neighbor_list.refresh(found, position, cell, 1.25, 1.3).builds) == 2


def test_two_particles_may_each_move_by_half_the_skin(x64):
    position = jnp.array([[0.0, 0.0], [1.25, 0.0]])
    found = neighbor_list.build(position, None, 1.2, 2)
    closer = position + jnp.array([[0.13, 0.0], [-0.13, 0.0]])
    assert int(jnp.sum(listed(found))) == 0
    assert int(jnp.sum(listed(neighbor_list.refresh(found, closer, None, 1.0, 1.2)))) == 2


def test_overflow_is_detected_and_stays_set(x64):
    crowded = jnp.asarray(np.random.default_rng(5).uniform(0, 1, (PARTICLES, 2)))
    found = neighbor_list.build(crowded, None, 1.2, 8)
    assert bool(found.overflowed)
    assert int(found.needed) == near(crowded, None, 1.2).sum(axis=1).max()
    later = neighbor_list.refresh(found, 100 * crowded, None, 1.0, 1.2)
    assert int(later.builds) == 2
    assert bool(later.overflowed)
    room = later.enlarged().capacity
    assert room >= int(found.needed)
    assert not bool(neighbor_list.build(crowded, None, 1.2, room).overflowed)


def test_too_many_candidates_count_as_overflow(x64):
    # 1200 particles in one bin, none within reach of another: 38 words of 32 candidates, 32 are kept at most.
    x, y = np.meshgrid(np.arange(40), np.arange(30))
    position = jnp.asarray(np.stack([x, y], -1).reshape(-1, 2) * 1.0)
    cell = jnp.array([40.0, 30.0])
    coarse = neighbor_list.build(position, cell, 14.9, 8)
    assert bool(coarse.overflowed)
    assert not bool(neighbor_list.build(position, cell, 0.9, 8).overflowed)


def test_a_list_of_larger_capacity_is_the_same_list(x64):
    rng = np.random.default_rng(6)
    position = jnp.asarray(rng.uniform(0, 5, (PARTICLES, 2)))
    small, large = (neighbor_list.build(position, None, 1.2, room) for room in (16, 24))
    widened = small.resized(24)
    jax.tree.map(np.testing.assert_array_equal, widened, large)
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), small).resized(24)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[1], b), batch, large)


def walks(members):
    """Return the positions of members that move at different speeds, (T, B, N, 2)."""
    rng = np.random.default_rng(7)
    start = rng.uniform(0, 5, (members, PARTICLES, 2))
    steps = rng.normal(0, 1, (12, members, PARTICLES, 2)) * np.geomspace(1e-3, 0.1, members)[:, None, None]
    return jnp.asarray(start + np.cumsum(steps, axis=0))


def follow(path, cell):
    """Return the list at the end of a path (T, N, 2), refreshed all along."""
    found = neighbor_list.build(path[0], cell, 1.3, PARTICLES)
    return jax.lax.scan(lambda n, x: (neighbor_list.refresh(n, x, cell, 1.0, 1.3), None), found, path)[0]


def test_lists_of_a_batch_equal_single_lists(x64):
    paths = jnp.moveaxis(walks(4), 1, 0)
    cells = 5.0 * jnp.array([[1.0, 1.0], [1.1, 0.9], [1.2, 1.0], [1.0, 1.3]])
    batch = jax.jit(jax.vmap(follow))(paths, cells)
    alone = [jax.jit(follow)(path, cell) for path, cell in zip(paths, cells, strict=True)]
    jax.tree.map(lambda b, *a: np.testing.assert_array_equal(b, np.stack(a)), batch, *alone)
    # Each at its own pace: the slowest not once more, the fastest nearly every step.
    assert int(batch.builds[0]) == 1
    assert int(batch.builds[-1]) > 8
    nested = jax.jit(jax.vmap(jax.vmap(follow, in_axes=(0, None)), in_axes=(0, 0)))(
        paths.reshape(2, 2, *paths.shape[1:]), cells[:2]
    )
    expected = jax.jit(follow)(paths[3], cells[1])
    jax.tree.map(lambda n, e: np.testing.assert_array_equal(n[1, 1], e), nested, expected)


def test_a_batched_refresh_exports_and_reloads(x64):
    paths, cell = jnp.moveaxis(walks(3), 1, 0), jnp.array([5.0, 5.0])

    def builds(paths):
        return jax.vmap(follow, in_axes=(0, None))(paths, cell).builds

    exported = jax.export.export(jax.jit(builds), platforms=["cpu", "cuda"])(paths)
    again = jax.export.deserialize(exported.serialize())
    np.testing.assert_array_equal(again.call(paths), jax.jit(builds)(paths))


def test_simulations_of_different_sizes_run_in_one_process(x64):
    rng = np.random.default_rng(8)
    build = jax.jit(lambda position, cell: neighbor_list.build(position, cell, 1.0, 24))
    for count, side in ((30, 4.0), (50, 6.0), (30, 7.0)):
        position, cell = jnp.asarray(rng.uniform(0, side, (count, 2))), jnp.full(2, side)
        np.testing.assert_array_equal(listed(build(position, cell)), near(position, cell, 1.0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", [2, 3])
def test_list_holds_every_pair_within_reach_exactly_once(x64, dimension, kind):
    check_list(dimension, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_no_pair_is_missed_while_particles_move_and_the_cell_deforms(x64, kind):
    check_moving(kind)


def test_no_pair_is_missed_while_particles_move_and_the_cell_deforms_in_the_first_cases(x64):
    check_moving("triclinic")
