"""Systems of units of LAMMPS: the constant of Coulomb's law and the words of units."""

from collections.abc import Mapping
from typing import NamedTuple


class LammpsUnits(NamedTuple):
    """A system of units.

    Attributes:
        coulomb: energy of two unit charges at unit distance, with the digits of LAMMPS.
        words: names of the units of length, energy, mass and time; time is that of length, energy and mass.
    """

    coulomb: float
    words: Mapping[str, str]


def _words(length: str, energy: str, mass: str, time: str) -> Mapping[str, str]:
    return {"length": length, "energy": energy, "mass": mass, "time": time}


UNITS = {
    "lj": LammpsUnits(1.0, _words("sigma", "epsilon", "m", "tau")),
    "real": LammpsUnits(332.06371, _words("angstrom", "kcal/mol", "g/mol", "48.888 fs")),
    "metal": LammpsUnits(14.399645, _words("angstrom", "eV", "g/mol", "10.181 fs")),
}
