"""Systems and force fields of other programs, as data of ``molecular.system``."""

from simkit.molecular.imports.imported import ImportedSystem
from simkit.molecular.imports.lammps import from_lammps

__all__ = ["ImportedSystem", "from_lammps"]
