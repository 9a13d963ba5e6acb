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


def full(formula="1", **others):
    """Settings of a flow with a formula at every kind of place."""
    return {
        "axes": {
            "x": {
                "cells": 16,
                "from": -1,
                "to": 1,
                "lower": ["wall", {"kind": "inflow", "u": formula, "where": f"{formula} > 0"}],
                "upper": "outflow",
            },
            "y": {"cells": 16, "from": -1, "to": 1, "lower": {"kind": "wall", "u": formula}, "upper": "wall"},
        },
        "viscosity": formula,
        "force": {"y": formula},
        "initial": {"u": formula},
        "scalars": {
            "dye": {
                "diffusivity": formula,
                "initial": formula,
                "source": formula,
                "sides": {"x": {"lower": formula}, "y": {"lower": {"value": formula}, "upper": {"flux": formula}}},
            }
        },
        "obstacles": {
            "post": {
                "distance": formula,
                "position": [formula, formula],
                "angle": formula,
                "pressure_at": {"front": formula},
                "scalars": {"dye": {"value": formula}},
            },
            "ball": {
                "shape": "circle",
                "radius": formula,
                "position": [0, 0],
                "size": formula,
                "spin": formula,
                "scalars": {"dye": formula},
            },
        },
        "implicit_viscosity": formula,
        "parameters": {"nu": 0.1, "time_step": 0.01},
        **others,
    }


def test_names_offered_at_a_place_are_those_of_the_place():
    with pytest.raises(UserError) as caught:
        flow.system(**full("qq", derived={"twice": "2*nu", "thick": "nu*shear_rate"}))
    messages = [str(caught.value), *caught.value.others]
    offered = {line.partition(":")[0]: line.partition("known names: ")[2] for line in messages}
    assert len(offered) == 23
    assert offered["scalars.dye.diffusivity"] == "nu, time_step, twice"
    assert offered["scalars.dye.source"] == "dye, nu, speed, time, time_step, twice, u, v, x, y"
    assert offered["scalars.dye.sides.x.lower"] == "nu, time, time_step, twice, x, y"
    assert offered["obstacles.post.scalars.dye.value"] == "nu, time, time_step, twice"
    assert offered["viscosity"] == "dye, nu, shear_rate, speed, thick, time, time_step, twice, u, v, x, y"


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
