"""Charges in periodic cells: Ewald summation and smooth particle-mesh Ewald."""

from simkit.molecular.electrostatics.ewald import Charges, Split, ewald, split, wave_vectors

__all__ = ["Charges", "Split", "ewald", "split", "wave_vectors"]
