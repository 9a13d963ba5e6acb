"""Rigid bonds: constraints of distances in dynamics and minimization."""

from simkit.molecular.constraints.constraints import Constraints, combined, projected, rigid_bonds, rigid_water

__all__ = ["Constraints", "combined", "projected", "rigid_bonds", "rigid_water"]
