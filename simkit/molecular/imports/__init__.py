"""Systems and force fields of other programs, as data of ``molecular.system``."""

from simkit.molecular.imports.imported import ImportedSystem
from simkit.molecular.imports.lammps import from_lammps
from simkit.molecular.imports.openmm_systems import from_openmm

__all__ = ["ImportedSystem", "from_lammps", "from_openmm"]
