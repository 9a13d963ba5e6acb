"""Charges in periodic cells: Ewald summation and smooth particle-mesh Ewald."""

from simkit.molecular.electrostatics.charges import Charges, Split, split
from simkit.molecular.electrostatics.ewald import ewald, wave_vectors
from simkit.molecular.electrostatics.particle_mesh import mesh_for, particle_mesh_ewald

__all__ = ["Charges", "Split", "ewald", "mesh_for", "particle_mesh_ewald", "split", "wave_vectors"]
