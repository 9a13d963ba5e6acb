"""Structures: positions and species of atoms, extended XYZ files, and perfect crystals."""

from simkit.molecular.structures.extended_xyz import parse_extended_xyz, write_extended_xyz
from simkit.molecular.structures.lattices import (
    Lattice,
    body_centered_cubic,
    diamond,
    face_centered_cubic,
    fluorite,
    hexagonal_close_packed,
    honeycomb,
    rocksalt,
    square,
    triangular,
)
from simkit.molecular.structures.structures import Structure, from_atoms, to_atoms

__all__ = [
    "Lattice",
    "Structure",
    "body_centered_cubic",
    "diamond",
    "face_centered_cubic",
    "fluorite",
    "from_atoms",
    "hexagonal_close_packed",
    "honeycomb",
    "parse_extended_xyz",
    "rocksalt",
    "square",
    "to_atoms",
    "triangular",
    "write_extended_xyz",
]
