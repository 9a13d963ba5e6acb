"""The drive of a held flow rate balances drag and friction, by every method."""

import jax
import numpy as np
import pytest

from simkit import flow
from simkit.core.rollout import trajectory

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("method", ["adams_bashforth", "runge_kutta"])
@pytest.mark.parametrize("time_step", [0.016, 0.004])
def test_drive_equals_drag_plus_wall_friction(method, time_step):
    simulation = flow.system(
        axes={
            "x": {"cells": 24, "length": 4, "periodic": True},
            "y": {"cells": 24, "from": -2, "to": 2, "lower": "wall", "upper": "wall"},
        },
        viscosity=0.2,
        flow_rate=0.4,
        method=method,
        obstacles={"body": {"shape": "circle", "radius": 0.6, "position": [2.1, 0.3], "spin": 1.0}},
        obstacle_method="direct_forcing",
        largest_speed=2.0,
        parameters={"time_step": time_step},
    )
    steps = round(4 / time_step)
    _, _, found = trajectory(simulation, steps, steps)(simulation.params, jax.random.key(0))
    drag, below, above = (float(found[name][-1]) for name in ("body.drag", "y_lower.shear_x", "y_upper.shear_x"))
    # At t = 4 the flow is steady to 1e-3; friction is that at the end of a step, drive and drag their mean over it.
    np.testing.assert_allclose(16 * float(found["drive"][-1]), drag + 4 * (below + above), rtol=2e-4)
