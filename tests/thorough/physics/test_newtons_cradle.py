"""Rows of balls on a line: as many leave as arrive, whatever the time step."""

import functools

import jax
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.core.status import Status
from simkit.rigid import newtons_cradle

KEY = jax.random.key_data(jax.random.key(0))


@functools.cache
def compiled(steps, incoming, wide):
    """Return the simulation and its compiled run, in double precision or not."""
    simulation = newtons_cradle(incoming=incoming)
    return simulation, jax.jit(trajectory(simulation, steps, steps))


def final(steps=8, incoming=1, **params):
    simulation, run = compiled(steps, incoming, jax.config.jax_enable_x64)
    params = simulation.with_params(time_step=0.8 / steps, **params).params
    state, frames, diagnostics = run(params, KEY)
    assert simulation.status(state, params) == Status.OK
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


@pytest.mark.usefixtures("x64")
def test_an_inelastic_row_transmits_part_of_the_speed():
    e = 0.9
    velocity, diagnostics = final(restitution=e)
    np.testing.assert_allclose(velocity[-1], ((1 + e) / 2) ** 4, rtol=1e-14)
    np.testing.assert_allclose(diagnostics["momentum"], 0.2, rtol=1e-14)
