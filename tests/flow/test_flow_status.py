"""The status of a flow: what it says of a state that is finite and wrong."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow
from simkit.core.rollout import trajectory
from simkit.core.status import CAUTIONS, Status
from simkit.errors import UserError


def stream():
    return flow.system(
        axes={
            "x": {"cells": 8, "to": 2, "lower": {"kind": "inflow", "u": "entry"}, "upper": "outflow"},
            "y": {"cells": 4, "to": 1, "lower": "free_slip", "upper": "free_slip"},
        },
        viscosity=0.01,
        initial={"u": "entry"},
        parameters={"entry": 1.0, "time_step": 0.1},
    )


def test_a_state_is_named_that_is_carried_too_far_in_a_step_or_enters_by_its_exit():
    simulation = stream()
    shapes = jax.eval_shape(simulation.init, simulation.params, jax.eval_shape(jax.random.key, 0))
    rest = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    status = jax.jit(simulation.status)
    found = {}
    # The cells are 1/4 wide, so that a speed of 1.73/0.4 is the limit.
    for speed in (0.0, 4.3, 4.4, -1.0, np.nan):
        velocity = (jnp.full_like(rest.velocity[0], speed), rest.velocity[1])
        found[speed] = Status(int(status(dataclasses.replace(rest, velocity=velocity), simulation.params)))
    assert list(found.values()) == [
        Status.OK,
        Status.OK,
        Status.COURANT_ABOVE_LIMIT,
        Status.BACKFLOW,
        Status.NON_FINITE,
    ]
    assert {Status.COURANT_ABOVE_LIMIT, Status.BACKFLOW} <= set(CAUTIONS)


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
