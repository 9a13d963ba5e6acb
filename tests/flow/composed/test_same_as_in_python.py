"""Flows described by data give the numbers of the factories written in Python."""

import jax
import numpy as np
import pytest

from simkit import flow

pytestmark = pytest.mark.usefixtures("x64")


def channel_from_data(**more):
    return flow.system(
        axes={
            "x": {"cells": 8, "length": 6, "periodic": True},
            "y": {"cells": 8, "from": -1, "to": 1, "lower": "wall", "upper": {"kind": "wall", "u": "wall_velocity"}},
        },
        viscosity="1/reynolds",
        initial={"eddies": "perturbation"},
        method="adams_bashforth",
        implicit=["x", "y"],
        parameters={"reynolds": 100.0, "perturbation": 0.1, "wall_velocity": 0.2, "time_step": 0.015},
        **more,
    )


PAIRS = {
    "channel": (
        lambda: channel_from_data(force={"x": "3/reynolds"}),
        lambda: flow.channel(cells=(8, 8)),
        {"perturbation": 0.1, "wall_velocity": 0.2},
    ),
    "channel at a held flow rate": (
        lambda: channel_from_data(flow_rate="1 + wall_velocity/2"),
        lambda: flow.channel(cells=(8, 8), drive="flow_rate"),
        {"perturbation": 0.1, "wall_velocity": 0.2},
    ),
}


def after_some_steps(simulation, params):
    def steps(params, key):
        state = simulation.init(params, key)
        return jax.lax.fori_loop(0, 6, lambda _, s: simulation.step(s, params), state)

    return jax.jit(steps)(params, jax.random.key(3))


@pytest.mark.parametrize("name", PAIRS)
def test_a_flow_from_data_equals_that_of_its_factory(name):
    from_data, in_python, values = PAIRS[name]
    from_data, in_python = from_data(), in_python().with_params(values)
    found = after_some_steps(from_data, from_data.params)
    expected = after_some_steps(in_python, in_python.params)
    size = max(float(np.abs(f).max()) for f in expected.velocity)
    for f, g in zip(found.velocity, expected.velocity, strict=True):
        # Round-off of some hundred operations, among them those of the projection at the start.
        np.testing.assert_allclose(f, g, rtol=0, atol=1e-13 * size)
    np.testing.assert_allclose(found.drive, expected.drive, rtol=1e-10, atol=1e-13)
