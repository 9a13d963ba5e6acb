"""Observables of a system: contacts, displacements, elastic constants, and how frames name them."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once, precise_product
from simkit.core.settings import Settings
from simkit.core.simulation import Arrays, Params
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.analysis.elasticity import elastic_constants, voigt_bulk_modulus, voigt_shear_modulus
from simkit.molecular.analysis.order import Contacts, contact_number, load_bearing, polygon_order
from simkit.molecular.description.formulas import without_time
from simkit.molecular.description.interactions import Interactions
from simkit.molecular.description.pair_energies import PairTerm, at_pairs
from simkit.molecular.description.particles import Particles, SystemCell, repeated
from simkit.molecular.description.starts import LATTICES, Placing
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.minimizers import Scale, largest_norm
from simkit.molecular.neighbors import pairs
from simkit.molecular.neighbors.neighbor_list import NeighborList
from simkit.molecular.neighbors.pairs import Pairs
from simkit.molecular.spaces import Cell


@dataclasses.dataclass(frozen=True)
class Moment:
    """Positions, cell, params and neighbors of a system.

    Attributes:
        position: (N, d), not wrapped into the cell.
        cell: as for `simkit.molecular.spaces.of_cell`.
        params: params of the interaction; may hold the time.
        neighbors: neighbors of the interaction, current at the positions.
    """

    position: jax.Array
    cell: Cell
    params: Params
    neighbors: Any


class Observations(NamedTuple):
    """Quantities of a moment.

    Attributes:
        arrays: arrays that frames store.
        numbers: scalars, for diagnostics.
    """

    arrays: Arrays
    numbers: Arrays


type Observer = Callable[[Moment], Observations]


@dataclasses.dataclass(frozen=True)
class Touching:
    """Contacts of particles: pairs within the reach of an energy that ends by itself, such as that of soft spheres.

    Attributes:
        interactions: interactions and fields.
        particles: particles of the system.
        dimension: dimension of space.
        images: number of interacting cells along each axis; ``None`` for one.
    """

    interactions: Interactions
    particles: Particles
    dimension: int
    images: tuple[int, ...] | None

    def of_contacts(self, moment: Moment) -> Observations:
        """Return the number of contacts of each particle, (N,), their mean, and the fraction of rattlers."""
        network, kind = self.network(moment), moment.position.dtype
        bearing = load_bearing(network, self.dimension)
        numbers = {
            "contact_number": contact_number(network, bearing).astype(kind),
            "rattler_fraction": 1 - bearing.astype(kind).mean(),
        }
        return Observations({"contacts": network.touching.sum(axis=1).astype(kind)}, numbers)

    def of_load(self, moment: Moment) -> Observations:
        """Return the virial of each particle over the mean of all, (N,)."""
        virial = jnp.zeros(len(moment.position), moment.position.dtype)
        for index in self.contact_terms():
            apart, values, _ = self._pairs(index, moment)
            push = jnp.where(apart.is_pair, self.interactions.pairs[index].potential.force(apart.distance, **values), 0)
            virial = virial + (push * apart.distance).sum(axis=1)
        mean = virial.mean()
        return Observations({"load": virial / jnp.where(mean > 0, mean, 1)}, {})

    def of_hexatic_order(self, moment: Moment) -> Observations:
        """Return how nearly the contacts of each particle point to the corners of a hexagon, (N,), and the mean."""
        apart, touching = self._joined(moment)
        order = polygon_order(apart, touching, 6)
        return Observations({"hexatic_order": order}, {"hexatic_order": order.mean()})

    def of_energies(self, moment: Moment) -> Observations:
        """Return each particle's half of its pair energies, and its energy in fields, (N,)."""
        energy = jnp.zeros(len(moment.position), moment.position.dtype)
        for index, term in enumerate(self.interactions.pairs):
            apart, values, _ = self._pairs(index, moment)
            energy = energy + pairs.energy_per_particle(apart, term.potential, **values)
        for other in self.interactions.others:
            energy = energy + other.each.energy(moment.position, moment.cell, without_time(moment.params), ())
        inside = spaces.of_cell(moment.cell, self.dimension).wrap(moment.position)
        columns = tuple(inside[:, axis] for axis in range(self.dimension))
        for field in self.interactions.fields:
            energy = energy + jnp.where(jnp.asarray(field.on), field.each(columns, moment.params), 0)
        return Observations({"energy_of_particle": energy}, {})

    def rattlers(self, moment: Moment) -> jax.Array:
        """Return the mask of particles without load-bearing contacts, (N,) booleans."""
        return ~load_bearing(self.network(moment), self.dimension)

    def network(self, moment: Moment) -> Contacts:
        """Return the contacts."""
        apart, touching = self._joined(moment)
        return Contacts(touching, apart.partner)

    def contact_terms(self) -> list[int]:
        """Return the indices of the pair energies that end by themselves."""
        return [index for index, term in enumerate(self.interactions.pairs) if term.is_contact]

    def are_all(self) -> bool:
        """Return whether contacts are the only interactions, and no particle is frozen."""
        return self.interactions.are_contacts and not self.particles.frozen.any()

    def _joined(self, moment: Moment) -> tuple[Pairs, jax.Array]:
        """Return the pairs of all contact energies, and the mask of those that touch, (N, K), each once."""
        separations, touches, earlier = [], [], []
        for index in self.contact_terms():
            term = self.interactions.pairs[index]
            apart, _, kinds = self._pairs(index, moment)
            within = _within(term, without_time(moment.params), kinds, apart.distance)
            for other in earlier:
                within &= ~_within(other, without_time(moment.params), kinds, apart.distance)
            earlier.append(term)
            separations.append(apart)
            touches.append(apart.is_pair & within)
        joined = (
            jax.tree.map(lambda *each: jnp.concatenate(each, axis=1), *separations)
            if len(separations) > 1
            else separations[0]
        )
        # Whether a pair touches is decided once for all that is counted.
        return joined, computed_once(jnp.concatenate(touches, axis=1))

    def _pairs(self, index: int, moment: Moment) -> tuple[Pairs, dict[str, jax.Array], tuple[jax.Array, jax.Array]]:
        """Return the pairs of one energy, its parameters for each, and the species of both, (N, K) each."""
        position, cell = moment.position, moment.cell
        neighbors = moment.neighbors[index] if self.interactions.parts > 1 else moment.neighbors
        species = jnp.asarray(self.particles.species)
        if self.images is not None:
            position, cell = repeated(position, cell, self.images)
        apart = _apart(position, cell, neighbors)
        count = len(moment.position)
        apart = jax.tree.map(lambda each: each[:count], apart)
        apart = apart._replace(partner=apart.partner % count)
        kinds = species[:, None], species[apart.partner]
        values = self.interactions.pairs[index].parameters(without_time(moment.params))
        first = jnp.arange(count)[:, None]
        return apart, at_pairs(values, first, apart.partner, self.particles.species), kinds


def _apart(position: jax.Array, cell: Cell, neighbors: object) -> Pairs:
    space = spaces.of_cell(cell, position.shape[1])
    if isinstance(neighbors, NeighborList):
        return pairs.listed_pairs(position, space, neighbors)
    return pairs.all_pairs(position, space)


def _within(term: PairTerm, params: Params, kinds: tuple[jax.Array, jax.Array], distance: jax.Array) -> jax.Array:
    assert term.cutoff is not None  # contacts have one
    cutoff = term.cutoff(params)
    return jnp.asarray(term.between)[kinds] & (distance < (cutoff[kinds] if cutoff.ndim else cutoff))


@dataclasses.dataclass(frozen=True)
class Sites:
    """Starting positions that do not depend on the key.

    Attributes:
        placing: starting positions.
        room: the cell at the start.
        moves_cell: whether the cell changes.
        may_drift: whether all particles may move together without meaning: nothing holds or pushes them from outside.
    """

    placing: Placing
    room: SystemCell
    moves_cell: bool
    may_drift: bool

    def of_displacement(self, moment: Moment) -> Observations:
        """Return the distance of each particle from its site, (N,); sites follow the cell, and a drift that is free."""
        params = without_time(moment.params)
        home = self.placing.standing(params).astype(moment.position.dtype)
        if self.moves_cell:
            assert moment.cell is not None  # there is one that moves
            home = precise_product(
                home, spaces.inverse_of(self.room.vectors(params)), spaces.lattice_vectors(moment.cell)
            )
        away = moment.position - home
        if self.may_drift:
            away = spaces.displacement_without_drift(spaces.free(self.room.dimension), moment.position, home)
        squared = jnp.sum(away**2, axis=1)
        distance = jnp.sqrt(squared)
        numbers = {"largest_displacement": distance.max(), "mean_square_displacement": jnp.mean(squared)}
        return Observations({"displacement": distance}, numbers)

    def of_origin(self, moment: Moment) -> Observations:
        """Return the x coordinate of the site of each particle as a fraction of the cell, (N,)."""
        fractions = self.placing.places.fractions
        assert fractions is not None  # called only if positions fill a cell
        return Observations({"origin": jnp.asarray(fractions[:, 0], moment.position.dtype)}, {})

    def of_lattice(self, moment: Moment) -> Observations:
        """Return the distance of nearest neighbors and the lattice constant of a crystal of the volume of the cell."""
        lattice = self.placing.places.lattice
        assert lattice is not None  # called only for a start by lattice
        (build, dimension), repeats = LATTICES[lattice[0]], lattice[1]
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            unit = build(repeats)
            edges = np.diag(np.asarray(unit.cell)).astype(float)
        volume = spaces.of_cell(moment.cell, dimension).volume
        nearest = (volume / float(edges.prod())) ** (1 / dimension)
        return Observations(
            {}, {"nearest_distance": nearest, "lattice_constant": float(edges[0]) / repeats[0] * nearest}
        )


# Distance of the nearest neighbor beyond which a particle of a cluster is unbound, in bonds; and rows of distances that
# are computed at a time.
UNBOUND, ROWS = 2.0, 64


def with_unbound(see: Observer, interactions: Interactions, scale: Callable[[Params], Scale]) -> Observer:
    """Return an observer that also counts the particles of a cluster in free space that have no neighbor.

    Args:
        see: ``moment -> `` other quantities.
        interactions: interactions of the particles.
        scale: ``params -> Scale`` of a bond.
    """

    def further(moment: Moment) -> Observations:
        seen, position, params = see(moment), moment.position, without_time(moment.params)
        limit, reach = UNBOUND * scale(params).length, interactions.reach(params)
        limit = limit if reach is None else jnp.where(reach > 0, jnp.minimum(limit, reach), limit)
        order = jnp.arange(len(position))

        def is_alone(index: jax.Array) -> jax.Array:
            squared = jnp.sum((position - position[index]) ** 2, axis=1)
            return jnp.min(jnp.where(order == index, jnp.inf, squared)) > limit**2

        count = jnp.sum(jax.lax.map(is_alone, order, batch_size=ROWS))
        return Observations(seen.arrays, seen.numbers | {"unbound": count.astype(position.dtype)})

    return further


# Factor on the force tolerance: an evaluated force differs from the stored one of the minimizer by round-off.
SAME_FORCE = 2.0
# Numbers of the Voigt components, of xx yy xy in two dimensions and of xx yy zz yz xz xy in three.
COMPONENTS = {2: (1, 2, 6), 3: (1, 2, 3, 4, 5, 6)}


@dataclasses.dataclass(frozen=True)
class Elasticity:
    """Elastic constants of a system at rest.

    Attributes:
        interaction: energy of the particles.
        scale: ``params -> Scale`` of a bond.
        force_tolerance: largest residual force of the relaxation, in units of a bond's stiffness times its length.
        rattlers: ``moment -> `` mask of the particles without load-bearing contacts, (N,) booleans; ``None`` if there
            are none.
    """

    interaction: Interaction
    scale: Callable[[Params], Scale]
    force_tolerance: float
    rattlers: Callable[[Moment], jax.Array] | None

    def of_moment(self, moment: Moment) -> Observations:
        """Return the stiffnesses ``c11``, ``c12`` to ``c66`` and the moduli, NaN until the system is at rest.

        ``c12`` is the derivative of the stress along xx by the strain along yy, with relaxed particles. The moduli are
        those of Voigt, means over all directions.
        """
        position, cell, params, neighbors = moment.position, moment.cell, moment.params, moment.neighbors
        assert cell is not None  # refused in free space
        names = stiffness_names(position.shape[1])

        def measured() -> tuple[jax.Array, ...]:
            matrix = elastic_constants(
                self.interaction,
                position,
                spaces.lattice_vectors(cell),
                params,
                neighbors=neighbors,
                rattlers=None if self.rattlers is None else self.rattlers(moment),
            ).stiffness
            moduli = voigt_bulk_modulus(matrix), voigt_shear_modulus(matrix)
            return *(matrix[entry] for entry in names.values()), *moduli

        def undefined() -> tuple[jax.Array, ...]:
            return (jnp.asarray(jnp.nan, position.dtype),) * (len(names) + 2)

        length, stiffness = self.scale(without_time(params))
        limit = SAME_FORCE * self.force_tolerance * stiffness * length
        is_at_rest = largest_norm(self.interaction.force(position, cell, params, neighbors)) < limit
        # Away from equilibrium the linear solves would not converge.
        values = jax.lax.cond(is_at_rest, measured, undefined)
        return Observations({}, dict(zip((*names, "bulk_modulus", "shear_modulus"), values, strict=True)))


def stiffness_names(dimension: int) -> dict[str, tuple[int, int]]:
    """Return the rows and columns of the stiffness on and above its diagonal, by name such as ``c12``."""
    numbers = COMPONENTS[dimension]
    return {
        f"c{first}{second}": (row, column)
        for row, first in enumerate(numbers)
        for column, second in enumerate(numbers)
        if row <= column
    }


PARTICLE = ("particle",)
CELL = "needs a cell that repeats along all axes"


class Observed(NamedTuple):
    """An optional quantity.

    Attributes:
        see: ``moment -> `` the quantity.
        dimensions: names of the axes of its arrays.
        refusal: why it is undefined for a system; empty if it is defined.
    """

    see: Observer
    dimensions: dict[str, tuple[str, ...]]
    refusal: str


class Parts(NamedTuple):
    """Parts of a system of which optional quantities are computed.

    Attributes:
        touching: contacts of the particles.
        sites: sites of the start.
        elasticity: elastic constants.
        tasks: tasks, one after the other.
    """

    touching: Touching
    sites: Sites
    elasticity: Elasticity
    tasks: tuple[str, ...]


def observed(settings: Settings, parts: Parts) -> tuple[Observer, dict[str, tuple[str, ...]]]:
    """Return ``moment -> `` the chosen quantities, and the names of the axes of their arrays.

    Args:
        settings: settings of the system.
        parts: parts of the system.

    Raises:
        UserError: if a chosen quantity is undefined for the system.
    """
    chosen: list[Observed] = []
    for index, name in enumerate(settings["observed"]):
        observable = KINDS[name](parts)
        if observable.refusal:
            others = ", ".join(other for other, kind in KINDS.items() if not kind(parts).refusal)
            remedy = f"choose from {others}" if others else "nothing further may be observed here; remove 'observed'"
            raise UserError(f"{settings.path('observed')}[{index}] = '{name}' {observable.refusal}; {remedy}")
        chosen.append(observable)

    def see(moment: Moment) -> Observations:
        seen = [each.see(moment) for each in chosen]
        arrays = {name: array for part in seen for name, array in part.arrays.items()}
        return Observations(arrays, {name: number for part in seen for name, number in part.numbers.items()})

    return see, {name: axes for each in chosen for name, axes in each.dimensions.items()}


def _without_contacts(touching: Touching) -> str:
    ends = "needs an interaction that ends by itself, such as that of soft spheres, not one that a cutoff ends"
    return "" if touching.contact_terms() else ends


def _energy_of_particle(parts: Parts) -> Observed:
    interactions = parts.touching.interactions
    others = bool(interactions.many_body or interactions.tails)
    refusal = (
        "is the energy in pairs and fields, and Stillinger-Weber energies and tails of a cutoff belong to no particle"
        if others
        else ""
    )
    return Observed(parts.touching.of_energies, {"energy_of_particle": PARTICLE}, refusal)


def _packing_fraction(parts: Parts) -> Observed:
    def see(moment: Moment) -> Observations:
        params, dimension = without_time(moment.params), parts.touching.dimension
        return Observations({}, {"packing_fraction": parts.touching.particles.filled(params, moment.cell, dimension)})

    return Observed(see, {}, "" if parts.sites.room.is_closed else CELL)


def _without_sites(sites: Sites) -> str:
    return (
        "" if sites.placing.random is None else "needs a start that is not random: positions, a structure or a lattice"
    )


def _elastic_constants(parts: Parts) -> Observed:
    interactions, particles = parts.touching.interactions, parts.touching.particles
    refusal = "" if parts.sites.room.is_closed else CELL
    if "relax" not in parts.tasks:
        refusal = 'needs particles at rest, and so the task "relax"'
    if interactions.fields or particles.frozen.any():
        refusal = "needs a system without fields and without frozen particles"
    return Observed(parts.elasticity.of_moment, {}, refusal)


def _hexatic_order(parts: Parts) -> Observed:
    refusal = _without_contacts(parts.touching) or ("needs two dimensions" if parts.touching.dimension != 2 else "")
    return Observed(parts.touching.of_hexatic_order, {"hexatic_order": PARTICLE}, refusal)


def _origin(parts: Parts) -> Observed:
    refusal = _without_sites(parts.sites) or ("" if parts.sites.placing.places.fractions is not None else CELL)
    return Observed(parts.sites.of_origin, {"origin": PARTICLE}, refusal)


def _lattice_constant(parts: Parts) -> Observed:
    is_lattice = parts.sites.placing.places.lattice is not None
    refusal = ("" if parts.sites.room.is_closed else CELL) if is_lattice else "needs a start by lattice"
    return Observed(parts.sites.of_lattice, {}, refusal)


KINDS: dict[str, Callable[[Parts], Observed]] = {
    "contacts": lambda parts: Observed(
        parts.touching.of_contacts, {"contacts": PARTICLE}, _without_contacts(parts.touching)
    ),
    "load": lambda parts: Observed(parts.touching.of_load, {"load": PARTICLE}, _without_contacts(parts.touching)),
    "hexatic_order": _hexatic_order,
    "energy_of_particle": _energy_of_particle,
    "packing_fraction": _packing_fraction,
    "displacement": lambda parts: Observed(
        parts.sites.of_displacement, {"displacement": PARTICLE}, _without_sites(parts.sites)
    ),
    "origin": _origin,
    "lattice_constant": _lattice_constant,
    "elastic_constants": _elastic_constants,
}
