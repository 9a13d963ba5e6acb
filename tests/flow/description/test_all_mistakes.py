"""Mistakes in keys, values and formulas of a flow are reported together."""

import pytest

from simkit import flow
from simkit.errors import UserError
from simkit.scenario.build import build
from simkit.scenario.catalog import parse_scenario

AXES = {
    "x": {"cells": 8, "length": 2, "periodic": True},
    "y": {"cells": 8, "to": 1, "lower": "wall", "upper": {"kind": "wall", "u": "cos(omga*time)"}},
}


def test_unknown_names_in_all_formulas_are_reported_together():
    with pytest.raises(UserError) as caught:
        flow.system(
            axes=AXES,
            viscosity="nuu",
            initial={"u": "sin(q)"},
            scalars={"c": {"diffusivity": "kapa", "sides": {"y": {"lower": 0, "upper": 1}}}},
            parameters={"nu": 0.1, "omega": 1.0, "kappa": 0.1, "time_step": 0.01},
        )
    messages = [str(caught.value), *caught.value.others]
    for name, meant in (("omga", "omega"), ("nuu", "nu"), ("q", ""), ("kapa", "kappa")):
        assert any(f"'{name}' is not known here" in line and meant in line for line in messages), name
    assert len(messages) == 4, messages


def test_an_unknown_argument_and_other_mistakes_are_reported_together():
    text = """\
name = "wrong"
title = "Wrong"
summary = "Wrong."
simulation = "flow.domain"
[config]
viscocity = 3
viscosity = "nu*"
obstacle_method = "magic"
axes.x = { cells = 2.5, length = -4 }
[params]
nu = 0.1
time_step = 0.01
[run]
steps = 1
every = 1
[render]
view = "field"
quantity = "speed"
"""
    with pytest.raises(UserError) as caught:
        build(parse_scenario(text, "wrong.toml"))
    messages = [str(caught.value), *caught.value.others]
    assert "viscocity is not an argument of flow.domain; did you mean 'viscosity'?" in messages[0]
    for words in ("axes.x.cells = 2.5", "axes.x.length = -4", "viscosity: column 1", "obstacle_method = 'magic'"):
        assert any(words in line for line in messages), words
