"""The stream function of plane flows: the inverse of the curl, with flow through sides and around periodic axes."""

import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow
from tests.flow.test_stream_function import KEY

pytestmark = pytest.mark.usefixtures("x64")


def observed(simulation, steps=3):
    state = simulation.init(simulation.params, KEY)
    for _ in range(steps):
        state = simulation.step(state, simulation.params)
    return state, simulation.observe(state, simulation.params)


def test_flow_between_two_sides_is_the_difference_of_their_stream_function():
    simulation = flow.system(
        axes={
            "x": {"cells": 8, "to": 2.0, "lower": {"kind": "inflow", "u": "1 + y"}, "upper": "outflow"},
            "y": {"cells": 6, "to": 1.0, "lower": {"kind": "inflow", "v": 0.25}, "upper": "wall"},
        },
        viscosity=0.1,
        observed=["stream_function", "u_face", "v_face", "u"],
        parameters={"time_step": 0.01},
    )
    state, found = observed(simulation)
    psi = found["stream_function"]
    assert psi.shape == (9, 7)
    # 1.5 enters on the left, 0.5 from below and nothing above, so that 2 leaves on the right.
    np.testing.assert_allclose(psi[:, 0], -0.25 * np.linspace(0, 2, 9), rtol=0, atol=1e-14)
    np.testing.assert_allclose(psi[:, -1], 1.5, rtol=0, atol=1e-12)
    assert float(psi[-1, -1] - psi[-1, 0]) == pytest.approx(2.0, abs=1e-12)
    assert jnp.all(found["u_face"] == state.velocity[0]) and jnp.all(found["v_face"] == state.velocity[1])
    assert simulation.dimensions["v_face"] == ("x", "y_face")
    np.testing.assert_allclose(simulation.coordinates["y_face"], np.linspace(0, 1, 7))
