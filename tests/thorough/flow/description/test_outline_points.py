"""The points on the outline of an immersed boundary: refused, or named in the status, where the cells need more."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow
from simkit.core.rollout import trajectory
from simkit.core.status import Status, failed
from simkit.errors import UserError

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key(0)


def stream(radius=0.2, **more):
    return flow.system(
        axes={
            "x": {"cells": 24, "from": -2, "to": 4, "lower": {"kind": "inflow", "u": 1}, "upper": "outflow"},
            "y": {"cells": 20, "from": -2.5, "to": 2.5, "lower": "free_slip", "upper": "free_slip"},
        },
        viscosity=0.1,
        initial={"u": 1},
        obstacles={"rod": {"shape": "circle", "radius": "radius", "position": [0, 0], **more}},
        obstacle_method="immersed_boundary",
        parameters={"radius": radius, "time_step": 0.02},
    )


def with_radius(simulation, radius):
    return {**simulation.params, "radius": jnp.asarray(radius, float)}


def drag(simulation, radius):
    run = jax.jit(trajectory(simulation, 20, 20))
    return float(run(with_radius(simulation, radius), KEY)[2]["rod.drag"][-1])


def test_a_body_larger_than_its_points_resolve_is_refused_with_their_number():
    simulation = stream(0.4)
    simulation.check(with_radius(simulation, 0.5), KEY)
    with pytest.raises(UserError, match=r"the 12 points .* are 2\.09 cells apart, .* set points = 21"):
        simulation.check(with_radius(simulation, 1.0), KEY)
    stream(0.4, points=21).check(with_radius(simulation, 1.0), KEY)


def test_a_number_of_points_that_is_accepted_gives_the_drag_of_many():
    radius = 1.0
    few, many = (stream(0.4, points=points) for points in (17, 60))
    few.check(with_radius(few, radius), KEY)
    assert drag(few, radius) == pytest.approx(drag(many, radius), rel=2e-3)
    with pytest.raises(UserError, match="set points = 21"):
        stream(0.4, points=12).check(with_radius(few, radius), KEY)
    assert drag(stream(0.4, points=8), radius) != pytest.approx(drag(many, radius), rel=2e-2)


def status_at(simulation, params, time=0.0):
    shapes = jax.eval_shape(simulation.init, params, jax.eval_shape(jax.random.key, 0))
    state = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return Status(int(simulation.status(dataclasses.replace(state, time=jnp.full_like(state.time, time)), params)))


def test_the_status_names_outlines_that_became_too_long():
    simulation = stream(0.4)
    assert status_at(simulation, with_radius(simulation, 0.7)) == Status.OK
    assert status_at(simulation, with_radius(simulation, 0.75)) == Status.OUTLINE_TOO_COARSE
    growing = stream(0.4, size="1 + time")
    assert status_at(growing, growing.params, 0.7) == Status.OK
    assert status_at(growing, growing.params, 0.9) == Status.OUTLINE_TOO_COARSE
    assert failed(np.asarray(Status.OUTLINE_TOO_COARSE))
