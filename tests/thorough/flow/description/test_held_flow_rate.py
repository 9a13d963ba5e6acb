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


def driven(**settings):
    """Return a flow between two walls, and its diagnostics at the start and once it is steady."""
    simulation = flow.system(
        axes={
            "x": {"cells": 4, "length": 1.0, "periodic": True},
            "y": {"cells": 6, "from": -1, "to": 1, "stretching": 1.0, "lower": "wall", "upper": "wall"},
        },
        viscosity=1,
        largest_speed=1,
        parameters={"push": 2.0, "time_step": 0.05},
        **settings,
    )
    return simulation, trajectory(simulation, 300, 300)(simulation.params, jax.random.key(0))[2]


def test_drive_is_the_mean_of_a_force():
    simulation, found = driven(force={"x": "push*(1 + y + sin(2*pi*x))"})
    # The faces of four equal cells of one wave: their mean is zero to round-off, and that of y over unequal cells too.
    np.testing.assert_allclose(found["drive"], 2.0, rtol=1e-14)
    assert simulation.quantities["drive"].unit == "1"


def test_drive_is_the_sum_of_a_force_and_of_what_holds_the_flow_rate():
    held = driven(flow_rate=0.3)[1]
    both = driven(flow_rate=0.3, force={"x": "push"})[1]
    # The same flow in the end, whatever part of the drive is prescribed: the start has decayed like exp(-2.5 * 15).
    np.testing.assert_allclose(both["drive"][-1], held["drive"][-1], rtol=1e-12)
    friction = (held["y_lower.shear_x"] + held["y_upper.shear_x"])[-1] / 2
    np.testing.assert_allclose(held["drive"][-1], friction, rtol=1e-12)
    assert held["drive"][0] == 0 and both["drive"][0] == 2
