"""Parts of flows from outside: one file for each kind, found by its entry point, works in files, checks and schemas."""

import json
import sys

import jax
import jsonschema
import pytest

from simkit.cli.main import main
from simkit.core.settings import schema_of
from simkit.errors import UserError
from simkit.flow.description.settings import SETTINGS
from simkit.flow.description.system import system
from tests.tables import lacking, misses, refusal

IMPORTS = """
import dataclasses
from collections.abc import Callable
from simkit.core import formula, number, part
ON_SIDE = ("x", "y", "z", "time")
"""
# Kind: name of the part, and its file.
FILES = {
    "side": (
        "slippery",
        """
from simkit.flow import Side

@part(values={"length": formula("slip length", unit="length", bounds=(0, 1e3), takes=ON_SIDE)})
@dataclasses.dataclass(frozen=True)
class slippery(Side):
    length: Callable
    kind = "slippery"
    drawn_as = "wall"
    takes_along = True

    def values(self, params, time):
        return self.length(params, time)

    def share(self, component, place, values):
        near, far = place.weights
        return 1 / (1 + values * (near - far))
""",
    ),
    "scalar_side": (
        "cooled",
        """
from simkit.flow import ScalarSide

@part(
    values={
        "cooled": formula("temperature outside of a coating", takes=ON_SIDE),
        "coating": formula("diffusivity of the fluid over the transfer coefficient", bounds=(0, 1e3)),
    }
)
@dataclasses.dataclass(frozen=True)
class cooled(ScalarSide):
    coating: Callable
    kind = "cooled"
    takes = True

    def values(self, params, time):
        return self.coating(params, time)

    def share(self, place, values, diffusivity):
        near, far = place.weights
        return 1 / (1 + values * (near - far))
""",
    ),
    "shape": (
        "squircle",
        """
from simkit.flow.obstacles import superellipse

@part(
    keys={"exponent": number("of the coordinates", 4.0, (2.0, 20.0))},
    values={"width": formula("half of it", unit="length", bounds=(1e-6, 1e6))},
    dimensions=(2,),
)
def squircle(*, exponent, width):
    return superellipse((0.0, 0.0), (width, width), exponent)
""",
    ),
    "surface": (
        "half_as_warm",
        """
from simkit.flow.obstacles import ScalarSurface

@part(values={"half_as_warm": formula("as what", takes=("time",))})
def half_as_warm(*, half_as_warm):
    return ScalarSurface(value=lambda params, time: half_as_warm(params, time) / 2)
""",
    ),
}
BODY = {"shape": "squircle", "width": 0.5, "position": [1.0, 1.0]}


def flow_with(obstacles=None, **others):
    walls = {"cells": 16, "to": 2.0, "lower": "wall", "upper": "wall"}
    return system(
        axes={"x": walls, "y": walls} | others.pop("axes", {}),
        viscosity=0.1,
        obstacles=obstacles or {},
        parameters={"q": 1.0, "time_step": 0.01},
        **others,
    )


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    """Install a distribution with one module and one entry point for each kind of part."""
    monkeypatch.syspath_prepend(str(tmp_path))
    groups = []
    for kind, (name, source) in FILES.items():
        (tmp_path / f"outside_{kind}.py").write_text(IMPORTS + source)
        groups.append(f"[simkit.{kind}s]\n{name} = outside_{kind}:{name}\n")
    info = tmp_path / "outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(groups))
    yield
    for kind in FILES:
        sys.modules.pop(f"outside_{kind}", None)


WRONG = {
    "a key of another side": (
        {"axes": {"y": {"cells": 8, "to": 1.0, "lower": {"kind": "wall", "length": 1}, "upper": "wall"}}},
        "axes.y.lower.length has no effect on kind = 'wall'; leave it out",
    ),
    "a missing value": (
        {"axes": {"y": {"cells": 8, "to": 1.0, "lower": "slippery", "upper": "wall"}}},
        "axes.y.lower.length is missing; give a number or an expression, or a table: slip length",
    ),
    "a part of a side": (
        {
            "axes": {
                "y": {
                    "cells": 8,
                    "to": 1.0,
                    "lower": ["slippery", {"kind": "wall", "where": "x > 1"}],
                    "upper": "wall",
                }
            }
        },
        "axes.y.lower[0] = 'slippery' takes a whole side, and is no part of one; choose one of inflow, wall",
    ),
    "a value out of bounds": (
        {"axes": {"y": {"cells": 8, "to": 1.0, "lower": {"kind": "slippery", "length": "-q*x"}, "upper": "wall"}}},
        "axes.y.lower.length: '-q*x' = -1.9375 at the start is below its lower bound 0; choose a value in [0, 1000]",
    ),
    "half of a scalar side": (
        {"scalars": {"heat": {"diffusivity": 1, "sides": {"y": {"lower": {"cooled": 1}}}}}},
        "scalars.heat.sides.y.lower.coating is missing; give a number or an expression: diffusivity of the fluid",
    ),
    "an unknown name in it": (
        {"scalars": {"heat": {"diffusivity": 1, "sides": {"y": {"lower": {"cooled": "xx", "coating": 1}}}}}},
        "scalars.heat.sides.y.lower.cooled: column 1 of '>>>xx': 'xx' is not known here",
    ),
    "a key of another shape": ({"obstacles": {"post": BODY | {"radius": 1}}}, "obstacles.post.radius has no effect"),
    "a misspelt option": ({"obstacles": {"post": BODY | {"exponents": 3}}}, "obstacles.post.exponents is not a known"),
    "an option out of bounds": ({"obstacles": {"post": BODY | {"exponent": 1}}}, "obstacles.post.exponent = 1 is"),
    "a plane shape in space": (
        {
            "axes": {"z": {"cells": 8, "length": 1.0, "periodic": True}},
            "obstacles": {"post": BODY | {"position": [1, 1, 1]}},
        },
        "obstacles.post.shape = 'squircle' is for 2 axes, and there are 3; choose one of box, capsule, cylinder",
    ),
}


def test_a_wrong_key_of_a_part_from_outside_is_one_line_with_its_remedy():
    def check(config, message):
        def made():
            simulation = flow_with(**config)
            simulation.check_values(simulation.params, jax.random.key(0))

        text = refusal(UserError, made)
        return lacking(text, message) if text.isprintable() else f"not one line: {text!r}"

    assert not misses(WRONG, check)


def test_keys_of_parts_from_outside_are_shown_with_unit_and_meaning(capsys):
    assert main(["show", "flow.domain", "--json"]) == 0
    shown = {each["key"]: each for each in json.loads(capsys.readouterr().out)["settings"]}
    expected = {
        "axes.y.lower.length": "slippery: slip length",
        "axes.x.upper.u": "inflow: velocity along x, through the side",
        "scalars.NAME.sides.y.lower.coating": "cooled: diffusivity of the fluid over the transfer coefficient",
        "obstacles.NAME.exponent": "squircle: of the coordinates",
        "obstacles.NAME.scalars.NAME.half_as_warm": "half_as_warm: as what",
    }
    assert {key: shown[key]["doc"] for key in expected} == expected
    assert shown["obstacles.NAME.exponent"]["default"] == 4.0


def test_the_schema_knows_the_parts_from_outside():
    schema = schema_of(SETTINGS)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    walls = {"cells": 8, "to": 1.0, "lower": "wall", "upper": "wall"}

    def config(side="wall", scalar=1, **body):
        return {
            "axes": {"x": walls, "y": walls | {"lower": side}},
            "viscosity": 1,
            "scalars": {"heat": {"diffusivity": 1, "sides": {"y": {"lower": scalar}}}},
            "obstacles": {"post": BODY | body},
        }

    sound = [
        config(),
        config({"kind": "slippery", "length": "slip", "u": 1, "drawn": "hot"}),
        config(["wall", {"kind": "inflow", "v": 1, "where": "x > 0"}]),
        config(scalar={"cooled": "x", "coating": 1}),
        config(scalar={"kind": "flux", "flux": 1}),
        config(scalar="insulated"),
        config(exponent=3, scalars={"heat": {"half_as_warm": 1}}),
    ]
    wrong = [
        config("slippery"),
        config({"kind": "slippery"}),
        config({"kind": "wall", "length": 1}),
        config({"kind": "wall", "v": 1}),
        config({"kind": "inflow", "u": 1}),
        config({"kind": "outflow", "pressure": 1}),
        config(scalar={"cooled": 1}),
        config(scalar={"flux": 1, "value": 1}),
        config(radius=1),
        config(scalars={"heat": {"half_as_warm": 1, "flux": 1}}),
    ]
    missed = [each for each in sound if not validator.is_valid(each)]
    missed += [each for each in wrong if validator.is_valid(each)]
    assert not missed


def test_pictures_are_told_where_the_parts_of_a_side_end():
    jet = ["wall", {"kind": "inflow", "u": 1, "where": "abs(y - center) < 0.25"}]
    walls = ["wall", {"kind": "wall", "where": "x > 1"}]
    simulation = system(
        axes={
            "x": {"cells": 8, "length": 2, "lower": jet, "upper": "outflow"},
            "y": {"cells": 16, "from": -1, "to": 1, "lower": "wall", "upper": walls},
        },
        viscosity=0.1,
        parameters={"time_step": 0.01, "center": 0.25},
    )
    kinds = ["wall to 0, inflow to 0.5, wall", "outflow", "wall", "wall"]
    assert simulation.coordinates["sides"].tolist() == kinds
