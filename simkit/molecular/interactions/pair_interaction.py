"""Interaction of a pair potential, over all pairs or a neighbor list, with tail corrections."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from simkit.core.arguments import check_integer, check_shape
from simkit.core.parameter import POSITIVE
from simkit.core.settings import arguments, number, whole, word
from simkit.core.simulation import Params
from simkit.errors import UserError, listed
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction, Quantities, combined
from simkit.molecular.neighbors import neighbor_list, pair_sums, pairs
from simkit.molecular.neighbors.neighbor_list import Excluded, NeighborList, partners_of
from simkit.molecular.neighbors.pair_sums import PairParameter, PairSums, PerParticle
from simkit.molecular.potentials import PairPotential, lennard_jones, per_pair, switched
from simkit.molecular.spaces import Cell, Space

# Largest number of particles for which all pairs are faster than a list, by dimension. Force on a CPU core in float32,
# ms, all pairs and list: touching soft disks, N = 128: 0.18, 0.06; 256: 0.13, 0.04; 512: 0.39, 0.08; 1024: 1.6, 0.13.
# Lennard-Jones liquid, cut-off 2.5, N = 128: 0.10, 0.10; 256: 0.14, 0.10; 512: 0.60, 0.21; 1024: 2.3, 0.40. The list is
# built about every tenth step, at the cost of about ten forces.
MOST_FOR_ALL_PAIRS = {2: 128, 3: 256}
type Method = Literal["auto", "all_pairs", "neighbor_list"]
# Initial capacity by dimension: more than the neighbors of a particle in a liquid within cut-off and skin.
USUAL_NEIGHBORS = {2: 32, 3: 96}


@dataclasses.dataclass(frozen=True)
class PairInteraction:
    """``E = sum_{i<j} U(r_ij)`` over the pairs within a cut-off; see `pair_interaction`.

    Attributes:
        potential: U.
        cutoff: length, ``params -> length``, or ``None``.
        parameters: names of params, or ``params -> {name: value}``.
        species: of each particle, int32, (N,), or ``None``.
        method: ``"all_pairs"``, ``"neighbor_list"`` or ``"auto"``.
        skin: of the list beyond the cut-off, in units of the cut-off.
        capacity: neighbors per particle that the list can hold, or ``None``.
        excluded: pairs of particles of one cell that do not interact, (K, 2), or ``None``.
        images: cells of a block along each axis, or ``None``.
    """

    potential: PairPotential
    cutoff: float | Callable[[Params], jax.Array] | None
    parameters: Sequence[str] | Callable[[Params], Mapping[str, PairParameter]]
    species: np.ndarray | None
    method: Method
    skin: float
    capacity: int | None
    excluded: np.ndarray | None = None
    images: tuple[int, ...] | None = None

    def prepare(self, position: jax.Array, cell: Cell, params: Params) -> NeighborList | tuple[()]:
        """Return the neighbor list, or an empty tuple if all pairs are summed."""
        self.checked_space(position, cell, params)
        if not self.uses_list(position):
            return ()
        capacity = self.capacity or USUAL_NEIGHBORS[position.shape[1]]
        reach = self.reach_of(params, position, cell)
        return neighbor_list.build(position, cell, reach, capacity, self.excluded_pairs(position, cell))

    def refresh(self, neighbors: Any, position: jax.Array, cell: Cell, params: Params) -> Any:
        """Return the neighbors at new positions."""
        if not isinstance(neighbors, NeighborList):
            return neighbors
        reach = self.reach_of(params, position, cell)
        cutoff, excluded = self.cutoff_of(params, position), self.excluded_pairs(position, cell)
        return neighbor_list.refresh(neighbors, position, cell, cutoff, reach, excluded)

    def energy(self, position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
        """Return the energy."""
        return self.together(("energy",), position, cell, params, neighbors)[0]

    def force(self, position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
        """Return the forces, (N, d)."""
        return self.together(("force",), position, cell, params, neighbors)[0]

    def stress(self, position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array:
        """Return the stress, (d, d).

        Raises:
            UserError: in free space.
        """
        return self.together(("stress",), position, cell, params, neighbors)[0]

    def sized_like(self, neighbors: Any) -> Interaction:
        """Return the interaction with lists as large as this one."""
        if not isinstance(neighbors, NeighborList):
            return self.interaction()
        return dataclasses.replace(self, capacity=neighbors.capacity).interaction()

    def interaction(self) -> Interaction:
        """Return the `Interaction` record."""
        return Interaction(
            prepare=self.prepare,
            refresh=self.refresh,
            energy=self.energy,
            force=self.force,
            stress=self.stress,
            sized_like=self.sized_like,
            is_translation_invariant=True,
            fits=None if self.cutoff is None else self.fits,
            together=self.together,
        )

    def uses_list(self, position: jax.Array) -> bool:
        """Return whether the sums are over a neighbor list instead of all pairs."""
        if self.method == "auto":
            return self.cutoff is not None and len(position) > MOST_FOR_ALL_PAIRS[position.shape[1]]
        return self.method == "neighbor_list"

    def cutoff_of(self, params: Params, position: jax.Array) -> jax.Array:
        """Return the cut-off in the precision of the positions."""
        return jnp.asarray(self.cutoff(params) if callable(self.cutoff) else self.cutoff, position.dtype)

    def fits(self, cell: Cell, params: Params) -> jax.Array:
        """Return whether a cell is at least twice as wide as the cut-off."""
        assert cell is not None  # free space fits any cut-off
        return _fits(self.cutoff_of(params, cell), spaces.of_cell(cell, len(cell)))

    def reach_of(self, params: Params, position: jax.Array, cell: Cell) -> jax.Array:
        """Return the reach of the list, length."""
        reach = (1 + self.skin) * self.cutoff_of(params, position)
        if cell is None or cell.ndim == 1:
            return reach
        # Rounding finds the nearest image in a cell of any shape only up to half its smallest width.
        return jnp.minimum(reach, spaces.of_cell(cell, position.shape[1]).widths.min() / 2)

    def excluded_pairs(self, position: jax.Array, cell: Cell) -> Excluded | None:
        """Return the pairs that do not interact, of all particles; ``None`` for none.

        Raises:
            UserError: if one of them names no particle.
        """
        if self.excluded is None:
            return None
        count = len(position) // math.prod(self.images or ())
        check_integer("a particle of excluded", self.excluded.max(), 0, count - 1)
        within = None if self.images is None else self._one_cell(cell, position.shape[1]).widths.min() / 2
        return Excluded(jnp.asarray(partners_of(self.excluded, count)), within)

    def _one_cell(self, cell: Cell, dimension: int) -> Space:
        """Return the space of one cell of a block."""
        assert cell is not None  # a block is periodic
        repeats = np.asarray(self.images)
        return spaces.of_cell(
            cell / jnp.asarray(repeats if cell.ndim == 1 else repeats[:, None], cell.dtype), dimension
        )

    def _are_bonded_nearest(self, position: jax.Array, cell: Cell) -> jax.Array:
        """Return whether the nearest images of all excluded pairs are closer than half of one cell of a block."""
        assert self.excluded is not None  # asked for only where there are some
        space = self._one_cell(cell, position.shape[1])
        first, second = (position[jnp.asarray(atoms)] for atoms in self.excluded.T)
        squared = jnp.sum(spaces.displacement(space, first, second) ** 2, axis=1)
        return (squared < (space.widths.min() / 2) ** 2).all()

    def checked_space(self, position: jax.Array, cell: Cell, params: Params) -> Space:
        """Return the space of a cell.

        Raises:
            UserError: if the number of species differs from that of particles, or a cut-off that is known while
                compiling exceeds half the cell.
        """
        space = spaces.of_cell(cell, position.shape[1])
        if self.species is not None:
            check_shape("species", self.species, f"one for each of {len(position)} particles", (len(position),))
        if self.cutoff is None and space.is_periodic:
            raise UserError("a periodic cell needs a cutoff; give one of at most half its smallest width")
        if self.cutoff is not None and space.is_periodic:
            reach, widths = self.cutoff_of(params, position), space.widths
            is_known = not any(isinstance(value, Tracer) for value in (reach, widths))
            if is_known and not bool(_fits(reach, space)):
                raise UserError(
                    f"cutoff = {float(reach):g} reaches beyond half the cell, whose widths are "
                    f"{', '.join(f'{float(width):g}' for width in widths)}; repeat the cell or shorten the cutoff"
                )
        return space

    def potential_parameters(self, params: Params) -> Mapping[str, PairParameter]:
        """Return the parameters of the potential, by name.

        Raises:
            UserError: if one is a table and there are no species.
        """
        if callable(self.parameters):
            values = self.parameters(params)
        else:
            values = {name: params[name] for name in self.parameters}
        if self.species is None and any(not isinstance(p, PerParticle) and jnp.ndim(p) == 2 for p in values.values()):
            raise UserError("a parameter is a table by species; give species, one index for each particle")
        return values

    def together(
        self, names: Quantities, position: jax.Array, cell: Cell, params: Params, neighbors: Any
    ) -> tuple[jax.Array, ...]:
        """Return energy, forces and stress, those that are named; arguments as for `Interaction.several`.

        Raises:
            UserError: for the stress in free space.
        """
        volume = spaces.volume_of(cell, position.shape[1]) if "stress" in names else 1
        space, values = self.checked_space(position, cell, params), self.potential_parameters(params)
        limit = None if self.cutoff is None else self.cutoff_of(params, position)
        if isinstance(neighbors, NeighborList) and limit is not None:
            species = None if self.species is None else jnp.asarray(self.species)
            sums = PairSums(self.potential, limit, values, species)
            results = pair_sums.sums_of(names, sums, position, cell, neighbors)
        else:
            apart = pairs.all_pairs(position, space, limit, self.excluded_pairs(position, cell))
            results = [
                OVER_ALL_PAIRS[name](apart, self.potential, **of_all_pairs(values, self.species)) for name in names
            ]
        results = [-each / volume if name == "stress" else each for name, each in zip(names, results, strict=True)]
        return tuple(self.valid_or_nan(each, position, cell, params, neighbors) for each in results)

    def valid_or_nan(
        self, value: jax.Array, position: jax.Array, cell: Cell, params: Params, neighbors: Any
    ) -> jax.Array:
        """Return a value, or NaN in place of a wrong one: where the list overflowed, or the cell is too small."""
        space = spaces.of_cell(cell, position.shape[1])
        is_valid = jnp.bool_(True) if self.cutoff is None else _fits(self.cutoff_of(params, position), space)
        if isinstance(neighbors, NeighborList):
            is_valid = is_valid & ~neighbors.overflowed
        if self.excluded is not None and self.images is not None:
            is_valid = is_valid & self._are_bonded_nearest(position, cell)
        return jnp.where(is_valid, value, jnp.nan)


@arguments(
    method=word("how pairs are found", ("auto", "all_pairs", "neighbor_list")),
    skin=number("skin of the list, in units of the cut-off", bounds=POSITIVE),
    capacity=whole("neighbors per particle that the list can hold", low=1),
)
def pair_interaction(
    potential: PairPotential,
    *,
    cutoff: float | Callable[[Params], jax.Array] | None,
    parameters: Sequence[str] | Callable[[Params], Mapping[str, PairParameter]] = ("epsilon", "sigma"),
    species: Sequence[int] | None = None,
    method: Method = "auto",
    skin: float = 0.1,
    capacity: int | None = None,
    excluded: Sequence[Sequence[int]] | np.ndarray = (),
    images: tuple[int, ...] | None = None,
) -> Interaction:
    """Return the interaction ``E = sum_{i<j} U(r_ij)`` over the pairs within a cut-off.

    The potential is truncated: for a continuous energy at the cut-off wrap it with one of
    `simkit.molecular.potentials.pair`, such as `simkit.molecular.potentials.energy_shifted`.

    Args:
        potential: U.
        cutoff: length, or ``params -> length`` so that it follows the units of the parameters; at most half the
            smallest width of a periodic cell. ``None``: no cut-off, in free space only.
        parameters: names of the params of the potential; or ``params -> {name: value}``. A value is a scalar, an (S, S)
            table for ``species``, or a `simkit.molecular.neighbors.pair_sums.PerParticle`.
        species: species of each particle, integers in [0, S); ``None`` if no parameter is a table.
        method: ``"all_pairs"``, ``"neighbor_list"``, or ``"auto"``, which chooses the faster one.
        skin: of the list beyond the cut-off, in units of the cut-off. Good values: 0.05 for relaxations near their end,
            0.1 to 0.2 for liquids.
        capacity: neighbors per particle that the list can hold; ``None`` for a capacity that suffices for a liquid.
            Runs enlarge it when needed.
        excluded: pairs of particles that do not interact, (K, 2), such as those of
            `simkit.molecular.bonded.Topology.pairs_within`.
        images: numbers of equal cells along each axis, if positions are those of their particles, cell by cell;
            ``excluded`` names those of the first. Of each pair the image closer than half the smallest width of one
            cell is excluded; NaN if there is none. ``None`` for one cell.

    Raises:
        UserError: if an argument is out of its range; when it is used, also if a cut-off that is known while compiling
            exceeds half the cell. A traced cut-off makes energy, force and stress NaN instead.

    Example:
        >>> pairs = molecular.interactions.pair_interaction(molecular.potentials.lennard_jones(), cutoff=None)
        >>> x, params = jnp.array([[0.0, 0.0, 0.0], [2 ** (1 / 6), 0.0, 0.0]]), {"epsilon": 1.0, "sigma": 1.0}
        >>> print(f"{pairs.energy(x, None, params, pairs.prepare(x, None, params)):.4f}")
        -1.0000
    """
    is_positive = not isinstance(cutoff, int | float) or cutoff > 0
    if not is_positive or (cutoff is None and method == "neighbor_list"):
        raise UserError(f"cutoff = {cutoff}; give a positive length, or None with method = 'all_pairs'")
    bonded = np.asarray(excluded, np.int32).reshape(-1, 2)
    if bonded.size and (bonded.min() < 0 or (bonded[:, 0] == bonded[:, 1]).any()):
        raise UserError("excluded has a pair that is none; give the indices of two particles, from 0")
    return PairInteraction(
        potential=potential,
        cutoff=cutoff,
        parameters=parameters if callable(parameters) else listed(parameters, "parameters"),
        species=None if species is None else np.asarray(species, dtype=np.int32),
        method=method,
        skin=skin,
        capacity=capacity,
        excluded=bonded if len(bonded) else None,
        images=images,
    ).interaction()


def _energy_of_all_pairs(*args: Any, **kwargs: Any) -> jax.Array:
    return pairs.energy_per_particle(*args, **kwargs).sum()


# The compiler computes what they have in common once.
OVER_ALL_PAIRS = {"energy": _energy_of_all_pairs, "force": pairs.forces, "stress": pairs.virial}


def _fits(cutoff: jax.Array, space: Space) -> jax.Array:
    # A cell of exactly twice the cut-off may be smaller by round-off.
    slack = 1 + 8 * jnp.finfo(cutoff.dtype).eps
    return jnp.all(2 * cutoff <= slack * space.widths)


def of_all_pairs(values: Mapping[str, PairParameter], species: np.ndarray | None) -> dict[str, jax.Array]:
    """Return the parameters of all pairs, (N, N) or one number for all.

    Args:
        values: by name.
        species: of each particle, (N,); ``None`` if no value is a table.
    """

    def resolved(parameter: PairParameter) -> jax.Array:
        if isinstance(parameter, PerParticle):
            return parameter.mix(parameter.value[:, None], parameter.value[None, :])
        return per_pair(parameter, jnp.asarray(species)) if jnp.ndim(parameter) == 2 else parameter

    return {name: resolved(parameter) for name, parameter in values.items()}


def uniform_tail(moment: Callable[[Params], jax.Array]) -> Interaction:
    """Return the interaction ``E = 2 pi N^2 M / V``, the tail correction of a three-dimensional system.

    ``M = integral of U_rest(r) r^2 dr``, where U_rest is the part missing from the pair potential in use: U beyond a
    sharp cut-off, ``U (1 - S)`` with a switch S. It has no force on particles and the pressure E / V. In a crystal a
    switch makes it far more accurate than a sharp cut-off, which divides shells.

    Args:
        moment: ``params -> M``, energy length^3.

    Example:
        >>> tail = molecular.interactions.uniform_tail(lambda params: params["moment"])
        >>> x, cell, params = jnp.zeros((10, 3)), 2.0 * jnp.eye(3), {"moment": -1.0}
        >>> energy = tail.energy(x, cell, params, tail.prepare(x, cell, params))
        >>> print(f"{energy:.3f}, by hand {-2 * np.pi * 10**2 / 8:.3f}")
        -78.540, by hand -78.540

    Reference: Allen, Tildesley, Computer Simulation of Liquids, 2nd ed., Oxford (2017), section 2.8,
    doi:10.1093/oso/9780198803195.001.0001.
    """

    def energy(position: jax.Array, cell: Cell, params: Params, _: tuple) -> jax.Array:
        return 2 * math.pi * len(position) ** 2 * moment(params) / volume(position, cell)

    def stress(position: jax.Array, cell: Cell, params: Params, _: tuple) -> jax.Array:
        energy_density = energy(position, cell, params, _) / volume(position, cell)
        return -energy_density * jnp.eye(position.shape[1], dtype=position.dtype)

    def volume(position: jax.Array, cell: Cell) -> jax.Array:
        return spaces.volume_of(cell, 3)

    return Interaction(
        prepare=lambda position, cell, params: (),
        refresh=lambda neighbors, position, cell, params: neighbors,
        energy=energy,
        force=lambda position, cell, params, _: jnp.zeros_like(position),
        stress=stress,
        is_translation_invariant=True,
    )


type Units = Callable[[Params], tuple[jax.Array, jax.Array]]


def full_lennard_jones(
    switch_on: float,
    cutoff: float,
    *,
    capacity: int,
    skin: float,
    method: Method = "auto",
    units: Units = lambda params: (params["epsilon"], params["sigma"]),
) -> Interaction:
    """Return the Lennard-Jones interaction of a three-dimensional system, with a tail correction for its full range.

        E = sum_{i<j} U(r_ij) S(r_ij) + (2 pi N^2 / V) integral of U (1 - S) r^2 dr from switch_on to infinity

    S falls from 1 at ``switch_on`` to 0 at ``cutoff`` with continuous second derivatives.

    Args:
        switch_on: in units of sigma.
        cutoff: in units of sigma.
        capacity: neighbors per particle that the list can hold.
        skin: of the list, in units of the cut-off.
        method: as for `simkit.molecular.interactions.pair_interaction.pair_interaction`.
        units: ``params -> (epsilon, sigma)``.

    Example:
        >>> crystal = molecular.structures.face_centered_cubic((5, 5, 5), spacing=1.0902)
        >>> rare_gas = molecular.interactions.full_lennard_jones(2.2, 3.0, capacity=200, skin=0.1)
        >>> x, cell, params = crystal.position, crystal.cell, {"epsilon": 1.0, "sigma": 1.0}
        >>> energy = rare_gas.energy(x, cell, params, rare_gas.prepare(x, cell, params)) / len(x)
        >>> print(f"{energy:.2f}, lattice sums: -8.61")
        -8.60, lattice sums: -8.61
    """

    def parameters(params: Params) -> dict[str, PairParameter]:
        epsilon, sigma = units(params)
        return {"epsilon": epsilon, "sigma": sigma, "switch_on": switch_on * sigma, "cutoff": cutoff * sigma}

    pair = pair_interaction(
        switched(lennard_jones()),
        cutoff=lambda params: cutoff * units(params)[1],
        parameters=parameters,
        method=method,
        skin=skin,
        capacity=capacity,
    )
    integral = _tail_integral(switch_on, cutoff)

    def tail(params: Params) -> jax.Array:
        epsilon, sigma = units(params)
        return integral * epsilon * sigma**3

    return combined(pair, uniform_tail(tail))


def _tail_integral(switch_on: float, cutoff: float) -> float:
    """Return the integral of ``4 (r^-12 - r^-6) (1 - S(r)) r^2`` from the switch to infinity."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    x = (nodes + 1) / 2
    r = switch_on + (cutoff - switch_on) * x
    in_shell = 4 * (r**-12 - r**-6) * x**3 * (10 - x * (15 - 6 * x)) * r**2
    beyond = 4 * (cutoff**-9 / 9 - cutoff**-3 / 3)
    return float(weights @ in_shell * (cutoff - switch_on) / 2 + beyond)
