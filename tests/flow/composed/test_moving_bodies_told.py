"""A body that moves too near a side or another body while a flow runs ends the run with a status that says so."""

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


@pytest.mark.parametrize("method", ["immersed_boundary", "direct_forcing"])
def test_a_body_that_meets_a_wall_later_is_noticed(method):
    found = simkit.run(tank({"ball": ball(0.5, "0.5 + time")}, obstacle_method=method), steps=400, every=20)
    assert found.attrs["status"] == "body_too_near" and failed(np.asarray(Status.BODY_TOO_NEAR))
    # Two cells of 1/16 between the wall at 1.5 and the body's upper end.
    last = float(found["ball.y"][-1])
    assert 1.5 - 0.2 - 2 / 16 - 1e-6 < last < 1.5 - 0.2 - 2 / 16 + 0.04 + 1e-6
    assert "within two cells" in MESSAGES[Status.BODY_TOO_NEAR]


def test_bodies_that_meet_each_other_later_are_noticed():
    bodies = {"still": ball(0.5, 0.4, 0.15), "falling": ball(0.5, "1.1 - time", 0.15)}
    found = simkit.run(tank(bodies, obstacle_method="direct_forcing"), steps=400, every=20)
    assert found.attrs["status"] == "body_too_near"
    # Between the centers two radii and two cells; the distance on the grid is that at cell centers.
    assert 0.3 + 1 / 16 < float(found["falling.y"][-1]) - 0.4 < 0.3 + 3 / 16


def test_a_body_that_turns_back_in_time_runs_on():
    found = simkit.run(tank({"ball": ball(0.5, "0.75 + 0.2*sin(20*time)")}), steps=200, every=20)
    assert found.attrs["status"] == "ok"
