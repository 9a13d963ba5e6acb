"""Cell lists: particles in bins with runs of candidates; loops split over cores."""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once
from simkit.molecular.spaces import Components, Space

# Smallest arrays, in bytes, that are split: waking another core takes as long as computing smaller ones.
WORTH_SPLITTING = 500_000


def split_over_cores(number: jax.Array) -> jax.Array:
    """Return ``number``; a loop whose body passes a number through this function uses all cores of a CPU.

    On a CPU XLA compiles a loop of plain arithmetic into one function on one core, however long its arrays are. A loop
    that contains a sort is not fused, and each of its operations is split over the cores. So this function sorts two
    equal numbers.

    Args:
        number: scalar that the loop depends on, since the compiler removes unused code.
    """
    return jax.lax.sort(jnp.stack([number, number]))[0]


def rows_of(columns: Components) -> jax.Array:
    """Return the components of vectors side by side, (N, d) or (N, 4) for three: one row is read at once."""
    zero = [jnp.zeros_like(columns[0])] if len(columns) == 3 else []
    return jnp.stack([*columns, *zero], axis=1)


def components_of(rows: jax.Array, dimension: int) -> Components:
    """Return one array per component of the rows of `rows_of`, (..., 2 or 4)."""
    return tuple(rows[..., axis] for axis in range(dimension))


# Particles up to which an accelerator computes all rows of an array at once, and the number of its parts above that.
MOST_AT_ONCE, PARTS = 256_000, 3


def parts(rows: int, count: int) -> list[slice]:
    """Return the parts of the rows of an array (rows, N) that an accelerator computes at once, for N particles."""
    size = rows if count <= MOST_AT_ONCE else -(-rows // PARTS)
    return [slice(first, first + size) for first in range(0, rows, size)]


# Bins per reach along the first axis, along which bins are contiguous in memory: finer bins shorten the runs.
FINENESS = 4
# Relative increase of the reach: far more than the round-off of binning, far less than any skin.
ROUNDING = 1e-5


class CellList(NamedTuple):
    """Candidate neighbors of every particle, as runs of slots; a slot is an index in the sorted order.

    Run r of the particle in slot i holds the slots ``first[r, i] + k`` for ``k < length[r, i]``, less ``row_length``
    from ``row_end`` on, since a row of bins is periodic. Every particle within reach is in exactly one run.

    Attributes:
        order: index of the particle in each slot, int32, (N,).
        first: first slot of each run, int32, (R, N), with R = 3^(d-1).
        length: number of slots of each run, int32, (R, N).
        row_end: one past the last slot of the row of bins, int32, (R, N).
        row_length: number of slots of the row of bins, int32, (R, N).
    """

    order: jax.Array
    first: jax.Array
    length: jax.Array
    row_end: jax.Array
    row_length: jax.Array


def cell_list(position: Components, space: Space, reach: jax.Array) -> CellList:
    """Sort particles into bins and return the runs of slots of all particles within reach.

    The number of bins depends on the cell, which may be traced; only an upper bound, about twice the number of
    particles, is static. In free space the grid spans the particles. Boxes may have one or two bins per side.

    Args:
        position: one array (N,) per component; NaN of absent particles.
        space: the geometry.
        reach: scalar, length.
    """
    count, dimension = position[0].shape[0], len(position)
    reach = reach * (1 + ROUNDING)
    if space.is_periodic:
        place = tuple(s - jnp.floor(s) for s in space.fractional(position))
        extent = tuple(space.widths[axis] for axis in range(dimension))
    else:
        low = tuple(jnp.nanmin(x) for x in position)
        extent = tuple(jnp.maximum(jnp.nanmax(x) - x0, reach) for x, x0 in zip(position, low, strict=True))
        place = tuple((x - x0) / width for x, x0, width in zip(position, low, extent, strict=True))
    # Absent particles are nobody's neighbors; in one bin they would lengthen its runs.
    along = jnp.arange(count, dtype=reach.dtype) / count
    place = tuple(jnp.where(jnp.isnan(s), along, s) for s in place)

    most = 2 * count + 64
    # Bins per axis, and per reach along the first of the grid as built, which may be coarser than `FINENESS`. Without
    # the barrier each use computes these integers anew, and may round another way.
    shape = _grid_shape(extent, reach, most)
    span = jnp.ceil(reach * shape[0] / extent[0]).astype(jnp.int32)
    shape, span = computed_once((shape, span))
    bins = tuple(jnp.clip(jnp.floor(s * n).astype(jnp.int32), 0, n - 1) for s, n in zip(place, shape, strict=True))
    number = bins[-1]
    for axis in range(dimension - 2, -1, -1):
        number = number * shape[axis] + bins[axis]
    number, order = jax.lax.sort((number, jnp.arange(count, dtype=jnp.int32)), num_keys=1)
    filled = jnp.zeros(most + 1, jnp.int32).at[number + 1].add(1, mode="promise_in_bounds")
    start = jnp.cumsum(filled, dtype=jnp.int32)

    x, rest = number % shape[0], number // shape[0]
    across = []
    for axis in range(1, dimension):
        across.append(rest % shape[axis])
        rest = rest // shape[axis]
    offsets = np.array(list(itertools.product((0, -1, 1), repeat=dimension - 1)), np.int32)
    return CellList(order, *_runs(start, x, across, shape, span, offsets, space.is_periodic))


def _grid_shape(extent: tuple[jax.Array, ...], reach: jax.Array, most: int) -> tuple[jax.Array, ...]:
    """Return the bins per axis, at most ``most`` in all: as wide as the reach, along the first axis a fraction."""
    # Along an infinite side all particles are in one bin.
    finite = [jnp.where(jnp.isinf(width), 0, width) for width in extent]
    finest = [jnp.clip(width / reach, 1, most) for width in finite]
    finest[0] = jnp.clip(FINENESS * finite[0] / reach, 1, most)
    product = finest[0]
    for n in finest[1:]:
        product = product * n
    coarser = jnp.minimum((most / product) ** (1 / len(extent)), 1)
    room, shape = jnp.int32(most), []
    for n in reversed(finest):
        # Rounding up to one bin along another axis may leave fewer bins than the common factor assumes.
        bins = jnp.minimum(jnp.maximum(jnp.floor(n * coarser), 1).astype(jnp.int32), room)
        room = room // bins
        shape.append(bins)
    return tuple(reversed(shape))


def _runs(
    start: jax.Array,
    x: jax.Array,
    across: list[jax.Array],
    shape: tuple[jax.Array, ...],
    span: jax.Array,
    offsets: np.ndarray,
    is_periodic: bool,
) -> tuple[jax.Array, ...]:
    """Return (first, length, row_end, row_length), (R, N) each, of the rows of bins at ``offsets``, (R, d - 1)."""
    row, exists = jnp.zeros_like(x), jnp.bool_(True)
    for axis in reversed(range(len(across))):
        n, offset = shape[axis + 1], offsets[:, axis, None]
        moved = across[axis] + offset
        if is_periodic:
            # With two periodic bins the neighbors on both sides are the same bin; with one bin there are none.
            exists = exists & (n > np.select([offset == 0, offset == 1], [0, 1], 2))
            moved = moved % n
        else:
            exists = exists & (moved >= 0) & (moved < n)
            moved = jnp.clip(moved, 0, n - 1)
        row = row * n + moved
    row = jnp.broadcast_to(row, (len(offsets), len(x)))

    def first_slot(bin_in_row: jax.Array) -> jax.Array:
        return start.at[row * shape[0] + bin_in_row].get(mode="promise_in_bounds")

    row_first, row_end = first_slot(jnp.int32(0)), first_slot(shape[0])
    row_length = row_end - row_first
    if is_periodic:
        low, high = (x - span) % shape[0], (x + span) % shape[0]
        whole = 2 * span + 1 >= shape[0]
    else:
        low, high = jnp.maximum(x - span, 0), jnp.minimum(x + span, shape[0] - 1)
        whole = jnp.bool_(False)
    first, end = first_slot(low), first_slot(high + 1)
    length = end - first + jnp.where(low <= high, 0, row_length)
    first, length = jnp.where(whole, row_first, first), jnp.where(whole, row_length, length)
    return first, jnp.where(exists, length, 0), row_end, row_length
