"""Couette-Poiseuille flow on stretched grids, start-up of Couette flow, pressure gradient of a held flow rate."""

import jax
import numpy as np
import pytest

from simkit.core.rollout import segment
from tests.flow.plane_channel import plane_channel

pytestmark = pytest.mark.usefixtures("x64")


def program(steps, config):
    """The simulation, and ``params -> (profile, diagnostics)`` after some steps: one program for all values."""
    simulation = plane_channel(**{"length": 4.0, **config})

    @jax.jit
    def run(params):
        state = segment(simulation, steps)(simulation.init(params, jax.random.key(0)), params)
        return simulation.observe(state, params)["profile"], simulation.diagnose(state, params)

    return simulation, lambda time, **values: run(simulation.with_params(time_step=time / steps, **values).params)


def after(time, steps, *, config, **params):
    """Simulation, its profile and its diagnostics at a given time."""
    simulation, run = program(steps, config)
    return simulation, *run(time, **params)


def test_sum_of_both_flows_is_of_second_order_on_stretched_grids():
    errors = []
    for cells in (12, 24, 48):
        config = {"cells": (4, cells), "stretching": 1.5}
        _, _, found = after(18.0, 1800, config=config, reynolds=1.0, forcing=-0.5, wall_velocity=1.0)
        errors.append(float(found["poiseuille_deviation"]))
        # What is pushed is braked, on any grid.
        assert found["net_force"] == pytest.approx(0, abs=1e-11)
    # The next terms are smaller by the square of the ratio of neighboring cells less 1, 0.2 on the coarsest grid.
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx(2, abs=0.1)


def test_held_flow_rate_finds_the_pressure_gradient():
    soon, at_last = (program(steps, {"cells": (8, 48), "is_held": True})[1] for steps in (25, 5000))
    for forcing, wall_velocity in ((1.0, 0.0), (-0.5, 1.0)):
        params = {"reynolds": 10.0, "forcing": forcing, "wall_velocity": wall_velocity, "perturbation": 0.3}
        check_held(soon(0.5, **params)[1], at_last(100.0, **params)[1], forcing, wall_velocity)


def check_held(early, late, forcing, wall_velocity):
    # The mean over the cells is held; the flow rate has the first correction of the midpoint rule besides:
    # h^2/24 times the change of the slope, 3 F, over the height 2.
    for found in (early, late):
        assert found["bulk_velocity"] == pytest.approx(forcing + wall_velocity / 2, abs=48**-2 * 4 / 24 * 30)
    # More is needed to get going than to keep going: the layers at the walls are thin.
    assert abs(early["pressure_gradient"]) > 1.2 * abs(late["pressure_gradient"])
    # 3 F/Re, but for that correction, 1/(2 n^2) = 2e-4 relative.
    assert late["pressure_gradient"] == pytest.approx(3 * forcing / 10, rel=1e-3)
    assert late["net_force"] == pytest.approx(0, abs=1e-10)
