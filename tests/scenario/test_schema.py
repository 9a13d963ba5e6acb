"""Reading of scenario files, their JSON Schema, and mistakes in one line with file, key, value and remedy."""

import copy
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest

from simkit.cli.main import main
from simkit.errors import Remedy, UserError
from simkit.scenario.build import check_validations
from simkit.scenario.catalog import list_scenarios, parse_scenario, read_scenario
from simkit.scenario.drawing import render_settings
from simkit.scenario.examination import repaired
from simkit.scenario.sections import ParameterSettings
from tests.scenario.examples import GOOD
from tests.scenario.mistakes import MISTAKES, MISTAKES_OF_VALIDATIONS
from tests.scenario.shipped import FEW, check_that_it_follows_its_schema, schema
from tests.tables import every


def refusal(text: str) -> str:
    with pytest.raises(UserError) as caught:
        parse_scenario(text, "folder/toy.toml")
    message = str(caught.value)
    assert message.isprintable(), "an error is one line"
    return message


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


def test_every_key_of_a_complete_file_is_kept():
    scenario = parse_scenario(GOOD, "folder/toy.toml")
    assert (scenario.name, scenario.simulation, scenario.domain) == ("toy_decay", "toy.decay", "toy")
    assert scenario.tags == ("toy", "test")
    assert scenario.config == {"cells": (4, 3), "width": 2.0, "method": "euler", "periodic": True}
    rate = scenario.parameters["rate"]
    assert (rate.default, rate.bounds, rate.unit, rate.doc) == (0.5, (0.1, 10.0), "1/s", "decay rate")
    assert scenario.parameters["coupling"].default == ((1.0, 0.5), (0.5, 1.0))
    assert vars(scenario.run) == {"steps": 100, "every": 10, "precision": "float32", "seed": 3, "stop": ""}
    decayed = scenario.objectives["decayed"]
    assert (decayed.quantity, decayed.reduce, decayed.square, decayed.goal) == ("amplitude", "mean", True, "maximize")
    assert (scenario.render.label, scenario.render.limits) == ("surface height", (-1.0, 1.0))
    assert scenario.validations[0].overrides == {"rate": 0.5, "steps": 200}
    assert scenario.source == Path("folder/toy.toml")
    assert scenario.text == GOOD


def test_absent_optional_keys_take_their_documented_defaults():
    text = """
        name = "the_least"
        simulation = "toy.decay"
        run = {steps = 10, every = 5}
        render = {view = "field", quantity = "surface_height"}
        objectives = {amplitude = {}, drag = "time_mean(height)"}
    """
    scenario = parse_scenario(text, "small.toml")
    assert (scenario.title, scenario.summary) == ("The least", "")
    assert (scenario.tags, scenario.references, scenario.config, scenario.parameter_settings) == ((), (), {}, {})
    assert (scenario.run.precision, scenario.run.seed) == ("float32", 0)
    assert scenario.render.label == "surface height"
    render = scenario.render
    assert (render.unit, render.limits, render.frames_per_second) == ("1", None, 20.0)
    assert render.options == {"colormap": None, "window": {}, "tracers": 0}
    objective = scenario.objectives["amplitude"]
    assert (objective.name, objective.quantity, objective.reduce) == ("amplitude", "amplitude", "final")
    assert (objective.square, objective.goal, objective.doc) == (False, "minimize", "")
    assert scenario.objectives["drag"].as_expression == "time_mean(height)"
    assert scenario.validations == ()


def test_a_picture_that_is_no_table_is_refused_in_one_line():
    text = 'name = "small"\nsimulation = "toy.decay"\nrun = { steps = 10, every = 5 }\nrender = 5\n'
    assert refusal(text) == "toy.toml: render = 5 is no table; write keys and values"


def test_keys_of_the_camera_are_read():
    camera = 'view = "bodies"\ncamera = "perspective"\nazimuth = -30\nelevation = 20.5\nturn = 90'
    render = parse_scenario(GOOD.replace('view = "field"', camera), "toy.toml").render
    camera = {"camera": "perspective", "azimuth": -30.0, "elevation": 20.5, "turn": 90.0}
    assert render.options == camera | {"colormap": "viridis"}
    level = parse_scenario(
        GOOD.replace('view = "field"', 'view = "bodies"\ncamera = "perspective"\nelevation = 0'), "toy.toml"
    )
    assert level.render.table()["elevation"] == 0.0


def test_the_settings_of_every_picture_are_read_back_from_their_table():
    for scenario in list_scenarios()[0]:
        assert render_settings(scenario.render.table()) == scenario.render, scenario.name


def test_a_derivative_check_takes_the_quantity_of_its_objective():
    validation = parse_scenario(GOOD, "toy.toml").validations[1]
    assert (validation.quantity, validation.derivative, validation.objective) == ("amplitude", "rate", "amplitude")


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path):
    path = tmp_path / "toy.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read_scenario(path).title == "Decay"


@every("mistake", MISTAKES)
def test_a_mistake_is_refused_in_one_line_with_a_remedy(mistake):
    old, new, phrase = MISTAKES[mistake]
    message = refusal(changed(old, new))
    assert phrase in message
    assert message.startswith("toy.toml: ")


@every("mistake", MISTAKES_OF_VALIDATIONS)
def test_overrides_of_a_validation_are_checked_against_the_simulation(mistake):
    old, new, phrase = MISTAKES_OF_VALIDATIONS[mistake]
    scenario = parse_scenario(changed(old, new), "folder/toy.toml")
    with pytest.raises(UserError) as caught:
        check_validations(scenario)
    assert phrase in str(caught.value) and str(caught.value).startswith("toy.toml: ")
    check_validations(parse_scenario(GOOD, "toy.toml"))


def test_a_file_may_change_parts_of_a_declaration():
    text = GOOD[: GOOD.index("[params.rate]")] + "[params]\nrate = 0.25\noffset = {doc = 'shift', unit = 'm'}\n"
    scenario = parse_scenario(text + GOOD[GOOD.index("[run]") :], "toy.toml")
    assert scenario.parameter_settings == {
        "rate": ParameterSettings(0.25),
        "offset": ParameterSettings(unit="m", doc="shift"),
    }
    found = scenario.parameters
    assert list(found) == ["rate", "time_step", "coupling", "offset"]
    assert (found["rate"].default, found["time_step"].default, found["offset"].doc) == (0.25, 0.1, "shift")
    assert found["coupling"].default == ((1.0, 0.0), (0.0, 1.0))


@every(
    "line, phrase",
    [
        ("rat = 1", "params.rat is not a parameter of toy.decay; did you mean 'rate'?"),
        ("rate = [1, 2]", "params.rate.default has shape (2,); toy.decay expects ()"),
        ("rate = 'x'", "params.rate.default = 'x' is no number; write one"),
        ("time_step = -1", "params.time_step.default = -1 is not positive; choose a value above 0"),
        ("time_step = {bounds = [-1, 1]}", "params.time_step.bounds = [-1.0, 1.0] reach beyond those of toy.decay"),
        ("time_step = {bounds = [1, 2]}", "params.time_step.default = 0.1 is below its lower bound 1"),
    ],
)
def test_settings_that_the_declaration_does_not_allow_are_refused(line, phrase):
    text = GOOD[: GOOD.index("[params.rate]")] + f"[params]\n{line}\n" + GOOD[GOOD.index("[run]") :]
    with pytest.raises(UserError) as caught:
        _ = parse_scenario(text, "toy.toml").parameters
    assert phrase in str(caught.value) and str(caught.value).startswith("toy.toml: ")


@every("table", ["run", "render"])
def test_a_missing_table_is_named(table):
    text = "\n".join(line for line in GOOD.split("\n\n") if not line.startswith(f"[{table}]"))
    assert f"toy.toml: {table} is missing; give a table: " in refusal(text)


def test_an_array_of_tables_in_single_brackets_is_explained():
    head = GOOD[: GOOD.index("[[validation]]")]
    assert "toy.toml: validation = {...} is no list; write several in brackets" in refusal(
        head + "[validation]\nexpected = 1.0\n"
    )


def test_a_refused_number_of_steps_is_one_mistake():
    with pytest.raises(UserError) as refused:
        parse_scenario(
            GOOD.replace("steps = 100\n", "steps = 0\n").replace("every = 10\n", "every = 3\n"), "folder/toy.toml"
        )
    assert "run.steps = 0 is not an integer of at least 1" in str(refused.value) and not refused.value.others


@every(
    "make, phrase",
    [
        (lambda path: None, "does not exist; check the path"),
        (lambda path: path.mkdir(), "is a directory; name a text file"),
        (lambda path: os.mkfifo(path), "is not a regular file; name a text file"),
        (lambda path: path.write_bytes(GOOD.encode("utf-16")), "has byte 0, which is not UTF-8 text; give a text file"),
        (lambda path: path.write_bytes(b'name = "\xff"'), "'toy.toml' has byte 8, which is not UTF-8 text"),
        (lambda path: path.write_bytes(b"[" * (2**20 + 1)), "toy.toml: the file is over 1 MiB"),
        (lambda path: path.write_bytes(b""), "toy.toml: name is missing; give text on one line: name of the scenario"),
        (lambda path: path.symlink_to(path), "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_one_line(tmp_path, make, phrase):
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}" / "toy.toml"
    path.parent.mkdir()
    make(path)
    with pytest.raises(UserError) as caught:
        read_scenario(path)
    assert phrase in str(caught.value)
    assert str(caught.value).isprintable()


@every("name", ["a\nb.toml", "null\0.toml", "x" * 5000 + ".toml"])
def test_an_odd_path_is_refused_in_one_line(tmp_path, name):
    with pytest.raises(UserError) as caught:
        read_scenario(tmp_path / name)
    assert str(caught.value).isprintable()


def test_a_file_name_over_two_lines_does_not_break_the_message():
    with pytest.raises(UserError) as caught:
        parse_scenario("", "two\nlines.toml")
    assert str(caught.value).startswith("'two\\nlines.toml': name is missing")


def test_reading_scenarios_imports_neither_jax_nor_numpy():
    code = (
        "import sys; import simkit.scenario.catalog, simkit.scenario.overrides, simkit.scenario.registry\n"
        f"from simkit.scenario.catalog import parse_scenario; parse_scenario({GOOD!r}, 'toy.toml')\n"
        "assert not {'jax', 'numpy', 'importlib.metadata', 'difflib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


@every("name", FEW[:2])
def test_shipped_files_follow_the_schema_of_their_simulation(capsys, name):
    check_that_it_follows_its_schema(name, capsys)


INVALID = [
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
    for path, value in INVALID:
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


CONFIG = {"task": "relax", "cell": {"lengths": (6.0, "breadth")}, "parts": ({"metod": "fire"}, {"energy": "1/rr"})}


def test_a_remedy_removes_its_mistake_and_keeps_the_rest():
    cell, parts = CONFIG["cell"], CONFIG["parts"]
    changes = {
        ("config.task", Remedy("replace", "dynamics")): {**CONFIG, "task": "dynamics"},
        ("config.task", Remedy("rename", "tasks")): {"tasks": "relax", "cell": cell, "parts": parts},
        ("config.cell", Remedy("remove")): {"task": "relax", "parts": parts},
        ("config.cell.lengths[1]", Remedy("replace", "1")): {**CONFIG, "cell": {"lengths": (6.0, "1")}},
        ("config.parts[0].metod", Remedy("rename", "method")): {**CONFIG, "parts": ({"method": "fire"}, parts[1])},
        ("config.parts[1]", Remedy("remove")): {**CONFIG, "parts": parts[:1]},
        # Without a single remedy, for another part of the file, or of a key that does not exist.
        ("config.task", None): None,
        ("config", Remedy("remove")): None,
        ("run.steps", Remedy("remove")): None,
        ("config.cell.width[0]", Remedy("remove")): None,
        ("config.parts[2].energy", Remedy("remove")): None,
    }
    found = {(key, remedy): repaired(CONFIG, UserError("", key=key, remedy=remedy)) for key, remedy in changes}
    assert found == changes
