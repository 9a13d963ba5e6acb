"""JSON Schema of scenario files: shipped files are valid, common mistakes are not."""

import copy
import tomllib

import jsonschema

from simkit.cli.main import main
from tests.scenario.examples import GOOD
from tests.scenario.shipped import FEW, check_that_it_follows_its_schema, schema
from tests.tables import every


@every("name", FEW[:2])
def test_shipped_files_follow_the_schema_of_their_simulation(capsys, name):
    check_that_it_follows_its_schema(name, capsys)


MISTAKES = [
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
]


def test_mistakes_are_refused(capsys, tmp_path):
    (tmp_path / "toy.toml").write_text(GOOD)
    found, data = schema(capsys, str(tmp_path / "toy.toml")), tomllib.loads(GOOD)
    jsonschema.validate(data, found)
    taken = []
    for path, value in MISTAKES:
        table = wrong = copy.deepcopy(data)
        for key in path[:-1]:
            table = table[key]
        table[path[-1]] = value
        if jsonschema.Draft202012Validator(found).is_valid(wrong):
            taken.append((path, value))
    assert not taken


def test_a_simulation_is_shown_without_a_scenario(capsys):
    assert main(["show", "flow.turbulent_channel", "--set", "config.drive=flow_rate"]) == 0
    text = capsys.readouterr().out
    assert "friction_reynolds    180  above 0" in text and "pressure_gradient" in text and "steps" not in text
    parameters = schema(capsys, "flow.turbulent_channel")["properties"]["params"]["properties"]
    assert parameters["time_step"]["x-unit"] == "h/u_tau"
