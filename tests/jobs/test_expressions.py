"""Expressions for quantities, objectives and values, in scenario files and on the command line."""

import json

import numpy as np
import pytest

from simkit.cli.main import main
from simkit.scenario.contents import bare_scenario, contents_of, schema_of

FILE = """
name = "eddies"
title = "Eddies between two walls"
summary = "They die."
simulation = "flow.domain"
params = { reynolds = 100.0, forcing = 1.0, perturbation = 0.1, time_step = 0.015 }
run = { steps = 20, every = 2, precision = "float64" }
render = { view = "field", quantity = "fluctuation" }

[config]
viscosity = "1/reynolds"
force = { x = "3*forcing/reynolds" }
initial = { eddies = "perturbation" }
units = { length = "h", velocity = "U" }
axes.x = { cells = 8, length = 6.0, periodic = true }
axes.y = { cells = 6, from = -1.0, to = 1.0, lower = "wall", upper = "wall" }

[quantities.fluctuation]
expression = 'u - mean(u, axis="x")'
unit = "U"
doc = "velocity along x less its mean at that height"

[quantities.intensity]
expression = "rms(fluctuation) / rms(u) + 0*params.reynolds"
doc = "how much of the flow fluctuates"

[objectives]
late_intensity = { doc = "in the second half", expression = "time_mean(intensity, after=0.15)" }
largest_fluctuation = { doc = "ever", expression = "largest(max(abs(fluctuation)))", goal = "maximize" }
last_fluctuation = { doc = "at the end", expression = "final(max(abs(fluctuation))) + final(intensity)" }
intensity = { doc = "at the end" }

[[validation]]
quantity = "intensity"
expected = 0.5
tolerance = 1.0
source = "a guess"

[[validation]]
derivative = "reynolds"
objective = "late_intensity"
expected = 0.0
tolerance = 1.0
source = "a guess"
"""


@pytest.fixture
def eddies(tmp_path):
    path = tmp_path / "eddies.toml"
    path.write_text(FILE)
    return path


def test_arithmetic_is_accepted_as_a_value_on_the_command_line(eddies, capsys):
    def shown(*settings):
        words = [word for setting in settings for word in ("--set", setting)]
        assert main(["show", str(eddies), "--json", *words]) == 0
        return json.loads(capsys.readouterr().out)

    found = shown(
        "reynolds=2*25",
        "config.axes.x.length=2*pi",
        "config.axes.y.cells=2*4",
        "steps=2*10",
        "forcing=sqrt(2)/2",
        "perturbation=max(2, 3) / 10",
    )
    assert found["parameters"]["perturbation"]["default"] == 0.3
    assert found["parameters"]["reynolds"]["default"] == 50
    assert found["config"]["axes"]["x"]["length"] == 2 * np.pi and found["run"]["steps"] == 20
    assert found["parameters"]["forcing"]["default"] == np.sqrt(2) / 2
    for wrong, message in {
        "reynolds=2*": "column 1 of '>>>2*': not an expression",
        "reynolds=2*rey": "column 3 of '2*>>>rey': 'rey' is not known here",
        "reynolds=1/0": "has no value (float division by zero)",
        "steps=20/1.5": "is not an integer",
    }.items():
        assert main(["show", str(eddies), "--set", wrong]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and (message in error or "is a float" in error)


def test_expressions_are_in_the_schema_of_files():
    scenario = bare_scenario("flow.turbulent_channel")
    properties = schema_of(scenario, contents_of(scenario))["properties"]
    assert set(properties["quantities"]["additionalProperties"]["properties"]) == {"expression", "unit", "doc"}
    _, table = properties["objectives"]["additionalProperties"]["anyOf"]
    assert "expression" in table["properties"]
