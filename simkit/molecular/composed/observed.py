"""Optional quantities of frames and diagnostics of a system of particles, by name."""

from collections.abc import Callable
from typing import NamedTuple

from simkit.core.settings import Settings
from simkit.molecular.composed.converted_params import without_time
from simkit.molecular.composed.moment import Moment, See, Seen
from simkit.molecular.composed.settings import LATTICES
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

    see: See
    dimensions: dict[str, tuple[str, ...]]
    refusal: str


def observed(settings: Settings, touching: Touching, sites: Sites) -> tuple[See, dict[str, tuple[str, ...]]]:
    """Return ``moment -> `` the chosen quantities, and the names of the axes of their arrays.

    Args:
        settings: settings of the system.
        touching: contacts of the particles.
        sites: sites of the start.

    Raises:
        UserError: if a chosen quantity is undefined for the system.
    """
    chosen: list[Observed] = []
    for index, name in enumerate(settings["observed"]):
        found = KINDS[name](touching, sites)
        if found.refusal:
            raise settings.refuse("observed", f"[{index}] = '{name}' {found.refusal}; leave it out")
        chosen.append(found)

    def see(moment: Moment) -> Seen:
        parts = [each.see(moment) for each in chosen]
        arrays = {name: array for part in parts for name, array in part.arrays.items()}
        return Seen(arrays, {name: number for part in parts for name, number in part.numbers.items()})

    return see, {name: axes for each in chosen for name, axes in each.dimensions.items()}


def _contacts(touching: Touching, sites: Sites) -> Observed:
    del sites
    return Observed(touching.of_contacts, {"contacts": PARTICLE}, _without_contacts(touching))


def _load(touching: Touching, sites: Sites) -> Observed:
    del sites
    return Observed(touching.of_load, {"load": PARTICLE}, _without_contacts(touching))


def _hexatic_order(touching: Touching, sites: Sites) -> Observed:
    del sites
    refusal = _without_contacts(touching) or ("needs two dimensions" if touching.dimension != 2 else "")
    return Observed(touching.of_hexatic_order, {"hexatic_order": PARTICLE}, refusal)


def _without_contacts(touching: Touching) -> str:
    ends = "needs an energy that ends by itself, such as that of soft spheres"
    return "" if touching.contact_terms() else ends


def _energy_of_particle(touching: Touching, sites: Sites) -> Observed:
    del sites
    acts = touching.acts
    others = bool(acts.silicon or acts.others or acts.tails)
    refusal = "is that of pairs and fields, and here are other energies" if others else ""
    return Observed(touching.of_energies, {"energy_of_particle": PARTICLE}, refusal)


def _packing_fraction(touching: Touching, sites: Sites) -> Observed:
    def see(moment: Moment) -> Seen:
        params, dimension = without_time(moment.params), touching.dimension
        return Seen({}, {"packing_fraction": touching.particles.filled(params, moment.cell, dimension)})

    return Observed(see, {}, "" if sites.room.is_closed else CELL)


def _displacement(touching: Touching, sites: Sites) -> Observed:
    del touching
    return Observed(sites.of_displacement, {"displacement": PARTICLE}, _without_sites(sites))


def _origin(touching: Touching, sites: Sites) -> Observed:
    del touching
    refusal = _without_sites(sites) or ("" if sites.placing.places.fractions is not None else CELL)
    return Observed(sites.of_origin, {"origin": PARTICLE}, refusal)


def _without_sites(sites: Sites) -> str:
    return "" if sites.placing.random is None else "needs a start that no random key draws, such as a lattice"


def _lattice_constant(touching: Touching, sites: Sites) -> Observed:
    del touching
    refusal = "" if sites.room.is_closed else CELL
    if sites.lattice is None or sites.lattice[0] not in LATTICES:
        refusal = "needs a start by lattice"
    return Observed(sites.of_lattice, {}, refusal)


KINDS: dict[str, Callable[[Touching, Sites], Observed]] = {
    "contacts": _contacts,
    "load": _load,
    "hexatic_order": _hexatic_order,
    "energy_of_particle": _energy_of_particle,
    "packing_fraction": _packing_fraction,
    "displacement": _displacement,
    "origin": _origin,
    "lattice_constant": _lattice_constant,
}
