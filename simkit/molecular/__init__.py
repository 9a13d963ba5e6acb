"""Molecular simulation: interactions, minimizers and dynamics; packings, clusters, crystals and liquids."""

from simkit.molecular import (
    barriers,
    bonded,
    constraints,
    dynamics,
    electrostatics,
    imports,
    interactions,
    minimizers,
    phonons,
    potentials,
    relaxation,
    spaces,
    structures,
)
from simkit.molecular.description.system import system
from simkit.molecular.imports import from_lammps, from_openmm
from simkit.molecular.systems.basin_hopping import basin_hopping
from simkit.molecular.systems.bubble_raft import bubble_raft
from simkit.molecular.systems.colloid_assembly import colloid_assembly
from simkit.molecular.systems.jamming import jamming
from simkit.molecular.systems.learned_pair import learned_pair

__all__ = [
    "barriers",
    "basin_hopping",
    "bonded",
    "bubble_raft",
    "colloid_assembly",
    "constraints",
    "dynamics",
    "electrostatics",
    "from_lammps",
    "from_openmm",
    "imports",
    "interactions",
    "jamming",
    "learned_pair",
    "minimizers",
    "phonons",
    "potentials",
    "relaxation",
    "spaces",
    "structures",
    "system",
]
