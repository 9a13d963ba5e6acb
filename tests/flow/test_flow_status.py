"""The status of a flow: what it says of a state that is finite and wrong."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit import flow
from simkit.core.status import CAUTIONS, Status


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
