"""Observables of a system: contacts, displacements, elastic constants, and how frames name them."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once, precise_product
from simkit.core.simulation import Arrays, Params
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.analysis import order
from simkit.molecular.analysis.elasticity import elastic_constants, voigt_bulk_modulus, voigt_shear_modulus
from simkit.molecular.bonded.terms import bonded_terms
from simkit.molecular.description.composition import System
from simkit.molecular.description.molecules import MoleculeKind
from simkit.molecular.description.pair_energies import PairTerm, at_pairs
from simkit.molecular.description.vibrations import phonon_dimensions, phonons_at
from simkit.molecular.minimizers import largest_norm
from simkit.molecular.neighbors import pairs
from simkit.molecular.neighbors.neighbor_list import Excluded, partners_of
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
        velocity: (N, d), of dynamics; ``None`` at rest.
        kick: change of the velocities by the forces in half a step, (N, d), of a method whose steps end with it.
    """

    position: jax.Array
    cell: Cell
    params: Params
    neighbors: Any
    velocity: jax.Array | None = None
    kick: jax.Array | None = None


class Observations(NamedTuple):
    """Quantities of a moment.

    Attributes:
        arrays: arrays that frames store.
        numbers: scalars, for diagnostics.
    """

    arrays: Arrays
    numbers: Arrays


def of_pairs(
    system: System, index: int, moment: Moment
) -> tuple[Pairs, dict[str, jax.Array], tuple[jax.Array, jax.Array]]:
    """Return the pairs of one energy, its parameters for each, and the species of both, (N, K) each.

    Args:
        system: the system.
        index: of the pair energy.
        moment: positions and neighbors.
    """
    position, cell, interactions = moment.position, moment.cell, system.interactions
    neighbors = moment.neighbors[index] if interactions.parts > 1 else moment.neighbors
    species, count = jnp.asarray(system.particles.species), len(moment.position)
    bonded, excluded = interactions.pairs[index].excluded(system.particles), None
    if len(bonded):
        half = None if system.images is None else spaces.of_cell(cell, position.shape[1]).widths.min() / 2
        excluded = Excluded(jnp.asarray(partners_of(bonded, count)), half)
    if system.images is not None:
        position, cell = spaces.repeated(position, cell, system.images)
    apart = order.candidate_pairs(position, spaces.of_cell(cell, position.shape[1]), neighbors, excluded)
    apart = jax.tree.map(lambda each: each[:count], apart)
    apart = apart._replace(partner=apart.partner % count)
    values = interactions.pairs[index].parameters(moment.params)
    first = jnp.arange(count)[:, None]
    kinds = species[:, None], species[apart.partner]
    return apart, at_pairs(values, first, apart.partner, system.particles.species), kinds


def touching_pairs(system: System, moment: Moment) -> tuple[Pairs, jax.Array]:
    """Return the pairs of all energies that end by themselves, and the mask of those that touch, (N, K), each once."""
    separations, touches, earlier = [], [], []

    def within(term: PairTerm, kinds: tuple[jax.Array, jax.Array], distance: jax.Array) -> jax.Array:
        assert term.cutoff is not None  # contacts have one
        cutoff = term.cutoff(moment.params)
        return jnp.asarray(term.between)[kinds] & (distance < (cutoff[kinds] if cutoff.ndim else cutoff))

    for index in system.interactions.contacts:
        term = system.interactions.pairs[index]
        apart, _, kinds = of_pairs(system, index, moment)
        touch = within(term, kinds, apart.distance)
        for other in earlier:
            touch &= ~within(other, kinds, apart.distance)
        earlier.append(term)
        separations.append(apart)
        touches.append(apart.is_pair & touch)
    joined = (
        jax.tree.map(lambda *each: jnp.concatenate(each, axis=1), *separations)
        if len(separations) > 1
        else separations[0]
    )
    # Whether a pair touches is decided once for all that is counted.
    return joined, computed_once(jnp.concatenate(touches, axis=1))


def contact_network(system: System, moment: Moment) -> order.Contacts:
    """Return the contacts: pairs within the reach of an energy that ends by itself, such as that of soft spheres."""
    apart, touching = touching_pairs(system, moment)
    return order.Contacts(touching, apart.partner)


def rattlers(system: System, moment: Moment) -> jax.Array:
    """Return the mask of particles without load-bearing contacts, (N,) booleans."""
    return ~order.load_bearing(contact_network(system, moment), system.room.dimension)


def _contacts(system: System, moment: Moment) -> Observations:
    """Return the number of contacts of each particle, (N,), their mean, and the fraction of rattlers."""
    network, kind = contact_network(system, moment), moment.position.dtype
    numbers = order.contact_statistics(network, system.room.dimension, kind)
    return Observations({"contacts": network.touching.sum(axis=1).astype(kind)}, numbers)


def _load(system: System, moment: Moment) -> Observations:
    """Return the virial of each particle over the mean of all, (N,)."""
    virial = jnp.zeros(len(moment.position), moment.position.dtype)
    for index in system.interactions.contacts:
        apart, values, _ = of_pairs(system, index, moment)
        push = jnp.where(apart.is_pair, system.interactions.pairs[index].potential.force(apart.distance, **values), 0)
        virial = virial + (push * apart.distance).sum(axis=1)
    return Observations({"load": order.load(virial)}, {})


def _hexatic_order(system: System, moment: Moment) -> Observations:
    """Return how nearly the contacts of each particle point to the corners of a hexagon, (N,), and the mean."""
    hexatic = order.polygon_order(*touching_pairs(system, moment), 6)
    return Observations({"hexatic_order": hexatic}, {"hexatic_order": hexatic.mean()})


def _energy_of_particle(system: System, moment: Moment) -> Observations:
    """Return each particle's half of its pair energies, and its energy in fields, (N,)."""
    energy = jnp.zeros(len(moment.position), moment.position.dtype)
    for index, term in enumerate(system.interactions.pairs):
        apart, values, _ = of_pairs(system, index, moment)
        energy = energy + pairs.energy_per_particle(apart, term.potential, **values)
    for other in system.interactions.others:
        assert other.each is not None  # those of many bodies are refused
        energy = energy + other.each.energy(moment.position, moment.cell, moment.params, ())
    inside = spaces.of_cell(moment.cell, system.room.dimension).wrap(moment.position)
    for field in system.interactions.fields:
        energy = energy + field.energies(inside, moment.params)
    return Observations({"energy_of_particle": energy}, {})


def _packing_fraction(system: System, moment: Moment) -> Observations:
    filled = system.particles.filled(moment.params, moment.cell, system.room.dimension)
    return Observations({}, {"packing_fraction": filled})


def _displacement(system: System, moment: Moment) -> Observations:
    """Return the distance of each particle from its site, (N,); sites follow the cell, and a drift that is free."""
    dynamics, home = system.dynamics, system.placing.standing(moment.params).astype(moment.position.dtype)
    if system.settings["relax"]["cell"] or (dynamics is not None and dynamics["barostat"] is not None):
        assert moment.cell is not None  # there is one that moves
        edges = system.room.vectors(moment.params)
        home = precise_product(home, spaces.inverse_of(edges), spaces.lattice_vectors(moment.cell))
    away = moment.position - home
    # Nothing holds or pushes the particles from outside: moving together has no meaning.
    if system.conserves_momentum and not system.interactions.fields and system.frozen is None:
        away = spaces.displacement_without_drift(spaces.free(system.room.dimension), moment.position, home)
    squared = jnp.sum(away**2, axis=1)
    distance = jnp.sqrt(squared)
    numbers = {"largest_displacement": distance.max(), "mean_square_displacement": jnp.mean(squared)}
    return Observations({"displacement": distance}, numbers)


def _origin(system: System, moment: Moment) -> Observations:
    """Return the x coordinate of the site of each particle as a fraction of the cell, (N,)."""
    fractions = system.placing.places.fractions
    assert fractions is not None  # called only if positions fill a cell
    return Observations({"origin": jnp.asarray(fractions[:, 0], moment.position.dtype)}, {})


def _lattice_constant(system: System, moment: Moment) -> Observations:
    """Return the distance of nearest neighbors and the lattice constant of a crystal of the volume of the cell."""
    lattice = system.placing.places.lattice
    assert lattice is not None  # called only for a start by lattice
    edges, repeats = lattice
    nearest = (spaces.of_cell(moment.cell, len(edges)).volume / float(edges.prod())) ** (1 / len(edges))
    return Observations({}, {"nearest_distance": nearest, "lattice_constant": float(edges[0]) / repeats[0] * nearest})


# Components of a symmetric tensor, in the order of Voigt.
TENSOR = {2: ("xx", "yy", "xy"), 3: ("xx", "yy", "zz", "yz", "xz", "xy")}


def stress_names(dimension: int) -> tuple[str, ...]:
    """Return the names of the components of the stress, such as ``stress_xy``."""
    return tuple(f"stress_{axes}" for axes in TENSOR[dimension])


def _stress(system: System, moment: Moment) -> Observations:
    """Return the components of the stress, ``(dE/dstrain - sum m (v v + w w)) / V``, positive under tension.

    With velocities half a kick w around those at the end of a step, v, as the temperature has them.
    """
    stress = system.interaction.stress(moment.position, moment.cell, moment.params, moment.neighbors)
    for moved in (moment.velocity, moment.kick):
        if moved is not None:
            mass = system.particles.of_each("mass", moment.params)[:, None]
            volume = spaces.of_cell(moment.cell, system.room.dimension).volume
            stress = stress - precise_product((mass * moved).T, moved) / volume
    places = (tuple("xyz".index(axis) for axis in axes) for axes in TENSOR[system.room.dimension])
    return Observations(
        {}, {name: stress[place] for name, place in zip(stress_names(len(stress)), places, strict=True)}
    )


# Factor on the force tolerance: an evaluated force differs from the stored one of the minimizer by round-off.
SAME_FORCE = 2.0
# Numbers of the Voigt components, of xx yy xy in two dimensions and of xx yy zz yz xz xy in three.
COMPONENTS = {2: (1, 2, 6), 3: (1, 2, 3, 4, 5, 6)}


def _elastic_constants(system: System, moment: Moment) -> Observations:
    """Return the stiffnesses ``c11``, ``c12`` to ``c66`` and the moduli, NaN until the system is at rest.

    ``c12`` is the derivative of the stress along xx by the strain along yy, with relaxed particles. The moduli are
    those of Voigt, means over all directions.
    """
    position, cell, params, neighbors = moment.position, moment.cell, moment.params, moment.neighbors
    assert cell is not None  # refused in free space
    names = stiffness_names(position.shape[1])

    def measured() -> tuple[jax.Array, ...]:
        matrix = elastic_constants(
            system.interaction,
            position,
            spaces.lattice_vectors(cell),
            params,
            neighbors=neighbors,
            rattlers=rattlers(system, moment) if system.has_rattlers else None,
        ).stiffness
        moduli = voigt_bulk_modulus(matrix), voigt_shear_modulus(matrix)
        return *(matrix[entry] for entry in names.values()), *moduli

    def undefined() -> tuple[jax.Array, ...]:
        return (jnp.asarray(jnp.nan, position.dtype),) * (len(names) + 2)

    length, stiffness = system.scale(params)
    limit = SAME_FORCE * system.settings["relax"]["force_tolerance"] * stiffness * length
    is_at_rest = largest_norm(system.interaction.force(position, cell, params, neighbors)) < limit
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


def _molecules(system: System, moment: Moment) -> Observations:
    """Return the molecule of each particle; the mean square bond as its root, end-to-end distance and gyration radius.

    The ends are the first and the last atom; the radius is that of equal masses.
    """
    space, kinds = spaces.of_cell(moment.cell, system.room.dimension), system.particles.molecules.kinds
    bonds, ends, radii = [], [], []
    for kind in kinds:
        first, second = kind.repeated(kind.topology.bonds).T
        away = spaces.displacement(space, moment.position[first], moment.position[second])
        bonds.append(jnp.sum(away**2, axis=1))
        places = whole(kind, moment.position, space)
        ends.append(jnp.sum(places[:, -1] ** 2, axis=-1))
        centered = places - places.mean(axis=1, keepdims=True)
        radii.append(jnp.mean(jnp.sum(centered**2, axis=-1), axis=1))
    numbers = {
        "bond_length": jnp.sqrt(jnp.mean(jnp.concatenate(bonds))),
        "mean_square_end_to_end": jnp.mean(jnp.concatenate(ends)),
        "mean_square_gyration": jnp.mean(jnp.concatenate(radii)),
    }
    index = np.full(system.particles.count, system.particles.molecules.count)
    index[: len(system.particles.molecules.index)] = system.particles.molecules.index
    return Observations({"molecule": jnp.asarray(index, moment.position.dtype)}, numbers)


def _measured(system: System, moment: Moment) -> Arrays:
    """Return the distances, angles and dihedrals of molecules that are measured, by name."""
    numbers = {}
    for kind in system.particles.molecules.kinds:
        for name, atoms in kind.measured().items():
            coordinate = bonded_terms(lambda q: q, [atoms.tolist()], len(atoms), (), None)
            numbers[name] = coordinate.energies(moment.position, moment.cell, {})[0]
    return numbers


def whole(kind: MoleculeKind, position: jax.Array, space: spaces.Space) -> jax.Array:
    """Return the positions of the atoms of molecules relative to the first, (count, n, d), along nearest bonds.

    Args:
        kind: the molecules.
        position: of all particles, (N, d).
        space: the geometry.
    """
    parent, path = kind.tree()
    places = position[kind.particles]
    steps = spaces.displacement(space, places, places[:, parent])
    return jnp.einsum("ij,mjd->mid", jnp.asarray(path, position.dtype), steps, precision="highest")


# Distance of the nearest neighbor beyond which a particle of a cluster is unbound, in bonds; and rows of distances that
# are computed at a time.
UNBOUND, ROWS = 2.0, 64


def _unbound(system: System, moment: Moment) -> Observations:
    """Return the number of particles of a cluster in free space that have no neighbor."""
    position, params = moment.position, moment.params
    limit, reach = UNBOUND * system.scale(params).length, system.interactions.reach(params)
    limit = limit if reach is None else jnp.where(reach > 0, jnp.minimum(limit, reach), limit)
    indices, padding = jnp.arange(len(position)), system.placing.places.padding
    absent = jnp.zeros(len(position), bool) if padding is None else padding.absent(params)

    def is_alone(index: jax.Array) -> jax.Array:
        squared = jnp.sum((position - position[index]) ** 2, axis=1)
        return jnp.min(jnp.where((indices == index) | absent, jnp.inf, squared)) > limit**2

    count = jnp.sum(jax.lax.map(is_alone, indices, batch_size=ROWS) & ~absent)
    return Observations({}, {"unbound": count.astype(position.dtype)})


QUANTITIES: dict[str, Callable[[System, Moment], Observations]] = {
    "contacts": _contacts,
    "load": _load,
    "hexatic_order": _hexatic_order,
    "energy_of_particle": _energy_of_particle,
    "packing_fraction": _packing_fraction,
    "displacement": _displacement,
    "origin": _origin,
    "lattice_constant": _lattice_constant,
    "elastic_constants": _elastic_constants,
    "stress": _stress,
    "molecules": _molecules,
}
# Those that are numbers of the whole system; of the others frames store one number for each particle.
OF_SYSTEM = ("packing_fraction", "lattice_constant", "elastic_constants", "stress")
# Arrays whose name is not that of the quantity.
ARRAYS = {"molecules": "molecule"}


def reasons(system: System) -> dict[str, str]:
    """Return why each of the quantities is undefined for a system; empty if it is defined."""
    interactions, places = system.interactions, system.placing.places
    ends = "needs an interaction that ends by itself, such as that of soft spheres, not one that a cutoff ends"
    of_contacts = "" if interactions.contacts else ends
    starts = "needs a start that is not random: positions, a structure or a lattice"
    of_sites = "" if system.placing.random is None else starts
    cell = "needs a cell that repeats along all axes"
    of_cell = "" if system.room.is_closed else cell
    shared = (
        "is the energy in pairs and fields, and bonds, energies of more particles and tails of a cutoff belong to no "
        "particle"
    )
    is_shared = (
        interactions.many_body
        or interactions.tails
        or interactions.bonded
        or interactions.weighted
        or any(other.each is None for other in interactions.others)
    )
    of_elasticity = of_cell if "relax" in system.sequence else 'needs particles at rest, and so the task "relax"'
    if interactions.fields or system.frozen is not None:
        of_elasticity = "needs a system without fields and without frozen particles"
    of_stress = of_cell
    if len(system.sequence) > 1 or any(kind.settings["rigid"] for kind in system.particles.molecules.kinds):
        of_stress = "needs one task, and molecules without rigid bonds"
    return {
        "contacts": of_contacts,
        "load": of_contacts,
        "hexatic_order": of_contacts or ("" if system.room.dimension == 2 else "needs two dimensions"),
        "energy_of_particle": shared if is_shared else "",
        "packing_fraction": of_cell,
        "displacement": of_sites,
        "origin": of_sites or (cell if places.fractions is None else ""),
        "lattice_constant": "needs a start by lattice" if places.lattice is None else of_cell,
        "elastic_constants": of_elasticity,
        "stress": of_stress,
        "molecules": "" if system.particles.molecules.kinds else "needs molecules",
    }


def observed_dimensions(system: System) -> dict[str, tuple[str, ...]]:
    """Return the names of the axes of the arrays of frames besides positions.

    Args:
        system: the system.

    Raises:
        UserError: if a quantity that is chosen is undefined for it.
    """
    names, undefined = system.settings["observed"], reasons(system)
    for index, name in enumerate(names):
        if undefined[name]:
            others = ", ".join(other for other, reason in undefined.items() if not reason)
            remedy = f"choose from {others}" if others else "nothing further may be observed here; remove 'observed'"
            raise UserError(f"{system.settings.path('observed')}[{index}] = '{name}' {undefined[name]}; {remedy}")
    arrays = (str(ARRAYS.get(name, name)) for name in names if name not in OF_SYSTEM)
    return dict.fromkeys(("species", "diameter", *arrays), ("particle",)) | phonon_dimensions(system)


def observe(system: System, position: jax.Array, params: Params) -> Arrays:
    """Return species and diameters of the particles, (N,) each, which every frame stores."""
    return {
        "species": jnp.asarray(system.particles.species, position.dtype),
        "diameter": system.particles.of_each("diameter", params).astype(position.dtype),
    }


def see(system: System, moment: Moment) -> Observations:
    """Return the quantities that are chosen, phonons, and the number of unbound particles of a cluster that relaxes."""
    seen = [QUANTITIES[name](system, moment) for name in system.settings["observed"]]
    seen.append(Observations(*phonons_at(system, moment.position, moment.cell, moment.params)))
    seen.append(Observations({}, _measured(system, moment)))
    is_cluster = system.room.is_free and not system.interactions.fields and system.particles.count > 1
    if is_cluster and "relax" in system.sequence:
        seen.append(_unbound(system, moment))
    arrays = {name: array for part in seen for name, array in part.arrays.items()}
    return Observations(arrays, {name: number for part in seen for name, number in part.numbers.items()})
