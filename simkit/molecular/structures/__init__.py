"""Structures: positions and species of atoms, extended XYZ files, and perfect crystals."""

from simkit.molecular.structures.extended_xyz import parse_extended_xyz, write_extended_xyz
from simkit.molecular.structures.lattices import (
    Lattice,
    diamond,
    face_centered_cubic,
    hexagonal_close_packed,
    honeycomb,
    square,
    triangular,
)
from simkit.molecular.structures.structures import Structure, from_atoms, to_atoms

__all__ = [
    "Lattice",
    "Structure",
    "diamond",
    "face_centered_cubic",
    "from_atoms",
    "hexagonal_close_packed",
    "honeycomb",
    "parse_extended_xyz",
    "square",
    "to_atoms",
    "triangular",
    "write_extended_xyz",
]
