"""Conversion of states between precisions."""

import jax

from simkit.core.converge import converge
from tests.molecular.packings import packing


def relaxed(start, tolerance):
    simulation = packing(particles=16, force_tolerance=tolerance)
    state = start(simulation)
    return simulation, state, jax.jit(converge(simulation, 20_000))(state, simulation.params)
