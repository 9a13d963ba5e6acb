"""A viscosity that leaves the range of stability during a run ends the run with a status that says so."""

import math

import jax
import pytest

from simkit import flow
from simkit.core.rollout import trajectory
from simkit.core.status import Status, status_of

pytestmark = pytest.mark.usefixtures("x64")


def decaying(viscosity, time_step=0.01):
    """Waves between two sides without friction, which decay as exp(-4 integral of the viscosity)."""
    return flow.system(
        axes={
            "x": {"cells": 4, "length": 1.0, "periodic": True},
            "y": {"cells": 24, "to": math.pi, "lower": "free_slip", "upper": "free_slip"},
        },
        viscosity=viscosity,
        initial={"u": "cos(2*y)"},
        method="adams_bashforth",
        implicit=[],
        parameters={"nu": 0.2, "time_step": time_step},
    )


def ended(simulation, steps):
    state, _, numbers = jax.jit(trajectory(simulation, steps, steps))(simulation.params, jax.random.key(0))
    return Status(int(status_of(simulation)(state, simulation.params))), numbers["largest_velocity"][-1]


@pytest.mark.parametrize("viscosity", ["nu*(1 + 4*time)", "nu*(1 - time)"], ids=["too large", "negative"])
def test_a_viscosity_that_leaves_its_range_is_named(viscosity):
    # The limit of the step, 1/(4/dx^2 + 4/dy^2)/nu = 0.0168 at the start, is below 0.01 from nu = 0.336 on.
    simulation = decaying(viscosity)
    simulation.check(simulation.params, jax.random.key(0))
    assert ended(simulation, 10)[0] == Status.OK
    assert ended(simulation, 120)[0] == Status.VISCOSITY_OUT_OF_RANGE


def test_a_viscosity_within_its_range_goes_on():
    status, speed = ended(decaying("nu*(1 + 4*time)", 0.003125), 320)
    assert status == Status.OK
    # Differences give the wave the rate (2 - 2 cos(2 dy))/dy^2 in place of 4; the integral of the viscosity is 0.6.
    dy = math.pi / 24
    rate = (2 - 2 * math.cos(2 * dy)) / dy**2
    assert speed == pytest.approx(math.exp(-0.6 * rate) * math.cos(dy), rel=1e-4)


def test_a_viscosity_of_parameters_has_no_status():
    assert decaying("nu").status is None
