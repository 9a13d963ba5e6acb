"""Charges in periodic cells: Ewald summation and smooth particle-mesh Ewald."""

from simkit.molecular.electrostatics.charges import Charges, Split, split
from simkit.molecular.electrostatics.ewald import ewald, wave_vectors

__all__ = ["Charges", "Split", "ewald", "split", "wave_vectors"]
