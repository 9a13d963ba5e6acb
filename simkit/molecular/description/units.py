"""Systems of units by name: words for labels, and constants that formulas may take; CODATA 2018."""

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple

from simkit.core.settings import FormulaText

# J/K, 1/mol, C and F/m; the first three are exact. doi:10.1103/RevModPhys.93.025010
BOLTZMANN, AVOGADRO, ELEMENTARY, PERMITTIVITY = 1.380649e-23, 6.02214076e23, 1.602176634e-19, 8.8541878128e-12
ANGSTROM, NANOMETER = 1e-10, 1e-9
ELECTRONVOLT, KILOJOULE, KILOCALORIE = ELEMENTARY, 1e3 / AVOGADRO, 4184 / AVOGADRO
GRAM = 1e-3 / AVOGADRO


class UnitSystem(NamedTuple):
    """A system of units, whose unit of time follows of those of length, energy and mass.

    Attributes:
        words: names of the units of length, energy, mass and time.
        constants: by the names that formulas take.
    """

    words: Mapping[str, str]
    constants: Mapping[str, float]


def _of(length: tuple[str, float], energy: tuple[str, float], time: str) -> UnitSystem:
    """Return a system with masses in g/mol and charges in elementary charges.

    Args:
        length: name, and value in m.
        energy: name, and value in J.
        time: name.
    """
    (length_name, meter), (energy_name, joule) = length, energy
    second, pressure = meter * math.sqrt(GRAM / joule), joule / meter**3
    constants = {
        "coulomb_constant": ELEMENTARY**2 / (4 * math.pi * PERMITTIVITY * meter * joule),
        "kelvin": BOLTZMANN / joule,
        "femtosecond": 1e-15 / second,
        "picosecond": 1e-12 / second,
        "bar": 1e5 / pressure,
        "atmosphere": 101325 / pressure,
        "gigapascal": 1e9 / pressure,
        "angstrom": ANGSTROM / meter,
        "nanometer": NANOMETER / meter,
        "electronvolt": ELECTRONVOLT / joule,
        "kilojoule_per_mole": KILOJOULE / joule,
        "kilocalorie_per_mole": KILOCALORIE / joule,
        # Of masses in g/mol.
        "gram_per_cubic_centimeter": 1e3 * meter**3 / GRAM,
    }
    return UnitSystem({"length": length_name, "energy": energy_name, "mass": "g/mol", "time": time}, constants)


SYSTEMS = {
    "lj": UnitSystem({"length": "sigma", "energy": "epsilon", "mass": "m", "time": "tau"}, {"coulomb_constant": 1.0}),
    "md": _of(("nm", NANOMETER), ("kJ/mol", KILOJOULE), "ps"),
    "metal": _of(("angstrom", ANGSTROM), ("eV", ELECTRONVOLT), "(10.1805 fs)"),
    "real": _of(("angstrom", ANGSTROM), ("kcal/mol", KILOCALORIE), "(48.8882 fs)"),
}


def words_of(units: str | Mapping[str, str]) -> Mapping[str, str]:
    """Return the names of the units of length, energy, mass and time.

    Args:
        units: name of a system, or such names.
    """
    return SYSTEMS[units].words if isinstance(units, str) else units


def constants_of(units: str | Mapping[str, str], taken: Collection[str]) -> dict[str, FormulaText]:
    """Return the constants of a system of units as formulas.

    Args:
        units: name of the system, or names of units in words, which have none.
        taken: names that mean something else.
    """
    if not isinstance(units, str):
        return {}
    return {
        name: FormulaText(repr(value), f"units = '{units}'")
        for name, value in SYSTEMS[units].constants.items()
        if name not in taken
    }
