"""Molecules: topology, and energies of bonds, angles, dihedrals and impropers."""

from simkit.molecular.bonded.potentials import (
    AngularPotential,
    fene,
    harmonic_angle,
    harmonic_bond,
    harmonic_dihedral,
    periodic_dihedral,
    ryckaert_bellemans,
)
from simkit.molecular.bonded.terms import angle_interaction, bond_interaction, dihedral_interaction
from simkit.molecular.bonded.topology import Topology, chain, joined, molecule
from simkit.molecular.bonded.torsion_maps import torsion_map_interaction

__all__ = [
    "AngularPotential",
    "Topology",
    "angle_interaction",
    "bond_interaction",
    "chain",
    "dihedral_interaction",
    "fene",
    "harmonic_angle",
    "harmonic_bond",
    "harmonic_dihedral",
    "joined",
    "molecule",
    "periodic_dihedral",
    "ryckaert_bellemans",
    "torsion_map_interaction",
]
