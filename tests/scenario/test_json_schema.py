"""JSON Schema of scenario files: shipped files are valid, common mistakes are not."""

import json
import tomllib

import jsonschema
import pytest

from simkit.cli.main import main
from simkit.scenario.catalog import list_scenarios
from tests.scenario.examples import GOOD

QUICK = ("bouncing_ball", "channel_flow", "lennard_jones_cluster")
NAMES = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.thorough)
    for name in (scenario.name for scenario in list_scenarios()[0])
]


def schema(capsys, name):
    assert main(["show", name, "--schema"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", NAMES)
def test_shipped_files_follow_the_schema_of_their_simulation(capsys, name):
    found = schema(capsys, name)
    jsonschema.Draft202012Validator.check_schema(found)
    source = next(scenario.source for scenario in list_scenarios()[0] if scenario.name == name)
    jsonschema.validate(tomllib.loads(source.read_text()), found)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("params", "rate"), {"default": "fast"}),
        (("params", "time_step"), -1.0),
        (("params", "time_step"), 0.0),
        (("params", "coupling"), [[1.0, 2.0]]),
        (("params", "speed"), 1.0),
        (("config", "colour"), 1),
        (("run", "steps"), 0),
        (("render", "quantity"), "depth"),
        (("objectives", "decayed", "quantity"), "energy"),
        (("titel",), "x"),
    ],
)
def test_mistakes_are_refused(capsys, tmp_path, path, value):
    (tmp_path / "toy.toml").write_text(GOOD)
    found, data = schema(capsys, str(tmp_path / "toy.toml")), tomllib.loads(GOOD)
    jsonschema.validate(data, found)
    table = data
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, found)


def test_a_simulation_is_shown_without_a_scenario(capsys):
    assert main(["show", "flow.turbulent_channel", "--set", "config.drive=flow_rate"]) == 0
    text = capsys.readouterr().out
    assert "friction_reynolds    180  above 0" in text and "pressure_gradient" in text and "steps" not in text
    parameters = schema(capsys, "flow.turbulent_channel")["properties"]["params"]["properties"]
    assert parameters["time_step"]["x-unit"] == "h/u_tau"
