"""Optional quantities of frames and diagnostics of a system of particles, by name."""

from collections.abc import Callable
from typing import NamedTuple

from simkit.core.settings import Settings
from simkit.errors import UserError
from simkit.molecular.composed.converted_params import without_time
from simkit.molecular.composed.elasticity import Elasticity
from simkit.molecular.composed.moment import Moment, Observations, Observer
from simkit.molecular.composed.sites import Sites
from simkit.molecular.composed.touching import Touching

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


def _contacts(parts: Parts) -> Observed:
    return Observed(parts.touching.of_contacts, {"contacts": PARTICLE}, _without_contacts(parts.touching))


def _load(parts: Parts) -> Observed:
    return Observed(parts.touching.of_load, {"load": PARTICLE}, _without_contacts(parts.touching))


def _hexatic_order(parts: Parts) -> Observed:
    refusal = _without_contacts(parts.touching) or ("needs two dimensions" if parts.touching.dimension != 2 else "")
    return Observed(parts.touching.of_hexatic_order, {"hexatic_order": PARTICLE}, refusal)


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


def _displacement(parts: Parts) -> Observed:
    return Observed(parts.sites.of_displacement, {"displacement": PARTICLE}, _without_sites(parts.sites))


def _origin(parts: Parts) -> Observed:
    refusal = _without_sites(parts.sites) or ("" if parts.sites.placing.places.fractions is not None else CELL)
    return Observed(parts.sites.of_origin, {"origin": PARTICLE}, refusal)


def _without_sites(sites: Sites) -> str:
    return (
        "" if sites.placing.random is None else "needs a start that is not random: positions, a structure or a lattice"
    )


def _lattice_constant(parts: Parts) -> Observed:
    refusal = "" if parts.sites.room.is_closed else CELL
    if parts.sites.placing.places.lattice is None:
        refusal = "needs a start by lattice"
    return Observed(parts.sites.of_lattice, {}, refusal)


def _elastic_constants(parts: Parts) -> Observed:
    interactions, particles = parts.touching.interactions, parts.touching.particles
    refusal = "" if parts.sites.room.is_closed else CELL
    if "relax" not in parts.tasks:
        refusal = 'needs particles at rest, and so the task "relax"'
    if interactions.fields or particles.frozen.any():
        refusal = "needs a system without fields and without frozen particles"
    return Observed(parts.elasticity.of_moment, {}, refusal)


KINDS: dict[str, Callable[[Parts], Observed]] = {
    "contacts": _contacts,
    "load": _load,
    "hexatic_order": _hexatic_order,
    "energy_of_particle": _energy_of_particle,
    "packing_fraction": _packing_fraction,
    "displacement": _displacement,
    "origin": _origin,
    "lattice_constant": _lattice_constant,
    "elastic_constants": _elastic_constants,
}
