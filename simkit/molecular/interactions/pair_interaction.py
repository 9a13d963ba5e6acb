"""Pair potentials as interactions: over all pairs in small systems, over a neighbor list in large ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.neighbors import neighbor_list, pair_sums, pairs
from simkit.molecular.neighbors.neighbor_list import NeighborList
from simkit.molecular.neighbors.pair_sums import PairSums, Parameter, PerParticle
from simkit.molecular.potentials import PairPotential, per_pair
from simkit.molecular.spaces import Cell, Space

# Largest number of particles for which all pairs beat a list, by dimension. Force on a CPU core in float32, ms, all
# pairs and list: touching soft disks, N = 128: 0.18, 0.06; 256: 0.13, 0.04; 512: 0.39, 0.08; 1024: 1.6, 0.13.
# Lennard-Jones liquid, cut-off 2.5, N = 128: 0.10, 0.10; 256: 0.14, 0.10; 512: 0.60, 0.21; 1024: 2.3, 0.40. The list is
# built every tenth step or so, at the cost of about ten forces.
MOST_FOR_ALL_PAIRS = {2: 128, 3: 256}

type Method = Literal["auto", "all_pairs", "neighbor_list"]

# Neighbors that a liquid has within its cut-off and skin, with room to spare; a run that needs more grows.
USUAL_NEIGHBORS = {2: 32, 3: 96}


def pair_interaction(
    potential: PairPotential,
    *,
    cutoff: float | Callable[[Params], jax.Array] | None,
    parameters: Sequence[str] | Callable[[Params], Mapping[str, Parameter]] = ("epsilon", "sigma"),
    species: Sequence[int] | None = None,
    method: Method = "auto",
    skin: float = 0.1,
    capacity: int | None = None,
) -> Interaction:
    """Return the interaction ``E = sum_{i<j} U(r_ij)`` over the pairs within a cut-off.

    The potential is truncated as it is: for an energy that is continuous there, wrap it with
    `simkit.molecular.potentials.energy_shifted` or its kin.

    Args:
        potential: U.
        cutoff: length, or ``params -> length`` so that it follows the units of the parameters; at most half the
            smallest width of a periodic cell. ``None``: no cut-off, in free space only.
        parameters: which params the potential takes, by their own names; or ``params -> {name: value}``. A value is a
            scalar, an (S, S) table for ``species``, or a `simkit.molecular.neighbors.pair_sums.PerParticle`.
        species: species of each particle, integers in [0, S); ``None`` where no parameter is a table.
        method: ``"all_pairs"``, ``"neighbor_list"``, or ``"auto"``, which takes the faster one.
        skin: how far beyond the cut-off pairs are listed, in units of the cut-off. Good values: 0.05 for relaxations
            near their end, 0.1 to 0.2 for liquids.
        capacity: neighbors a particle may have on the list; ``None`` starts with what a liquid needs. Runs that need
            more grow by themselves.

    Raises:
        UserError: if an argument is out of its range; when it is used, also if a cut-off that is known while compiling
            reaches beyond half the cell. One that is not known makes energy, force and stress NaN instead.
    """
    if method not in ("auto", "all_pairs", "neighbor_list"):
        raise UserError(f"method = '{method}' is unknown; choose auto, all_pairs or neighbor_list")
    if not skin > 0:
        raise UserError(f"skin = {skin} is not positive; choose 0.1")
    if capacity is not None and capacity < 1:
        raise UserError(f"capacity = {capacity} is below 1; leave it out to start with what a liquid needs")
    if cutoff is None and method == "neighbor_list":
        raise UserError("method = 'neighbor_list' needs a cutoff; give one or choose method = 'all_pairs'")
    if isinstance(cutoff, int | float) and not cutoff > 0:
        raise UserError(f"cutoff = {cutoff} is not a positive length")
    kinds = None if species is None else np.asarray(species, dtype=np.int32)

    def cutoff_of(params: Params, position: jax.Array) -> jax.Array:
        return jnp.asarray(cutoff(params) if callable(cutoff) else cutoff, position.dtype)

    def uses_list(position: jax.Array) -> bool:
        if method == "auto":
            return cutoff is not None and len(position) > MOST_FOR_ALL_PAIRS[position.shape[1]]
        return method == "neighbor_list"

    def checked_space(position: jax.Array, cell: Cell, params: Params) -> Space:
        space = spaces.of_cell(cell, position.shape[1])
        if kinds is not None and len(kinds) != len(position):
            raise UserError(f"species names {len(kinds)} particles and there are {len(position)}")
        if cutoff is None and space.is_periodic:
            raise UserError("a periodic cell needs a cutoff; give one of at most half its smallest width")
        if cutoff is not None and space.is_periodic:
            reach, widths = cutoff_of(params, position), space.widths
            known = not any(isinstance(value, Tracer) for value in (reach, widths))
            if known and not bool(_fits(reach, space)):
                raise UserError(
                    f"cutoff = {float(reach):g} reaches beyond half the cell, whose widths are "
                    f"{', '.join(f'{float(width):g}' for width in widths)}; repeat the cell or shorten the cutoff"
                )
        return space

    def reach_of(params: Params, position: jax.Array, cell: Cell) -> jax.Array:
        reach = (1 + skin) * cutoff_of(params, position)
        if cell is None or cell.ndim == 1:
            return reach
        # Rounding finds the nearest image in a cell of any shape only up to half its smallest width.
        return jnp.minimum(reach, spaces.of_cell(cell, position.shape[1]).widths.min() / 2)

    def potential_parameters(params: Params) -> Mapping[str, Parameter]:
        values = parameters(params) if callable(parameters) else {name: params[name] for name in parameters}
        if kinds is None and any(not isinstance(p, PerParticle) and jnp.ndim(p) == 2 for p in values.values()):
            raise UserError("a parameter is a table by species; say which species each particle is")
        return values

    def prepare(position: jax.Array, cell: Cell, params: Params) -> Any:
        checked_space(position, cell, params)
        if not uses_list(position):
            return ()
        room = capacity or USUAL_NEIGHBORS[position.shape[1]]
        return neighbor_list.build(position, cell, reach_of(params, position, cell), room)

    def refresh(neighbors: Any, position: jax.Array, cell: Cell, params: Params) -> Any:
        if not isinstance(neighbors, NeighborList):
            return neighbors
        reach = reach_of(params, position, cell)
        return neighbor_list.refresh(neighbors, position, cell, cutoff_of(params, position), reach)

    def evaluate(
        over_list: Callable[..., jax.Array], over_all: Callable[..., jax.Array]
    ) -> Callable[[jax.Array, Cell, Params, Any], jax.Array]:
        def evaluated(position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
            space, values = checked_space(position, cell, params), potential_parameters(params)
            limit = None if cutoff is None else cutoff_of(params, position)
            is_right = jnp.bool_(True) if limit is None else _fits(limit, space)
            if isinstance(neighbors, NeighborList) and limit is not None:
                sums = PairSums(potential, limit, values, kinds if kinds is None else jnp.asarray(kinds))
                value = over_list(sums, position, cell, neighbors)
                is_right = is_right & ~neighbors.overflowed
            else:
                apart = pairs.all_pairs(position, space, limit)
                value = over_all(apart, potential, **_of_all_pairs(values, kinds))
            # Better no number than a wrong one.
            return jnp.where(is_right, value, jnp.nan)

        return evaluated

    virial = evaluate(pair_sums.virial, pairs.virial_tensor)

    def stress(position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
        if cell is None:
            raise UserError("free space has no volume and so no stress; give a cell")
        return -virial(position, cell, params, neighbors) / spaces.of_cell(cell, position.shape[1]).volume

    def sized_like(neighbors: Any) -> Interaction:
        return pair_interaction(
            potential,
            cutoff=cutoff,
            parameters=parameters,
            species=species,
            method=method,
            skin=skin,
            capacity=neighbors.capacity if isinstance(neighbors, NeighborList) else capacity,
        )

    return Interaction(
        prepare=prepare,
        refresh=refresh,
        energy=evaluate(pair_sums.energy, lambda *args, **kwargs: pairs.energy_per_particle(*args, **kwargs).sum()),
        force=evaluate(pair_sums.force, pairs.forces),
        stress=stress,
        sized_like=sized_like,
        is_translation_invariant=True,
    )


def _fits(cutoff: jax.Array, space: Space) -> jax.Array:
    # A cell made to measure may miss by a rounding.
    slack = 1 + 8 * jnp.finfo(cutoff.dtype).eps
    return jnp.all(2 * cutoff <= slack * space.widths)


def _of_all_pairs(values: Mapping[str, Parameter], species: np.ndarray | None) -> dict[str, jax.Array]:
    def resolved(parameter: Parameter) -> jax.Array:
        if isinstance(parameter, PerParticle):
            return parameter.mix(parameter.value[:, None], parameter.value[None, :])
        return per_pair(parameter, jnp.asarray(species)) if jnp.ndim(parameter) == 2 else parameter

    return {name: resolved(parameter) for name, parameter in values.items()}
