"""A body that moves too near a side or another body ends the run with the status BODY_TOO_NEAR."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit import flow
from simkit.core.status import MESSAGES, Status, failed

WALLS = {"lower": "wall", "upper": "wall"}


def tank(obstacles, **more):
    return flow.system(
        axes={"x": {"cells": 16, "length": 1.0, **WALLS}, "y": {"cells": 24, "length": 1.5, **WALLS}},
        viscosity=0.05,
        obstacles=obstacles,
        parameters={"time_step": 0.002},
        **more,
    )


def ball(x, y, radius=0.2):
    return {"shape": "circle", "radius": radius, "position": [x, y]}


def status_at(simulation, time):
    shapes = jax.eval_shape(simulation.init, simulation.params, jax.eval_shape(jax.random.key, 0))
    state = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    state = dataclasses.replace(state, time=jnp.full_like(state.time, time))
    return Status(int(simulation.status(state, simulation.params)))


@pytest.mark.parametrize("method", ["immersed_boundary", "direct_forcing"])
@pytest.mark.parametrize("way", [1, -1])
def test_a_body_within_two_cells_of_a_wall_is_detected(method, way):
    # At the wall its nearest point, 0.55 away at the start; two cells are 0.125.
    simulation = tank({"ball": ball(0.5, f"0.75 + {way}*time")}, obstacle_method=method)
    assert status_at(simulation, 0.0) == status_at(simulation, 0.42) == Status.OK
    assert status_at(simulation, 0.43) == status_at(simulation, 2.0) == Status.BODY_TOO_NEAR
    assert "within two cells" in MESSAGES[Status.BODY_TOO_NEAR] and failed(np.asarray(Status.BODY_TOO_NEAR))


def test_bodies_within_two_cells_of_each_other_are_detected():
    # Along a line of cell centers, so that the gap is met: 1.05 - time - 0.3 - 2 * 0.1.
    bodies = {"still": ball(0.5, 0.3, 0.1), "falling": ball(0.5, "1.2 - time", 0.1)}
    simulation = tank(bodies, obstacle_method="direct_forcing")
    assert status_at(simulation, 0.5) == Status.OK
    assert status_at(simulation, 0.62) == Status.BODY_TOO_NEAR


def test_a_run_ends_where_bodies_are_too_near():
    found = simkit.run(tank({"ball": ball(0.5, "0.5 + time")}, obstacle_method="direct_forcing"), steps=400, every=20)
    assert found.attrs["status"] == "body_too_near"
    assert 1.5 - 0.2 - 2 / 16 - 1e-6 < float(found["ball.y"][-1]) < 1.5 - 0.2 - 2 / 16 + 0.04 + 1e-6
