"""The start that is checked before a run is the one that its own seed draws."""

import pytest

import simkit
from simkit.errors import UserError
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.rigid.test_start_check import SEEDS, refused, turned

# Two capsules at random angles, near enough that some of their starts overlap.
NEAR = {"boxes": 0, "spheres": 0, "capsules": 2, "spacing": 0.17, "tilt": 3.0}


def test_a_scenario_is_refused_for_its_own_seed():
    overlaps = [refused(build, load("falling_pile", NEAR | {"seed": seed})) for seed in SEEDS]
    assert 0 < sum(overlaps) < len(SEEDS)
    with pytest.raises(UserError, match=rf"member {overlaps.index(True)} \(seed = {overlaps.index(True)}\): bodies 0"):
        # The scenario's own seed is one that is fine, and so are those before the first that overlaps.
        simkit.sweep("falling_pile", {}, seeds=len(SEEDS), **NEAR | {"seed": 0}, steps=10, every=10)


def test_an_orientation_may_be_rounded():
    assert simkit.run(turned((0.7071, 0.7071, 0, 0)), steps=2).attrs["status"] == "ok"
