"""Forces of contacts: weights of a stack, and of a soft ball between others."""

import numpy as np
import pytest

import simkit
from simkit import rigid

pytestmark = pytest.mark.usefixtures("x64")

GROUND = {"shape": "plane", "name": "ground", "friction": 0.5}


def test_the_ground_bears_the_weight_of_a_stack_and_the_lower_box_that_of_the_upper():
    box = {"shape": "box", "lengths": 0.2}
    stack = rigid.system(
        bodies=[
            GROUND,
            {**box, "name": "lower", "mass": 2, "position": [0, 0, 0.1]},
            {**box, "name": "upper", "mass": 1, "position": [0.02, 0, 0.3]},
        ],
        gravity=10.0,
        method={"name": "impulses", "sweeps": 50, "impacts": 0},
        forces={
            "ground": {"first": "lower", "second": "ground"},
            "between": {"first": "lower", "second": "upper"},
            "turned": {"first": "upper", "second": "lower"},
            "all": {"first": "lower"},
        },
        parameters={"time_step": 0.005},
    )
    last = {name: float(values[-1]) for name, values in simkit.run(stack, steps=400, every=400).items() if "." in name}
    for name, expected in {
        "ground.normal": 30,
        "ground.fz": 30,
        "between.normal": 10,
        "between.fz": -10,
        "turned.fz": 10,
        "all.normal": 40,
        "all.fz": 20,
    }.items():
        assert last[name] == pytest.approx(expected, abs=1e-9), name
    # The upper weight acts 2 cm beside the middle, and on the ground its share of that.
    assert (last["between.x"], last["ground.x"]) == pytest.approx((0.02, 0.02 / 3), abs=1e-6)
    assert (last["between.z"], last["ground.z"]) == pytest.approx((0.2, 0.0), abs=1e-4)


def test_a_soft_ball_is_pressed_with_its_weight_and_touches_nothing_in_the_air():
    ball = {"shape": "sphere", "name": "ball", "radius": 0.1, "mass": 1, "position": [0, 0, "0.1 + gap"]}
    method = {"name": "compliant", "substeps": 20, "stiffness": 1e4, "dissipation": 5.0}
    scene = rigid.system(
        bodies=[GROUND, ball],
        gravity=10.0,
        method=method,
        forces={"ground": {"first": "ball", "second": "ground"}},
        parameters={"time_step": 0.005, "gap": 0.001},
    )
    run = simkit.run(scene, steps=400, every=40)
    assert np.isnan(run["shortest_contact"][0]) and np.isnan(run["ground.z"][0]) and run["ground.normal"][0] == 0
    assert float(run["ground.fz"][-1]) == pytest.approx(10, rel=1e-3)
