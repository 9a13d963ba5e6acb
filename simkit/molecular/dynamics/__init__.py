"""Molecular dynamics: methods that move particles in time, each a simulation of any interaction."""

from simkit.molecular.dynamics.langevin import langevin
from simkit.molecular.dynamics.motion import motion
from simkit.molecular.dynamics.protocol import DynamicsState, Evaluate, Method
from simkit.molecular.dynamics.velocities import maxwell_boltzmann
from simkit.molecular.dynamics.velocity_verlet import velocity_verlet

__all__ = ["DynamicsState", "Evaluate", "Method", "langevin", "maxwell_boltzmann", "motion", "velocity_verlet"]
