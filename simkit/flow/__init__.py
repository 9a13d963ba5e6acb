"""Incompressible flow between walls, on a staggered grid."""

from simkit.flow import obstacles
from simkit.flow.boundary.domain import Domain, domain, no_motion
from simkit.flow.boundary.scalar_sides import Robin, ScalarSide
from simkit.flow.boundary.side_data import Place
from simkit.flow.boundary.sides import FreeSlip, GivenPressure, Inflow, NavierSlip, Outflow, Side, Wall
from simkit.flow.description.system import system
from simkit.flow.diagnosis.measures import kinetic_energy
from simkit.flow.eddies import random_eddies
from simkit.flow.equations import Equations
from simkit.flow.grid import Axis, Grid, axis_of_faces, bounded_axis, periodic_axis, refined_axis
from simkit.flow.jax_cfd import from_jax_cfd, from_jax_cfd_spectral
from simkit.flow.operators.diffusion import squared_shear_rate
from simkit.flow.scalar import TransportedScalar, TransportedScalars
from simkit.flow.spectral import leading_wave, spectral_channel
from simkit.flow.stepping.stepper import FlowState, stepper
from simkit.flow.stepping.time_step import adaptive_time_step, fixed_time_step
from simkit.flow.systems.jax_cfd_channel import jax_cfd_channel
from simkit.flow.systems.kolmogorov_turbulence import kolmogorov_turbulence
from simkit.flow.systems.turbulent_channel import turbulent_channel
from simkit.flow.systems.viscosity_from_frames import viscosity_from_frames

__all__ = [
    "Axis",
    "Domain",
    "Equations",
    "FlowState",
    "FreeSlip",
    "GivenPressure",
    "Grid",
    "Inflow",
    "NavierSlip",
    "Outflow",
    "Place",
    "Robin",
    "ScalarSide",
    "Side",
    "TransportedScalar",
    "TransportedScalars",
    "Wall",
    "adaptive_time_step",
    "axis_of_faces",
    "bounded_axis",
    "domain",
    "fixed_time_step",
    "from_jax_cfd",
    "from_jax_cfd_spectral",
    "jax_cfd_channel",
    "kinetic_energy",
    "kolmogorov_turbulence",
    "leading_wave",
    "no_motion",
    "obstacles",
    "periodic_axis",
    "random_eddies",
    "refined_axis",
    "spectral_channel",
    "squared_shear_rate",
    "stepper",
    "system",
    "turbulent_channel",
    "viscosity_from_frames",
]
