"""Invalid settings of flows and bodies give one line and exit code 2, and leave no folder."""

import re
from pathlib import Path

from tests.tables import every

MODEL = """
name = "mine"
title = "Mine"
summary = "A model of my own."
simulation = "rigid.mjcf"
[config]
model = '''{model}'''
engine = "{engine}"
[params.gravity]
default = 9.81
bounds = [0.0, 100.0]
doc = "acceleration of free fall"
[run]
steps = 4
every = 2
[render]
view = "bodies"
quantity = "position"
"""
WELL_FORMED = '<mujoco><worldbody><body><joint {joint}/><geom size="0.1"/></body></worldbody></mujoco>'
FACES = "config.axes.y={ faces = [-1.0, -0.5, -0.6, 0.5, 1.0], lower = 'wall', upper = 'wall' }"
MISTAKES = {
    "faces that do not increase": (
        ["couette_poiseuille", "--set", FACES],
        ["faces[1] = -0.5 is followed by -0.6", "increasing"],
    ),
    "stretching": (["couette_poiseuille", "--set", "config.axes.y.stretching=9.0"], ["stretching = 9", "[0, 6]"]),
    "cells of the cavity": (
        ["lid_driven_cavity", "--set", "config.axes.x.cells=2"],
        ["axes.x.cells = 2", "integer of 4 to 16384"],
    ),
    "moments of inertia": (
        ["asymmetric_top", "--set", "moment_x=1", "--set", "moment_y=1", "--set", "moment_z=3"],
        ["body 0", "1, 1, 3", "triangle inequality", "at most 2"],
    ),
    "mass": (["compliant_bounce", "--set", "mass=-1"], ["mass = -1", "0.001"]),
    "sweeps": (["box_stack", "--set", "sweeps=0"], ["sweeps = 0", "write one"]),
    "balls": (["compliant_bounce", "--set", "balls=0"], ["balls = 0", "1 to 100"]),
}
MODELS = {
    "malformed model": ("<mujoco><worldbody>", "mjx", ["XML"]),
    "unknown joint": (WELL_FORMED.format(joint='type="elastic"'), "mjx", ["elastic"]),
    "unknown engine": (WELL_FORMED.format(joint='type="hinge"'), "bullet", ["engine", "bullet", "mjx"]),
}


@every("case", MISTAKES)
def test_mistake_is_one_line_and_exit_code_2(case, simkit, tmp_path):
    words, expected = MISTAKES[case]
    ran = simkit("run", *words)
    assert ran.code == 2
    for part in expected:
        assert part in ran.line
    assert not list(tmp_path.iterdir())


def test_bodies_that_overlap_at_the_start_are_named(simkit, tmp_path):
    shipped = (Path(__file__).parents[2] / "scenarios" / "rigid" / "newtons_cradle.toml").read_text()
    # A user's file may allow what the shipped one does not.
    text = shipped.replace("bounds = [0.0, 0.1]", "bounds = [-0.1, 0.1]")
    assert text != shipped
    (tmp_path / "mine.toml").write_text(text)
    ran = simkit("run", "mine.toml", "--set", "gap=-0.01")
    assert ran.code == 2
    assert re.search(
        r"bodies \d \(sphere\) and \d \(sphere\) overlap by 0.01 m at the start; move them apart", ran.line
    )
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


@every("case", MODELS)
def test_mistake_in_a_model_is_one_line_and_exit_code_2(case, simkit, tmp_path):
    model, engine, expected = MODELS[case]
    (tmp_path / "mine.toml").write_text(MODEL.format(model=model, engine=engine))
    ran = simkit("run", "mine.toml")
    assert ran.code == 2
    for part in expected:
        assert part in ran.line
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]
