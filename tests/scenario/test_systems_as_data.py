"""Factories with tables of settings and with parameters declared in the file."""

import dataclasses
import json
import tomllib

import jax.numpy as jnp
import jsonschema
import pytest

import simkit
from simkit.cli.main import main
from simkit.core import settings
from simkit.core.expressions.scope import scope
from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.simulation import Simulation
from simkit.errors import UserError
from simkit.scenario.contents import contents_of, schema_of
from simkit.scenario.made_in_python import load
from simkit.scenario.registry import SIMULATIONS
from tests.tables import every

PARAMETERS = {"time_step": Parameter(0.1, POSITIVE, "s", "time step")}
SETTINGS = {"rates": settings.several(settings.table("one", {"rate": settings.formula("rate")}), "rates")}


@settings.declares(SETTINGS)
def growing(*, rates, parameters=None) -> Simulation:
    """Return a number that grows by the sum of some rates."""
    params = {**(parameters or {}), **PARAMETERS}
    known = scope(params, {}, ("time",))
    found = settings.read({"rates": rates}, SETTINGS)["rates"]
    formulas = [known.formula(each["rate"], ("time",)) for each in found]

    def step(state, params):
        rate = sum(formula.number(params, time=state["time"]) for formula in formulas)
        return {"time": state["time"] + params["time_step"], "x": state["x"] + params["time_step"] * rate}

    return Simulation(
        init=lambda params, key: {"time": 0 * params["time_step"], "x": 0 * params["time_step"]},
        step=step,
        observe=lambda state, params: {},
        diagnose=lambda state, params: dict(state),
        params=params,
    )


FILE = """
name = "growth"
title = "Growth"
summary = "A number grows."
simulation = "toy.growing"

[[config.rates]]
rate = "speed*cos(time)"

[[config.rates]]
rate = 2

[params]
speed = { default = 3.0, bounds = [0.0, 9.0], unit = "1/s", doc = "rate at the start" }
time_step = { bounds = [0.01, 0.5] }

[run]
steps = 2
every = 1
precision = "float32"

[objectives.end]
quantity = "x"
doc = "at the end"

[render]
view = "chart"
quantity = "x"
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setitem(SIMULATIONS.own, "toy.growing", f"{__name__}:growing")
    path = tmp_path / "growth.toml"
    path.write_text(FILE)
    return path


def test_parameters_of_a_file_are_swept_differentiated_and_stored(file, tmp_path):
    run = simkit.run(file, output=tmp_path / "run")
    exact = 0.1 * (3 + 3 * float(jnp.cos(0.1)) + 4)
    assert float(run["x"][-1]) == pytest.approx(exact, rel=1e-6)
    assert float(simkit.open_run(tmp_path / "run")["x"][-1]) == float(run["x"][-1])
    swept = simkit.sweep(file, over={"speed": [1.0, 2.0]})
    last = swept["x"].isel(frame=-1, seed=0)
    assert float(last[1] - last[0]) == pytest.approx(0.1 * (1 + float(jnp.cos(0.1))), rel=1e-6)
    _, slopes = simkit.value_and_grad(file, ["speed"])
    assert float(slopes["speed"]) == pytest.approx(0.1 * (1 + float(jnp.cos(0.1))), rel=1e-6)


def test_a_parameter_that_no_expression_uses_is_refused(file):
    file.write_text(FILE.replace("[params]", "[params]\nsped = { default = 1.0 }"))
    phrase = r"growth.toml: params.sped has no effect: nothing that the simulation does depends on it; remove it"
    with pytest.raises(UserError, match=phrase):
        simkit.run(file)
    # Without the rate that uses it, which one run leaves out, the file is still right.
    file.write_text(FILE)
    simkit.run(file, **{"config.rates.0.rate": 1.0})


def test_settings_within_tables_can_be_set(file, tmp_path):
    words = ["--set", "config.rates.1.rate=5", "--set", "speed=0", "--no-render"]
    assert main(["run", str(file), *words, "--output", str(tmp_path / "run")]) == 0
    assert float(simkit.open_run(tmp_path / "run")["x"][-1]) == pytest.approx(1.0, rel=1e-6)
    resumed = simkit.resume(tmp_path / "run")
    assert float(resumed["x"][-1]) == pytest.approx(1.0, rel=1e-6)


@every(
    "key, value, message",
    [
        ("config.rates.2.rate", 1, "'2' is none of its 2 entries; count from 0"),
        ("config.rates.0.rate.more", 1, "'speed*cos(time)' has no 'more'; end the key before it"),
        ("config.rates.0.rat", 1, "[config]: rates[0].rat is not a known key; did you mean 'rate'?"),
        ("config.rates.0.rate", "spede", "[config]: rates[0].rate: column 1 of '>>>spede': 'spede' is not known here"),
        ("speed", 10.0, "above its upper bound 9"),
    ],
)
def test_a_mistake_within_tables_names_its_key(file, key, value, message):
    with pytest.raises(UserError) as refused:
        simkit.build(load(file, {key: value}))
    assert message in str(refused.value)


def test_a_parameter_without_a_value_is_refused(file):
    file.write_text(FILE.replace("time_step = {", "spede = { bounds = [0.0, 1.0] }\ntime_step = {"))
    with pytest.raises(UserError, match=r"params\.spede has no default, and toy\.growing declares no 'spede'"):
        simkit.build(file)


def test_the_schema_allows_parameters_of_the_file(file):
    scenario = load(file)
    schema = schema_of(scenario, contents_of(scenario))["properties"]
    assert schema["params"]["additionalProperties"] is True and "speed" in schema["params"]["properties"]
    assert set(schema["config"]["properties"]) == {"rates"}
    assert "parameters" not in contents_of(scenario).arguments


def test_settings_of_a_simulation_are_shown_without_a_scenario(file, capsys):
    assert main(["show", "toy.growing"]) == 0
    output = capsys.readouterr().out
    assert "needs: rates" in output and "config.rates[].rate" in output and "scenarios: none" in output
    assert main(["show", "toy.growing", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["needed"] == ["rates"] and output["settings"][1]["key"] == "rates[].rate"
    assert main(["show", "toy.growing", "--schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(tomllib.loads(FILE), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(FILE.replace("rate = 2", "rat = 2")), schema)


def test_a_new_file_of_a_simulation_with_required_settings_needs_a_scenario_of_it(file, tmp_path, capsys):
    assert main(["new", "mine", "--from", "toy.growing", "-o", str(tmp_path / "other.toml")]) == 2
    assert "rates" in (told := capsys.readouterr().err) and told.count("\n") == 1


def test_the_factory_takes_parameters_in_python():
    simulation = growing(rates=[{"rate": "speed"}], parameters={"speed": Parameter(2.0)})
    assert dataclasses.asdict(simulation.parameters["speed"])["default"] == 2.0
    assert float(simkit.run(simulation, steps=1)["x"][-1]) == pytest.approx(0.2)
