"""Molecular simulation: interacting particles, minimizers and packings."""

from simkit.molecular.packing import soft_sphere_packing

__all__ = ["soft_sphere_packing"]
