"""The status of a flow: what it says of a state that is finite and wrong."""

import jax
import numpy as np
import pytest

from simkit import flow
from simkit.core.rollout import trajectory
from simkit.core.status import Status
from simkit.errors import UserError


def room(leaving):
    """A room into which one fan blows, and from which another one draws at a given speed."""
    fans = {
        name: ["wall", {"kind": "inflow", "u": speed, "where": f"abs(y - {height}) < 0.125"}]
        for name, speed, height in (("lower", 1.0, 0.25), ("upper", leaving, 0.75))
    }
    return flow.system(
        axes={"x": {"cells": 12, "to": 2.0, **fans}, "y": {"cells": 8, "to": 1.0, "lower": "wall", "upper": "wall"}},
        viscosity=0.02,
        parameters={"time_step": 0.02},
    )


def test_fluid_leaves_at_a_given_velocity_where_given_flows_balance():
    balanced, leaky = room("where(time > 0.05, 0.5, 1)"), room(0.5)
    with pytest.raises(UserError, match=r"0\.25 enters while 0\.125 leaves"):
        leaky.check(leaky.params, jax.random.key(0))
    balanced.check(balanced.params, jax.random.key(0))
    state, _, numbers = jax.jit(trajectory(balanced, 4, 2))(balanced.params, jax.random.key(0))
    np.testing.assert_allclose(numbers["x_lower.flow"], 0.25, rtol=1e-5)
    np.testing.assert_allclose(numbers["x_upper.flow"], -0.25, rtol=1e-5)
    assert numbers["divergence"].max() < 1e-4
    # At the end the second fan is given half of what enters.
    assert Status(int(balanced.status(state, balanced.params))) == Status.UNBALANCED
