"""Neighbors of all particles at once from a table of all pairs, for small systems where loops are slow."""

import jax
import jax.numpy as jnp

from simkit.core.whole_arrays import prefers_whole_arrays
from simkit.molecular.neighbors.cell_list import CellList
from simkit.molecular.spaces import Components, Space

# Particles of which a table of pairs is still faster than a loop over candidates.
MOST_PARTICLES = 1024


def is_worth_a_table(count: int) -> bool:
    """Return whether all pairs of ``count`` particles are tested at once, see `prefers_whole_arrays`."""
    return count <= MOST_PARTICLES and prefers_whole_arrays()


def columns_from_table(
    cells: CellList, position: Components, space: Space, reach: jax.Array, capacity: int, tested: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the neighbor index (K, N) and the most neighbors of a particle, in the order of the runs of candidates.

    Args:
        cells: runs of candidates.
        position: in the order of the slots, one array (N,) per component.
        space: the geometry.
        reach: scalar, length.
        capacity: K.
        tested: int32, (R,); how many candidates of each run count.
    """
    runs, count = cells.first.shape
    slots = jnp.arange(count, dtype=jnp.int32)
    apart = space.nearest_image(tuple(x[:, None] - x for x in position))
    is_near = (sum(d * d for d in apart) < reach * reach) & (slots[:, None] != slots)
    # Each pair is in one run at most, and those that come first have the highest rank; 0 is for no neighbors. Sums of
    # products, since onnxruntime selects in three passes.
    rank = jnp.zeros((count, count), jnp.int32)
    for run in range(runs):
        first, row_end, row_length = (f[run][:, None] for f in (cells.first, cells.row_end, cells.row_length))
        length = jnp.minimum(cells.length[run], tested[run])[:, None]
        k = slots - first
        k = k + (k < 0) * row_length
        is_candidate = (slots >= row_end - row_length) & (slots < row_end) & (k < length)
        rank = rank + is_candidate * ((runs - run) * count - k)
    rank = is_near * rank
    needed = (rank > 0).astype(jnp.int32).sum(axis=1, dtype=jnp.int32).max()
    highest, other = jax.lax.top_k(rank, min(capacity, count))
    index = jnp.where(highest > 0, other, slots[:, None]).T
    unused = jnp.broadcast_to(slots, (capacity - len(index), count))
    return jnp.concatenate([index, unused]), needed
