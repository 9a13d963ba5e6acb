"""Rows of balls on a line: as many leave as arrive, whatever the time step."""

import jax
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.core.status import Status
from simkit.rigid import newtons_cradle

KEY = jax.random.key_data(jax.random.key(0))


def final(steps=8, incoming=1, **params):
    simulation = newtons_cradle(incoming=incoming).with_params(time_step=0.8 / steps, **params)
    state, frames, diagnostics = jax.jit(trajectory(simulation, steps, steps))(simulation.params, KEY)
    assert simulation.status(state, simulation.params) == Status.OK
    return np.asarray(frames["velocity"][-1, :, 0]), jax.tree.map(lambda values: values[-1], diagnostics)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("incoming", [1, 2, 3])
@pytest.mark.parametrize("gap", [0.0, 1e-4])
def test_as_many_balls_leave_as_arrive(incoming, gap):
    velocity, diagnostics = final(incoming=incoming, gap=gap, restitution=1.0)
    # Every ball that comes in passes its velocity through all that stand: a rounding at each of up to six impacts.
    np.testing.assert_allclose(velocity, np.arange(5) >= 5 - incoming, atol=1e-14)
    assert diagnostics["impacts"] == incoming * (5 - incoming)
    np.testing.assert_allclose(diagnostics["energy"], 0.2 * incoming / 2, rtol=1e-13)
    # Touching balls, two centers of order 1 apart, may overlap by the rounding of either.
    assert diagnostics["penetration"] < 1e-15
