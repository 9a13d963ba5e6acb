"""Verlet neighbor lists, built and refreshed inside compiled code."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.buffers import Buffer, larger_capacity
from simkit.core.formulation import by_device, precise_product
from simkit.core.pytrees import pytree
from simkit.core.simulation import Params
from simkit.core.tracing import kernel
from simkit.molecular import spaces
from simkit.molecular.neighbors.cell_list import (
    WORTH_SPLITTING,
    CellList,
    cell_list,
    components_of,
    parts,
    rows_of,
    split_over_cores,
)
from simkit.molecular.spaces import Cell, Components

# Candidates tested per iteration of the loop; the bits of a word are a multiple of it.
TESTS_PER_TURN = 8
BITS = 32


@pytree
class NeighborList(Buffer):
    """All pairs within the reach of the list, each listed at both particles.

    Particles are sorted by position; a slot is an index in the sorted order, and the list holds slots.

    Attributes:
        index: slots of the neighbors, int32, (K, N): column i for the particle in slot i; i itself in unused entries.
        order: index of the particle in each slot, int32, (N,).
        slot: slot of each particle, int32, (N,).
        reference: positions at which the list was built, (N, d).
        reference_cell: cell at which the list was built; ``None`` in free space.
        reach: scalar, length; every pair closer than this at the reference is listed.
        most: int32, largest number of neighbors of a particle in the list.
        needed: int32, largest number of neighbors of a particle since the start; above K, pairs are or were missing.
        builds: int32, number of times the list was built.
    """

    index: jax.Array
    order: jax.Array
    slot: jax.Array
    reference: jax.Array
    reference_cell: Cell
    reach: jax.Array
    most: jax.Array
    needed: jax.Array
    builds: jax.Array

    @property
    def capacity(self) -> int:
        """Number of neighbors per particle that the list can hold, K."""
        return self.index.shape[-2]

    def resized(self, capacity: int) -> Self:
        """Return the same list with a larger capacity; leading axes of members are kept.

        Args:
            capacity: the new K, at least the present one.
        """
        index = self.index
        slots = jnp.arange(index.shape[-1], dtype=index.dtype)
        slots = jnp.broadcast_to(slots, (*index.shape[:-2], capacity - self.capacity, index.shape[-1]))
        return dataclasses.replace(self, index=jnp.concatenate([index, slots], axis=-2))

    def enlarged(self) -> Self:
        """Return the list with the needed capacity, at most the number of particles."""
        capacity = larger_capacity(int(jnp.max(self.needed)), self.capacity)
        return self.resized(min(capacity, max(self.index.shape[-1], self.capacity + 1)))


class Excluded(NamedTuple):
    """Pairs of particles that do not interact, since they are bonded.

    Attributes:
        partners: of each particle of one cell, int32, (n, E); -1 in unused entries. Of more than n particles, those of
            a block of equal cells one after the other, particle i is an image of particle i mod n.
        within: length: images of a pair that are further apart are no bonded ones; ``None`` in one cell.
    """

    partners: jax.Array
    within: jax.Array | None

    def are(self, first: jax.Array, second: jax.Array, squared: Any) -> jax.Array:
        """Return which pairs are excluded.

        Args:
            first: index of one particle, int32.
            second: index of the other, int32.
            squared: squared distances, for images; ``None`` in one cell.
        """
        count = len(self.partners)
        first, second = (each if self.within is None else each % count for each in (first, second))
        partners = jnp.unstack(self.partners, axis=1)
        is_excluded = functools.reduce(
            jnp.logical_or, (each.at[first].get(mode="promise_in_bounds") == second for each in partners)
        )
        return is_excluded if self.within is None else is_excluded & (squared < self.within * self.within)


def partners_of(excluded: np.ndarray, count: int) -> np.ndarray:
    """Return the partners of each of n particles, int32, (n, E), -1 in unused entries.

    Args:
        excluded: pairs of particles, (K, 2).
        count: number of particles, n.
    """
    first, second = np.concatenate([excluded, excluded[:, ::-1]]).T
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    numbers = np.bincount(first, minlength=count)
    table = np.full((count, numbers.max(initial=0)), -1, np.int32)
    table[first, np.arange(len(first)) - np.repeat(np.cumsum(numbers) - numbers, numbers)] = second
    return table


@dataclasses.dataclass(frozen=True)
class Within:
    """Neighbors within a cut-off in cells at least twice as wide, for interactions that take nearest images only.

    Attributes:
        cutoff: ``params -> length``.
        skin: of the list beyond the cut-off, in units of the cut-off.
        capacity: neighbors per particle that the list can hold at first.
    """

    cutoff: Callable[[Params], jax.Array | float]
    skin: float
    capacity: int

    def prepare(self, position: jax.Array, cell: Cell, params: Params) -> NeighborList:
        """Return the neighbor list: of few particles all others, which need no search."""
        if len(position) - 1 <= self.capacity:
            return all_others(position, cell)
        return build(position, cell, self._reach(position, cell, params), self.capacity)

    def refresh(self, neighbors: NeighborList, position: jax.Array, cell: Cell, params: Params) -> NeighborList:
        """Return the neighbor list at new positions."""
        if len(position) - 1 <= neighbors.capacity:
            return all_others(position, cell)
        cutoff = jnp.asarray(self.cutoff(params), position.dtype)
        return refresh(neighbors, position, cell, cutoff, self._reach(position, cell, params))

    def fits(self, cell: Cell, params: Params) -> jax.Array:
        """Return whether a cell is wide enough; free space is."""
        if cell is None:
            return jnp.bool_(True)
        return 2 * self.cutoff(params) <= spaces.of_cell(cell, len(cell)).widths.min()

    def valid_or_nan(self, value: jax.Array, cell: Cell, params: Params, neighbors: NeighborList) -> jax.Array:
        """Return a value, or NaN in place of a wrong one: where the list overflowed, or the cell is too small."""
        return jnp.where(self.fits(cell, params) & ~neighbors.overflowed, value, jnp.nan)

    def _reach(self, position: jax.Array, cell: Cell, params: Params) -> jax.Array:
        far = jnp.asarray((1 + self.skin) * self.cutoff(params), position.dtype)
        # Rounding finds the nearest image only up to half the smallest width.
        return jnp.minimum(far, spaces.of_cell(cell, position.shape[1]).widths.min() / 2)


def all_others(position: jax.Array, cell: Cell) -> NeighborList:
    """List all other particles as the neighbors of every particle, of any distance, in the order of the particles.

    Args:
        position: as for `build`.
        cell: as for `build`.
    """
    position, cell = jax.lax.stop_gradient((position, cell))
    count = len(position)
    particles = jnp.arange(count, dtype=jnp.int32)
    others = (particles + jnp.arange(1, max(count, 2), dtype=jnp.int32)[:, None]) % count
    is_absent = jnp.isnan(position).any(axis=1)
    number = jnp.asarray(len(others), jnp.int32)
    return NeighborList(
        index=jnp.where(is_absent | is_absent[others], particles, others),
        order=particles,
        slot=particles,
        reference=position,
        reference_cell=cell,
        reach=jnp.asarray(jnp.inf, position.dtype),
        most=number,
        needed=number,
        builds=jnp.int32(1),
    )


def build(
    position: jax.Array, cell: Cell, reach: jax.Array, capacity: int, excluded: Excluded | None = None
) -> NeighborList:
    """List the neighbors of every particle.

    Args:
        position: length, (N, d); a particle whose position is NaN is absent: it has no neighbors and is none.
        cell: as for `simkit.molecular.spaces.of_cell`.
        reach: scalar, length: cut-off and skin.
        capacity: K, number of neighbors per particle that the list can hold.
        excluded: pairs that are left out; ``None`` for none. Their entries are unused, and count as needed.
    """
    position, cell, reach, excluded = jax.lax.stop_gradient((position, cell, reach, excluded))
    return _build(position, cell, jnp.asarray(reach, position.dtype), excluded, capacity)


def refresh(
    neighbors: NeighborList,
    position: jax.Array,
    cell: Cell,
    cutoff: jax.Array,
    reach: jax.Array,
    excluded: Excluded | None = None,
) -> Any:
    """Return a list of every pair within the cut-off at these positions, rebuilt only if the old one is stale.

    A pair that is not listed was at least ``reach`` apart. Since then the cell was deformed by F, and no particle has
    moved by more than u beyond that, so the pair is at least ``sigma_min(F) reach - 2 u`` apart, where
    ``sigma_min(F) >= 1 - |F - 1|``. The list is valid while that exceeds the cut-off.

    Under ``vmap`` the stale lists alone are rebuilt (on a CPU), or all if one is stale (elsewhere).

    Args:
        neighbors: from `build` or `refresh`.
        position: length, (N, d); may have been moved by whole lattice vectors.
        cell: as for `build`.
        cutoff: scalar, length.
        reach: scalar, length; of a rebuilt list.
        excluded: as for `build`.
    """
    arguments = jax.lax.stop_gradient((neighbors, position, cell, cutoff, reach, excluded))
    neighbors, position, cell, cutoff, reach, excluded = arguments
    kind = position.dtype
    return _refresh(neighbors, position, cell, jnp.asarray(cutoff, kind), jnp.asarray(reach, kind), excluded)


def to_slots(neighbors: NeighborList, array: jax.Array) -> jax.Array:
    """Return per-particle values in the order of the slots.

    Args:
        neighbors: the list.
        array: (N, ...).
    """
    return array.at[neighbors.order].get(mode="promise_in_bounds", unique_indices=True)


def to_particles(neighbors: NeighborList, array: jax.Array) -> jax.Array:
    """Return per-slot values in the order of the particles.

    Args:
        neighbors: the list.
        array: (N, ...).
    """
    return array.at[neighbors.slot].get(mode="promise_in_bounds", unique_indices=True)


def _stale(neighbors: NeighborList, position: jax.Array, cell: Cell, cutoff: jax.Array, *_: Any) -> jax.Array:
    dimension = position.shape[-1]
    reference, shrinkage = neighbors.reference, 1.0
    if cell is not None and neighbors.reference_cell is not None:
        change = spaces.deformation_between(neighbors.reference_cell, cell)
        reference = reference + precise_product(reference, change)
        shrinkage = 1 - jnp.sqrt(jnp.sum(change**2))
    # Absent particles do not move; one that leaves or comes back, from or to a number, makes the list stale.
    moved = jnp.where(jnp.isnan(reference) & jnp.isnan(position), 0, position - reference)
    moved = tuple(moved[:, axis] for axis in range(dimension))
    # A move by a whole lattice vector does not count.
    moved = spaces.of_cell(cell, dimension).nearest_image(moved)
    furthest = jnp.sqrt(jnp.max(sum(u * u for u in moved)))
    # Negated, so that the list is stale at NaN positions.
    return ~(2 * furthest < shrinkage * neighbors.reach - cutoff)


def _rebuilt(
    neighbors: NeighborList, position: jax.Array, cell: Cell, _: jax.Array, reach: jax.Array, excluded: Excluded | None
) -> NeighborList:
    fresh = _build(position, cell, reach, excluded, neighbors.index.shape[-2])
    return dataclasses.replace(fresh, needed=jnp.maximum(fresh.needed, neighbors.needed), builds=neighbors.builds + 1)


@jax.custom_batching.custom_vmap
def _refresh(neighbors: NeighborList, *where: Any) -> NeighborList:
    return jax.lax.cond(_stale(neighbors, *where), _rebuilt, lambda old, *_: old, neighbors, *where)


@jax.custom_batching.custom_vmap
def _refresh_members(neighbors: NeighborList, *where: Any) -> NeighborList:
    """Refresh many lists; ``lax.cond`` under ``vmap`` would rebuild all of them every time."""

    def one_by_one(*arguments: Any) -> NeighborList:
        return jax.lax.map(lambda member: _refresh(*member), arguments)

    def all_or_none(*arguments: Any) -> NeighborList:
        stale = jax.vmap(_stale)(*arguments).any()
        return jax.lax.cond(stale, jax.vmap(_rebuilt), lambda old, *_: old, *arguments)

    return by_device(neighbors, *where, cpu=one_by_one, accelerator=all_or_none)


@_refresh.def_vmap
def _(axis_size: int, in_batched: Any, *arguments: Any) -> tuple[NeighborList, Any]:
    result = _refresh_members(*_all_batched(axis_size, in_batched, arguments))
    return result, jax.tree.map(lambda _: True, result)


@_refresh_members.def_vmap
def _(axis_size: int, in_batched: Any, *arguments: Any) -> tuple[NeighborList, Any]:
    batched = _all_batched(axis_size, in_batched, arguments)
    flat = jax.tree.map(lambda leaf: leaf.reshape((-1, *leaf.shape[2:])), batched)
    result = _refresh_members(*flat)
    result = jax.tree.map(lambda leaf: leaf.reshape((axis_size, -1, *leaf.shape[1:])), result)
    return result, jax.tree.map(lambda _: True, result)


def _all_batched(axis_size: int, in_batched: Any, arguments: Any) -> Any:
    def batch(leaf: jax.Array, batched: bool) -> jax.Array:
        return leaf if batched else jnp.broadcast_to(leaf, (axis_size, *leaf.shape))

    return jax.tree.map(batch, arguments, tuple(in_batched))


@functools.partial(kernel, static="capacity")
def _build(position: jax.Array, cell: Cell, reach: jax.Array, excluded: Excluded | None, capacity: int) -> NeighborList:
    count, dimension = position.shape
    columns = tuple(position[:, axis] for axis in range(dimension))
    cells = cell_list(columns, spaces.of_cell(cell, dimension), reach)
    sorted_columns = tuple(x.at[cells.order].get(mode="promise_in_bounds") for x in columns)
    index, needed = by_device(
        cells,
        sorted_columns,
        cell,
        reach,
        cpu=functools.partial(_columns_in_loops, capacity=capacity),
        accelerator=functools.partial(_columns_at_once, capacity=capacity),
    )
    slots = jnp.arange(count, dtype=jnp.int32)
    if excluded is not None:
        squared = None
        if excluded.within is not None:
            others = (x - x.at[index].get(mode="promise_in_bounds") for x in sorted_columns)
            squared = sum(d * d for d in spaces.of_cell(cell, dimension).separation(tuple(others)))
        other = cells.order.at[index].get(mode="promise_in_bounds")
        index = jnp.where(excluded.are(cells.order, other, squared), slots, index)
    return NeighborList(
        index=index,
        order=cells.order,
        slot=jnp.zeros(count, jnp.int32).at[cells.order].set(slots, mode="promise_in_bounds", unique_indices=True),
        reference=position,
        reference_cell=cell,
        reach=reach,
        most=needed,
        needed=needed,
        builds=jnp.int32(1),
    )


class _Words(NamedTuple):
    """Layout of the candidates as bits: a word holds `BITS` candidates of one run, for each particle.

    Attributes:
        run: run of each word, int32, (W,).
        first_bit: place in its run of the first candidate of each word, int32, (W,).
        used: words that hold the candidates of all particles, int32; above W, some candidates are not tested.
    """

    run: jax.Array
    first_bit: jax.Array
    used: jax.Array

    def needed(self, counts: jax.Array, capacity: int) -> jax.Array:
        """Return the needed capacity, from the number of neighbors of each particle."""
        most = counts.max()
        # Where some candidates were not tested the number of neighbors is unknown.
        return jnp.where(self.used > len(self.run), jnp.maximum(most, capacity + 1), most)


def _words(cells: CellList, capacity: int) -> _Words:
    runs, count = cells.first.shape
    # Enough words for the candidates of ``capacity`` neighbors, and for all particles of a small system.
    most = max(runs * (-(-capacity // BITS) + 1), min(-(-count // BITS), BITS))
    words_per_run = (cells.length.max(axis=1) + BITS - 1) // BITS
    last = jnp.cumsum(words_per_run)
    numbers = jnp.arange(most, dtype=jnp.int32)
    run = jnp.minimum((numbers[:, None] >= last).sum(axis=1, dtype=jnp.int32), runs - 1)
    return _Words(run=run, first_bit=BITS * (numbers - (last - words_per_run)[run]), used=last[-1])


def _columns_at_once(
    cells: CellList, position: Components, cell: Cell, reach: jax.Array, capacity: int
) -> tuple[jax.Array, jax.Array]:
    """Return the result of `_columns_in_loops` by operations on whole arrays, without loops and conditions.

    All candidates are tested in one reduction to words; the k-th neighbor is then the k-th bit, in the first word up to
    which there are more than k.
    """
    space, layout = spaces.of_cell(cell, len(position)), _words(cells, capacity)
    most, count = len(layout.run), cells.first.shape[1]
    slots = jnp.arange(count, dtype=jnp.int32)
    first, length, row_end, row_length = (
        runs[layout.run] for runs in (cells.first, cells.length, cells.row_end, cells.row_length)
    )
    first = first + layout.first_bit[:, None]
    rows = rows_of(position)

    bits = jnp.arange(BITS, dtype=jnp.int32)[:, None]

    def tested(words: slice) -> jax.Array:
        """Return some of the words, (w, N), from arrays (w, BITS, N)."""
        other = first[words, None] + bits
        other = jnp.where(other >= row_end[words, None], other - row_length[words, None], other)
        is_candidate = layout.first_bit[words, None, None] + bits < length[words, None]
        other = jnp.where(is_candidate, other, slots)
        others = components_of(rows.at[other].get(mode="promise_in_bounds"), len(position))
        apart = space.separation(tuple(x - y for x, y in zip(position, others, strict=True)))
        is_near = (sum(d * d for d in apart) < reach * reach) & (other != slots)
        return jnp.sum(is_near.astype(jnp.uint32) << bits.astype(jnp.uint32), axis=1, dtype=jnp.uint32)

    words = jnp.concatenate([tested(part) for part in parts(most, count)])

    # (W, N): neighbors in all words up to each; then (K, N): the word of the k-th neighbor, and its rank there.
    found = jnp.cumsum(jax.lax.population_count(words).astype(jnp.int32), axis=0, dtype=jnp.int32)
    columns = jnp.arange(capacity, dtype=jnp.int32)[:, None]
    number = jnp.sum((found[:, None] <= columns).astype(jnp.int32), axis=0, dtype=jnp.int32)
    is_used, place = number < most, jnp.minimum(number, most - 1) * count + slots

    def of_word(table: jax.Array) -> jax.Array:
        return table.ravel().at[place].get(mode="promise_in_bounds")

    word = of_word(words)
    rank = columns - (of_word(found) - jax.lax.population_count(word).astype(jnp.int32))
    other = of_word(first) + _place_of_bit(word, rank)
    other = jnp.where(other >= of_word(row_end), other - of_word(row_length), other)
    return jnp.where(is_used, other, slots), layout.needed(found[-1], capacity)


def _place_of_bit(word: jax.Array, rank: jax.Array) -> jax.Array:
    """Return the place of the bit of a word before which ``rank`` others are set, int32, by bisection."""
    place = jnp.zeros_like(rank)
    for width in (16, 8, 4, 2, 1):
        below = (word >> place.astype(jnp.uint32)) & jnp.uint32((1 << width) - 1)
        set_below = jax.lax.population_count(below).astype(jnp.int32)
        is_above = rank >= set_below
        rank, place = jnp.where(is_above, rank - set_below, rank), jnp.where(is_above, place + width, place)
    return place


def _columns_in_loops(
    cells: CellList, position: Components, cell: Cell, reach: jax.Array, capacity: int
) -> tuple[jax.Array, jax.Array]:
    """Return the neighbor index, (K, N), and the needed capacity.

    Candidates are tested in two passes: the first stores one bit per candidate, packed into words; the second extracts
    the bits one by one, the k-th of every particle at once. Both write memory in sequence only.
    """
    space, layout = spaces.of_cell(cell, len(position)), _words(cells, capacity)
    run_of_word, first_bit, most_words = layout.run, layout.first_bit, len(layout.run)
    count = cells.first.shape[1]
    is_split = TESTS_PER_TURN * position[0].nbytes >= WORTH_SPLITTING
    slots = jnp.arange(count, dtype=jnp.int32)
    word_numbers = jnp.arange(most_words, dtype=jnp.int32)

    def test(word_number: jax.Array, words: jax.Array) -> jax.Array:
        run = run_of_word[word_number]
        first, length = cells.first[run], cells.length[run]
        row_end, row_length = cells.row_end[run], cells.row_length[run]
        turns = (jnp.minimum(length.max() - first_bit[word_number], BITS) + TESTS_PER_TURN - 1) // TESTS_PER_TURN

        def turn(number: jax.Array, word: jax.Array) -> jax.Array:
            number = split_over_cores(number) if is_split else number
            for bit in range(TESTS_PER_TURN):
                place = number * TESTS_PER_TURN + bit
                k = first_bit[word_number] + place
                other = first + k
                other = jnp.where(other >= row_end, other - row_length, other)
                other = jnp.where(k < length, other, slots)
                apart = space.separation(tuple(x - x.at[other].get(mode="promise_in_bounds") for x in position))
                is_near = (sum(d * d for d in apart) < reach * reach) & (other != slots)
                word = word | (is_near.astype(jnp.uint32) << place.astype(jnp.uint32))
            return word

        return words.at[word_number].set(jax.lax.fori_loop(0, turns, turn, jnp.zeros(count, jnp.uint32)))

    total = jnp.minimum(layout.used, most_words).astype(jnp.int32)
    words = jnp.zeros((most_words + 1, count), jnp.uint32)
    words = jax.lax.fori_loop(0, total, test, words)

    def look_ahead(following: jax.Array, row: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        number, word = row
        nearest = jnp.where(word != 0, number, following)
        return nearest, nearest

    # next_word[w, i]: the first word from w on with a bit set for slot i; ``most_words`` if there is none.
    end = jnp.full(count, most_words, jnp.int32)
    _, next_word = jax.lax.scan(look_ahead, end, (word_numbers, words[:-1]), reverse=True)
    next_word = jnp.concatenate([next_word, end[None]]).ravel()
    flat_words, flat_first = words.ravel(), cells.first.ravel()
    flat_end, flat_length = cells.row_end.ravel(), cells.row_length.ravel()

    def take(carry: tuple[jax.Array, jax.Array]) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        number, word = carry
        bit = jax.lax.population_count((word & (~word + 1)) - 1).astype(jnp.int32)
        table = jnp.minimum(number, most_words - 1)
        run = run_of_word.at[table].get(mode="promise_in_bounds") * count + slots
        other = flat_first.at[run].get(mode="promise_in_bounds")
        other = other + first_bit.at[table].get(mode="promise_in_bounds") + bit
        wrapped = other - flat_length.at[run].get(mode="promise_in_bounds")
        other = jnp.where(other >= flat_end.at[run].get(mode="promise_in_bounds"), wrapped, other)
        other = jnp.where(number < most_words, other, slots)
        rest = word & (word - 1)
        following = jnp.minimum(number + 1, most_words) * count + slots
        following = next_word.at[following].get(mode="promise_in_bounds")
        number = jnp.where(rest != 0, number, following)
        fresh = flat_words.at[number * count + slots].get(mode="promise_in_bounds")
        return (number, jnp.where(rest != 0, rest, fresh)), other

    counts = jax.lax.population_count(words).astype(jnp.int32).sum(axis=0, dtype=jnp.int32)
    needed = counts.max()

    def take_if_any(carry: tuple[jax.Array, jax.Array], column: jax.Array) -> tuple[Any, jax.Array]:
        column = split_over_cores(column) if is_split else column
        return jax.lax.cond(column < needed, take, lambda carry: (carry, slots), carry)

    first_word = next_word[:count]
    start = first_word, flat_words.at[first_word * count + slots].get(mode="promise_in_bounds")
    _, index = jax.lax.scan(take_if_any, start, jnp.arange(capacity, dtype=jnp.int32))
    return index, layout.needed(counts, capacity)
