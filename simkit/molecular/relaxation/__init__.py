"""Relaxation to mechanical equilibrium, of particles and of the cell they repeat in."""

from simkit.molecular.relaxation.minimization import RelaxationState, relaxation

__all__ = ["RelaxationState", "relaxation"]
