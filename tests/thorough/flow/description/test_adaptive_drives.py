"""Order in time of flows with varying steps, driven by a held flow rate or by the pressure on open sides."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow
from simkit.core.rollout import segment

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key(0)
WALLS = {"cells": 10, "from": -0.5, "to": 0.5, "lower": "wall", "upper": "wall"}
PULSATING = "1 + 0.7*sin(8*time)"
DRIVES = {
    "held flow rate": {
        "axes": {"x": {"cells": 8, "length": 1.6, "periodic": True}, "y": WALLS},
        "flow_rate": PULSATING,
        "initial": {"u": "1.5*(1 - 4*y**2)*(1 + 0.2*sin(2*pi*y))", "v": "0.1*sin(2*pi*x/1.6)*cos(pi*y)"},
    },
    "pressure on both ends": {
        "axes": {
            "x": {
                "cells": 8,
                "length": 1.6,
                "lower": {"kind": "pressure", "pressure": "8 + 8*sin(8*time)"},
                "upper": "pressure",
            },
            "y": WALLS,
        },
        "initial": {"u": "1.5*(1 - 4*y**2)"},
    },
    "inflow and pressure": {
        "axes": {
            "x": {
                "cells": 8,
                "length": 1.6,
                "lower": {"kind": "inflow", "u": f"1.5*(1 - 4*y**2)*({PULSATING})"},
                "upper": {"kind": "pressure", "pressure": "0.3*cos(6*time)"},
            },
            "y": WALLS,
        },
        "initial": {"u": "1.5*(1 - 4*y**2)"},
    },
}
SCHEMES = {
    "Runge-Kutta": ({"method": "runge_kutta", "implicit": []}, 3),
    "Adams-Bashforth": ({"method": "adams_bashforth", "implicit": []}, 2),
    "Runge-Kutta, implicit": ({"method": "runge_kutta", "implicit": ["x", "y"]}, 2),
    "Adams-Bashforth, implicit": ({"method": "adams_bashforth", "implicit": ["x", "y"]}, 2),
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("drive", DRIVES)
def test_steps_that_vary_keep_the_order(drive, scheme):
    method, order = SCHEMES[scheme]

    def reached(steps, time_step, **settings):
        simulation = flow.system(
            viscosity=0.02,
            parameters={"time_step": time_step},
            largest_speed=None if settings else 6,
            **DRIVES[drive],
            **method,
            **settings,
        )
        params = simulation.params

        def advance(state, _):
            state = simulation.step(state, params)
            return state, (state.time_step, simulation.diagnose(state, params)["mean_u"])

        state, found = jax.jit(lambda: jax.lax.scan(advance, simulation.init(params, KEY), length=steps))()
        return state, *found

    errors = []
    for count in (1, 2):
        state, lengths, means = reached(24 * count, 9.0, courant_number=0.2 / count)
        assert float(lengths.max() / lengths.min()) > 1.5
        if drive == "held flow rate":
            np.testing.assert_allclose(means, 1 + 0.7 * jnp.sin(8 * jnp.cumsum(lengths)), rtol=1e-12)
        fine, *_ = reached(800, float(state.time[0]) / 800)
        errors.append(float(jnp.max(jnp.abs(state.velocity[0] - fine.velocity[0]))))
    assert order - 0.3 < math.log2(errors[0] / errors[1]) < order + 0.5


def test_a_held_flow_rate_holds_from_the_start():
    """A start with another flow rate is no jump within the first step, whose error would be of first order."""

    def reached(steps):
        simulation = flow.system(
            axes=DRIVES["held flow rate"]["axes"],
            viscosity=0.05,
            flow_rate="rate",
            initial={"u": "2*(1 - 4*y**2)"},
            implicit=[],
            largest_speed=0.1,
            parameters={"time_step": 0.2 / steps, "rate": 0.5},
        )
        params = simulation.params
        start = jax.jit(simulation.init)(params, KEY)
        assert float(simulation.diagnose(start, params)["mean_u"]) == pytest.approx(0.5, rel=1e-14)
        return segment(simulation, steps)(start, params).velocity[0]

    fine = reached(320)
    errors = [float(jnp.max(jnp.abs(reached(steps) - fine))) for steps in (20, 40)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(3, abs=0.2)
