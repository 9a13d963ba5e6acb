"""Energy, force and virial of a pair potential over a neighbor list, a few columns of neighbors at a time."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.formulation import by_device, computed_once_on_cpu
from simkit.molecular import spaces
from simkit.molecular.neighbors import neighbor_list
from simkit.molecular.neighbors.cell_list import WORTH_SPLITTING, components_of, parts, rows_of, split_over_cores
from simkit.molecular.neighbors.neighbor_list import NeighborList
from simkit.molecular.potentials import PairPotential
from simkit.molecular.spaces import Cell, Components

# Columns per iteration of the loop: enough to hide its overhead, few enough to compile fast and to stay in the cache.
FEWEST_COLUMNS, MOST_COLUMNS = 4, 16
# Number of species up to which entries of a table are selected instead of looked up.
MOST_CHOICES = 4
# Bytes of a table by species and slot that stays in a core's cache.
MOST_SPREAD = 2**21


class PerParticle(NamedTuple):
    """A pair parameter computed from one number per particle, such as a diameter.

    Attributes:
        value: (N,).
        mix: ``(a, b) -> parameter`` of the pair, elementwise; the mean of the two, for instance.
    """

    value: jax.Array
    mix: Callable[[jax.Array, jax.Array], jax.Array]


type PairParameter = jax.Array | PerParticle
"""A scalar, an (S, S) table by the species of both particles, or `PerParticle`."""


class PairTerms(NamedTuple):
    """M columns of the neighbor list: the particle of each slot with its k-th neighbor, for M values of k.

    Attributes:
        is_pair: whether the entry is a pair within the cut-off, (M, N).
        squared_distance: length^2, (M, N); of other entries the cut-off squared.
        distance: length, (M, N); of other entries the cut-off.
        inverse_distance: 1 / length, (M, N); zero for other entries and coincident particles.
        separation: from the neighbor to the particle, one array (M, N) per component.
        parameters: of the potential, scalars or (M, N).
    """

    is_pair: jax.Array
    squared_distance: jax.Array
    distance: jax.Array
    inverse_distance: jax.Array
    separation: Components
    parameters: dict[str, jax.Array]


class PairSums(NamedTuple):
    """A pair potential with its parameters.

    Attributes:
        potential: the pair potential.
        cutoff: scalar, length; pairs further apart do not interact.
        parameters: of the potential, by name.
        species: species of each particle, (N,) integers; ``None`` if no parameter is a table.
    """

    potential: PairPotential
    cutoff: jax.Array
    parameters: Mapping[str, PairParameter]
    species: jax.Array | None = None


def sums_of(
    names: Sequence[str], sums: PairSums, position: jax.Array, cell: Cell, neighbors: NeighborList
) -> tuple[jax.Array, ...]:
    """Return sums over the pairs in one pass over the list: ``energy``, ``force`` or ``stress``, those that are named.

        E = sum_{i<j} U(r_ij),  F_i = -sum_j U'(r_ij) (r_i - r_j) / r_ij,  W_ab = -sum_{i<j} U'(r_ij) r_a r_b / r_ij

    The trace of the virial tensor W is the scalar virial, and minus it the derivative of the energy with respect to
    strain.

    Args:
        names: of the sums, in the order of the result.
        sums: potential and parameters.
        position: length, (N, d).
        cell: as for `simkit.molecular.spaces.of_cell`.
        neighbors: current, from `simkit.molecular.neighbors.neighbor_list`.

    Returns:
        ``energy``, scalar; ``force``, energy / length, (N, d); for ``stress`` the virial, energy, (d, d), symmetric.
    """
    dimension = position.shape[1]
    entries = upper_triangle(dimension)
    counts = {"energy": 1, "force": dimension, "stress": len(entries)}

    def term(pair: PairTerms) -> Components:
        values = dict[str, Components]()
        if "energy" in names:
            energy = sums.potential.energy(pair.distance, **pair.parameters)
            values["energy"] = (jnp.where(pair.is_pair, energy, 0),)
        if "force" in names or "stress" in names:
            # Without the barrier the compiler computes the force once more for every component.
            over_distance = computed_once_on_cpu(_force_over_distance(sums.potential, pair))
            force = values["force"] = tuple(over_distance * component for component in pair.separation)
            values["stress"] = tuple(force[a] * pair.separation[b] for a, b in entries) if "stress" in names else ()
        return tuple(each for name in names for each in values[name])

    totals = iter(accumulated(sums, position, cell, neighbors, term, sum(counts[name] for name in names)))
    results = []
    for name in names:
        columns = [next(totals) for _ in range(counts[name])]
        if name == "force":
            results.append(neighbor_list.to_particles(neighbors, jnp.stack(columns, axis=-1)))
        elif name == "energy":
            results.append(columns[0].sum() / 2)
        else:
            results.append(virial_of(columns))
    return tuple(results)


def upper_triangle(dimension: int) -> list[tuple[int, int]]:
    """Return the rows and columns of the entries of a symmetric tensor, each once."""
    return [(a, b) for a in range(dimension) for b in range(a, dimension)]


def virial_of(totals: Sequence[jax.Array]) -> jax.Array:
    """Return the virial tensor, (d, d), of the sums of every particle over its neighbors, which hold each pair twice.

    Args:
        totals: (N,) each, in the order of `upper_triangle`.
    """
    dimension = {3: 2, 6: 3}[len(totals)]
    entries = dict(zip(upper_triangle(dimension), totals, strict=True))
    rows = [[entries[min(a, b), max(a, b)].sum() / 2 for b in range(dimension)] for a in range(dimension)]
    return jnp.stack([jnp.stack(row) for row in rows])


def _force_over_distance(potential: PairPotential, pair: PairTerms) -> jax.Array:
    if potential.force_over_distance is None:
        # The inverse distance of entries that are no pair is zero.
        return potential.force(pair.distance, **pair.parameters) * pair.inverse_distance
    return jnp.where(pair.is_pair, potential.force_over_distance(pair.squared_distance, **pair.parameters), 0)


def accumulated(
    sums: PairSums,
    position: jax.Array,
    cell: Cell,
    neighbors: NeighborList,
    term: Callable[[PairTerms], Components],
    count: int,
) -> Components:
    """Return the sums of a term over the neighbors of each particle, (N,) each in the order of the slots.

    Args:
        sums: the cut-off, and parameters that the term takes.
        position: length, (N, d).
        cell: as for `simkit.molecular.spaces.of_cell`.
        neighbors: current.
        term: ``pairs -> `` arrays (M, N) to be summed, zero for entries that are no pair.
        count: number of these arrays.
    """

    def in_blocks(sums: PairSums, position: jax.Array, cell: Cell, neighbors: NeighborList) -> Components:
        add = _adding(sums, position, cell, neighbors, term, is_whole=False)
        capacity, size = neighbors.index.shape
        zero = (jnp.zeros(size, position.dtype),) * count
        at_once, is_split = _columns_at_once(size * position.dtype.itemsize)

        def add_if_used(totals: Components, numbered: tuple[jax.Array, jax.Array]) -> tuple[Components, None]:
            first, block = numbered
            first = split_over_cores(first) if is_split else first
            # The last columns of the list are usually unused.
            return jax.lax.cond(first < neighbors.most, add, lambda totals, _: totals, totals, block), None

        whole = capacity - capacity % at_once
        firsts = jnp.arange(0, whole, at_once, dtype=jnp.int32)
        blocks = neighbors.index[:whole].reshape(-1, at_once, size)
        totals, _ = jax.lax.scan(add_if_used, zero, (firsts, blocks))
        return add(totals, neighbors.index[whole:]) if whole < capacity else totals

    def at_once(sums: PairSums, position: jax.Array, cell: Cell, neighbors: NeighborList) -> Components:
        add = _adding(sums, position, cell, neighbors, term, is_whole=True)
        capacity, size = neighbors.index.shape
        totals = (jnp.zeros(size, position.dtype),) * count
        for part in parts(capacity, size):
            totals = add(totals, neighbors.index[part])
        return totals

    return by_device(sums, position, cell, neighbors, cpu=in_blocks, accelerator=at_once)


def _adding(
    sums: PairSums,
    position: jax.Array,
    cell: Cell,
    neighbors: NeighborList,
    term: Callable[[PairTerms], Components],
    *,
    is_whole: bool,
) -> Callable[[Components, jax.Array], Components]:
    """Return ``(totals, columns of the list (M, N)) -> totals``, which adds the columns at once or one by one."""
    size, dimension = position.shape
    space = spaces.of_cell(cell, dimension)
    columns = tuple(neighbor_list.to_slots(neighbors, position[:, axis]) for axis in range(dimension))
    slots = jnp.arange(size, dtype=neighbors.index.dtype)
    pair_parameters = _look_up(sums, neighbors)
    limit = sums.cutoff * sums.cutoff
    rows = rows_of(columns) if is_whole else None

    # Without rematerialization reverse mode stores every intermediate of every column.
    @jax.checkpoint
    def add(totals: Components, other: jax.Array) -> Components:
        if rows is None:
            others = tuple(x.at[other].get(mode="promise_in_bounds") for x in columns)
        else:
            others = components_of(rows.at[other].get(mode="promise_in_bounds"), dimension)
        separation = space.separation(tuple(x - y for x, y in zip(columns, others, strict=True)))
        # Without the barrier the compiler gathers the neighbors once more for every sum.
        separation = computed_once_on_cpu(separation)
        squared = sum(component * component for component in separation)
        # Unused entries are the particle itself.
        squared = jnp.where((other != slots) & (squared < limit), squared, limit)
        is_pair = squared < limit
        apart = is_pair & (squared > 0)
        # Derivatives of the square root at zero and of the potential outside the cut-off must not become NaN.
        distance = jnp.sqrt(jnp.where(apart, squared, limit))
        pair = PairTerms(
            is_pair=is_pair,
            squared_distance=squared,
            distance=jnp.where(is_pair & ~apart, 0, distance),
            inverse_distance=jnp.where(apart, 1 / distance, 0),
            separation=separation,
            parameters=pair_parameters(other),
        )
        if is_whole:
            return tuple(total + values.sum(axis=0) for total, values in zip(totals, term(pair), strict=True))
        for column in zip(*term(pair), strict=True):
            totals = tuple(total + value for total, value in zip(totals, column, strict=True))
        return totals

    return add


def _columns_at_once(column_bytes: int) -> tuple[int, bool]:
    """Return the number of columns per iteration of the loop, and whether to split it over the cores."""
    needed = -(-WORTH_SPLITTING // (FEWEST_COLUMNS * column_bytes)) * FEWEST_COLUMNS
    return (needed, True) if needed <= MOST_COLUMNS else (FEWEST_COLUMNS, False)


def _look_up(sums: PairSums, neighbors: NeighborList) -> Callable[[jax.Array], dict[str, jax.Array]]:
    """Return the function from slots of the neighbors to the parameters of the pairs."""
    species = None if sums.species is None else neighbor_list.to_slots(neighbors, sums.species)
    of_slots = {
        name: neighbor_list.to_slots(neighbors, p.value)
        for name, p in sums.parameters.items()
        if isinstance(p, PerParticle)
    }

    # For few species selecting entries by the species of the neighbor is faster than a lookup: a step of 256 disks of
    # two species takes 27 us instead of 43.
    rows = {
        name: [p[species, kind] for kind in range(len(p))]
        for name, p in sums.parameters.items()
        if not isinstance(p, PerParticle) and jnp.ndim(p) == 2 and species is not None and len(p) <= MOST_CHOICES
    }

    # Of more species one lookup by the species of the particle and the slot of the neighbor, in place of one for the
    # species of the neighbor and a second that waits for it: a force of 4,096 atoms of 12 species takes 2.5 ms instead
    # of 3.3, and 1.7 of one species.
    spread = {
        name: p.T.at[species].get(mode="promise_in_bounds").ravel()
        for name, p in sums.parameters.items()
        if name not in rows
        and not isinstance(p, PerParticle)
        and jnp.ndim(p) == 2
        and species is not None
        and len(p) * len(species) * p.dtype.itemsize <= MOST_SPREAD
    }

    def parameters_of(other: jax.Array) -> dict[str, jax.Array]:
        values = {}
        for name, parameter in sums.parameters.items():
            if isinstance(parameter, PerParticle):
                values[name] = parameter.mix(of_slots[name], of_slots[name].at[other].get(mode="promise_in_bounds"))
            elif name in rows and species is not None:
                kind = species.at[other].get(mode="promise_in_bounds")
                value = rows[name][0]
                for index, row in enumerate(rows[name][1:], start=1):
                    value = jnp.where(kind == index, row, value)
                values[name] = value
            elif name in spread and species is not None:
                entry = other * len(parameter) + species
                values[name] = spread[name].at[entry].get(mode="promise_in_bounds")
            elif jnp.ndim(parameter) == 2 and species is not None:
                entry = species * len(parameter) + species.at[other].get(mode="promise_in_bounds")
                values[name] = parameter.ravel().at[entry].get(mode="promise_in_bounds")
            else:
                values[name] = parameter
        return values

    return parameters_of
