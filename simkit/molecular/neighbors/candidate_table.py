"""Neighbor search by one table of candidate pairs, for small systems on devices where loops are slow."""

import jax
import jax.numpy as jnp

from simkit.core.whole_arrays import prefers_whole_arrays
from simkit.molecular.neighbors.cell_list import CellList
from simkit.molecular.spaces import Components, Space

# Number of particles up to which a table of pairs is faster than a loop over candidates.
MOST_PARTICLES = 1024
# Candidates per run in the narrow table. In onnxruntime 20 steps of 500 disks, 18 of which rebuild the list, take 43 ms
# with it, and 120 ms with a table of all pairs.
WIDTH = 32


def is_worth_a_table(count: int) -> bool:
    """Return whether a table is faster for ``count`` particles, see `simkit.core.whole_arrays`."""
    return count <= MOST_PARTICLES and prefers_whole_arrays()


def columns_from_table(
    cells: CellList, position: Components, space: Space, reach: jax.Array, capacity: int, tested: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the neighbor index, (K, N), in the order of the candidates, and the largest number of neighbors.

    Args:
        cells: runs of candidates.
        position: in the order of the slots, one array (N,) per component.
        space: the geometry.
        reach: scalar, length.
        capacity: K.
        tested: int32, (R,); number of candidates of each run that are tested.
    """
    runs, count = cells.first.shape

    def narrow() -> tuple[jax.Array, jax.Array]:
        return _from_runs(cells, position, space, reach, capacity, tested)

    def wide() -> tuple[jax.Array, jax.Array]:
        return _from_all_pairs(cells, position, space, reach, capacity, tested)

    if runs * WIDTH >= count:
        return wide()
    return jax.lax.cond(cells.length.max() <= WIDTH, narrow, wide)


def _from_runs(
    cells: CellList, position: Components, space: Space, reach: jax.Array, capacity: int, tested: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the result of `columns_from_table` from the candidates of each particle, at most `WIDTH` per run."""
    runs, count = cells.first.shape
    k = jnp.arange(WIDTH, dtype=jnp.int32)
    parts = []
    for run in range(runs):
        first, row_end, row_length = (f[run][:, None] for f in (cells.first, cells.row_end, cells.row_length))
        slot = first + k
        parts.append(slot - (slot >= row_end) * row_length)
    candidate = jnp.concatenate(parts, axis=1)
    length = jnp.minimum(cells.length, tested[:, None]).T[:, :, None]
    is_candidate = (k < length).reshape(count, runs * WIDTH)
    apart = space.nearest_image(tuple(x.at[candidate].get(mode="clip") - x[:, None] for x in position))
    own = jnp.arange(count, dtype=jnp.int32)[:, None]
    is_near = (sum(d * d for d in apart) < reach * reach) & (candidate != own) & is_candidate
    # The first candidate has the highest rank; rank 0 is no neighbor.
    rank = is_near * jnp.arange(runs * WIDTH, 0, -1, dtype=jnp.int32)
    highest, column = jax.lax.top_k(rank, min(capacity, runs * WIDTH))
    other = candidate.reshape(-1).at[own * (runs * WIDTH) + column].get(mode="promise_in_bounds")
    return _columns(highest, other, is_near, capacity)


def _from_all_pairs(
    cells: CellList, position: Components, space: Space, reach: jax.Array, capacity: int, tested: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the result of `columns_from_table` from all pairs of particles."""
    runs, count = cells.first.shape
    slots = jnp.arange(count, dtype=jnp.int32)
    apart = space.nearest_image(tuple(x[:, None] - x for x in position))
    is_near = (sum(d * d for d in apart) < reach * reach) & (slots[:, None] != slots)
    # Each pair is in one run at most; the first candidate has the highest rank, rank 0 is no neighbor. Sums of products
    # instead of selections, for which onnxruntime takes three passes.
    rank = jnp.zeros((count, count), jnp.int32)
    for run in range(runs):
        first, row_end, row_length = (f[run][:, None] for f in (cells.first, cells.row_end, cells.row_length))
        length = jnp.minimum(cells.length[run], tested[run])[:, None]
        k = slots - first
        k = k + (k < 0) * row_length
        is_candidate = (slots >= row_end - row_length) & (slots < row_end) & (k < length)
        rank = rank + is_candidate * ((runs - run) * count - k)
    rank = is_near * rank
    highest, other = jax.lax.top_k(rank, min(capacity, count))
    return _columns(highest, other, rank > 0, capacity)


def _columns(highest: jax.Array, other: jax.Array, is_near: jax.Array, capacity: int) -> tuple[jax.Array, jax.Array]:
    """Return the neighbor index, (K, N), unused entries the particle itself, and the largest number of neighbors."""
    count = len(highest)
    slots = jnp.arange(count, dtype=jnp.int32)
    needed = is_near.astype(jnp.int32).sum(axis=1, dtype=jnp.int32).max()
    index = jnp.where(highest > 0, other, slots[:, None]).T
    unused = jnp.broadcast_to(slots, (capacity - len(index), count))
    return jnp.concatenate([index, unused]), needed
