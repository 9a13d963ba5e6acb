"""Analysis of configurations of particles: order, contacts, elasticity, vibrations, correlations."""

from simkit.molecular.analysis.correlations import (
    WaveVectors,
    diffusion_coefficient,
    squared_displacement,
    structure_factor,
    velocity_autocorrelation,
    wave_vectors,
)
from simkit.molecular.analysis.order import bond_order, third_order

__all__ = [
    "WaveVectors",
    "bond_order",
    "diffusion_coefficient",
    "squared_displacement",
    "structure_factor",
    "third_order",
    "velocity_autocorrelation",
    "wave_vectors",
]
