"""Molecular dynamics: integrators and thermostats, each a simulation of any interaction."""

from simkit.molecular.dynamics.brownian import brownian
from simkit.molecular.dynamics.bussi import bussi
from simkit.molecular.dynamics.langevin import langevin
from simkit.molecular.dynamics.measures import maxwell_boltzmann
from simkit.molecular.dynamics.method import DynamicsState, Evaluate, Freedom, Method, Options, Schedule
from simkit.molecular.dynamics.motion import motion
from simkit.molecular.dynamics.nose_hoover import nose_hoover
from simkit.molecular.dynamics.splitting import Barostat, MidStep, Thermostat, splitting, thermostatted
from simkit.molecular.dynamics.stochastic_cell_rescaling import stochastic_cell_rescaling
from simkit.molecular.dynamics.velocity_verlet import velocity_verlet

__all__ = [
    "Barostat",
    "DynamicsState",
    "Evaluate",
    "Freedom",
    "Method",
    "MidStep",
    "Options",
    "Schedule",
    "Thermostat",
    "brownian",
    "bussi",
    "langevin",
    "maxwell_boltzmann",
    "motion",
    "nose_hoover",
    "splitting",
    "stochastic_cell_rescaling",
    "thermostatted",
    "velocity_verlet",
]
