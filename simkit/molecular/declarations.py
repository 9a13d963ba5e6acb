"""Declarations of parameters and quantities that several particle systems share."""

from simkit.core.parameter import POSITIVE
from simkit.core.settings import number
from simkit.core.simulation import Quantity

TOLERANCE = number("largest residual force; 1e-10 suits float64, 1e-5 float32", bounds=(POSITIVE[0], 0.999))


def particle_quantities(
    length: str = "length", energy: str = "energy", dimension: str = "d", force: str = "stiffness x length"
) -> dict[str, Quantity]:
    """Return the declarations of observed arrays and diagnostics, by name.

    Args:
        length: unit of length.
        energy: unit of energy.
        dimension: of space, as written in the exponents of units.
        force: of which ``force_tolerance`` is a multiple, in words.
    """
    pressure = f"{energy}/{length}^{dimension}"
    table = {
        "iteration": ("1", "iteration of the minimizer"),
        "position": (length, "position"),
        "diameter": (length, "diameter"),
        "box": (length, "lengths of the box"),
        "cell": (length, "lattice vectors of the cell, as rows"),
        "displacement": (length, "displacement from the site"),
        "energy": (energy, "potential energy"),
        "energy_per_particle": (energy, "potential energy per particle"),
        "energy_of_particle": (energy, "energy of each particle"),
        "force_evaluations": ("1", "evaluations of the forces so far"),
        "max_force": (f"{energy}/{length}", "largest force on a particle"),
        "pressure": (pressure, "pressure"),
        "volume": (f"{length}^{dimension}", "volume of the cell"),
        "max_stress_error": (pressure, "largest deviation of the stress from the external pressure"),
        "nearest_distance": (length, "distance of nearest neighbors"),
        "lattice_constant": (length, "lattice constant"),
        "largest_displacement": (length, "largest displacement from the site"),
        "contacts": ("1", "contacts of each particle"),
        "contact_number": ("1", "mean contacts of a particle that bears load"),
        "rattler_fraction": ("1", "fraction of particles that bear no load"),
        "packing_fraction": ("1", "packing fraction"),
        "hexatic_order": ("1", "hexatic order (of each particle; diagnosed, the mean)"),
        "load": ("1", "virial of each particle over the mean"),
        "overlap_energy": (energy, "overlap energy of each particle"),
    }
    limits = {
        "max_force": f"force_tolerance x {force}",
        "max_stress_error": f"force_tolerance x {force} / length^({dimension} - 1)",
    }
    return {name: Quantity(unit, doc, limit=limits.get(name, "")) for name, (unit, doc) in table.items()}
