"""Relaxation to mechanical equilibrium, of particles and of their periodic cell."""

from simkit.molecular.relaxation.minimization import RelaxationState, relaxation

__all__ = ["RelaxationState", "relaxation"]
