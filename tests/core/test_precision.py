"""Conversion of states between precisions."""

import jax
import pytest

from simkit.core.converge import converge
from simkit.core.precision import in_precision_of
from tests.molecular.packings import packing


def relaxed(start, tolerance):
    simulation = packing(particles=16, force_tolerance=tolerance)
    state = start(simulation)
    return simulation, state, jax.jit(converge(simulation, 20_000))(state, simulation.params)


def test_state_of_another_simulation_is_refused(x64):
    simulation = packing(particles=16)
    with pytest.raises(ValueError, match="pytree"):
        in_precision_of(simulation, {"position": 0.0})
