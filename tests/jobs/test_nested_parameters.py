"""Nested parameters, in all uses of flat ones: the same simulation in both forms gives the same results."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
import simkit.export
from simkit.cli.main import main
from simkit.core.dependence import idle_parameters
from simkit.scenario import registry
from simkit.scenario.contents import schema_of
from simkit.scenario.made_in_python import load
from tests.tables import every

TIME_STEP = 0.1


class Layer(NamedTuple):
    weight: Any
    bias: Any


def in_tree(values):
    """Return the nested form of flat values."""
    layers = [Layer(values["first"], values["shift"]), Layer(values["last"], values["level"])]
    return {"gravity": values["gravity"], "closure": {"scale": values["scale"], "layers": layers}}


def pull_of(params, motion):
    """Return the acceleration by a spring and a small network."""
    (first, shift), (last, level) = params["closure"]["layers"]
    network = last @ jnp.tanh(first @ motion + shift) + level
    return -params["gravity"] * motion[0] + params["closure"]["scale"] * network


def mass(*, nested: bool, dtype: str = "float32") -> simkit.Simulation:
    """Return a mass on a spring with a network as closure, its parameters nested or flat."""
    form = (lambda params: params) if nested else in_tree

    def init(params, key):
        start = jnp.asarray([1.0, 0.0], params["gravity"].dtype)
        return {"motion": start + 0.01 * jax.random.normal(key, (2,), start.dtype), "count": jnp.int32(0)}

    def step(state, params):
        place, velocity = state["motion"]
        velocity = velocity + TIME_STEP * pull_of(form(params), state["motion"])
        return {"motion": jnp.stack([place + TIME_STEP * velocity, velocity]), "count": state["count"] + 1}

    values = {
        "gravity": 2.0,
        "scale": 0.7,
        "first": np.linspace(-0.4, 0.5, 6).reshape(3, 2),
        "shift": np.asarray([0.1, 0.0, -0.1]),
        "last": np.asarray([0.3, -0.2, 0.4]),
        "level": 0.05,
    }
    with jax.enable_x64(dtype == "float64"):
        given = {
            name: simkit.Parameter(np.asarray(value, dtype), (-3.0, 3.0), "1", f"the {name}")
            for name, value in values.items()
        }
        return simkit.Simulation(
            init=init,
            step=step,
            observe=lambda state, params: {"motion": state["motion"]},
            diagnose=lambda state, params: {
                "time": TIME_STEP * state["count"].astype(state["motion"].dtype),
                "off": (state["motion"][0] - 0.2) ** 2,
            },
            params=in_tree(given) if nested else given,
        )


def test_parameters_without_effect_are_named_by_path():
    idle = mass(nested=True)
    idle = dataclasses.replace(idle, params=idle.params | {"b": {"z": 1.0, "a": [np.ones(2), 2.0]}})
    # In the leaf order of JAX.
    assert idle_parameters(idle) == ["b.a.0", "b.a.1", "b.z"]


FILE = """\
name = "nested_mass"
title = "Mass"
summary = "A mass with a closure."
simulation = "toy.mass"
[config]
nested = true
[params]
gravity = 1.5
[params.closure]
scale = 0.25
[params.closure.layers.1.bias]
default = 0.125
bounds = [-1.0, 1.0]
[params.closure.layers.0]
bias = [0.5, 0.25, 0.0]
[run]
steps = 4
every = 2
[objectives.off]
doc = "off"
[render]
view = "chart"
quantity = "off"
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setitem(registry.FACTORIES, "toy.mass", "tests.jobs.test_nested_parameters:mass")
    path = tmp_path / "mass.toml"
    path.write_text(FILE)
    return path


def test_the_schema_of_files_nests(file):
    from simkit.scenario.contents import contents_of

    scenario = load(file)
    params = schema_of(scenario, contents_of(scenario))["properties"]["params"]["properties"]
    assert params["gravity"]["default"] == 2.0
    assert params["closure"]["properties"]["layers"]["properties"]["1"]["properties"]["bias"]["default"] == 0.05
    assert params["closure"]["additionalProperties"] is False


@every(
    ("old", "new", "message"),
    [
        ("scale = 0.25", "scal = 0.25", "params.closure.scal is not a parameter of toy.mass; did you mean"),
        ("scale = 0.25", "scale = 'a'", "params.closure.scale.default = 'a' is no number; write one"),
        ("default = 0.125", "defalt = 0.125", "params.closure.layers.1.bias.defalt is not a known key; did you mean"),
        ("default = 0.125", "default = 2.0", "params.closure.layers.1.bias.default = 2 is above its upper bound 1"),
        ("layers.0]", "'two words']", "'two words' is not a name"),
    ],
)
def test_mistakes_in_files_name_the_path(file, old, new, message):
    assert old in FILE
    file.write_text(FILE.replace(old, new))
    with pytest.raises(simkit.UserError, match=message) as error:
        simkit.run(file)
    assert "\n" not in str(error.value)


@every(
    ("words", "message"),
    [
        (["grad", "--wrt", "params.gravity"], "'params.gravity' is not a parameter of nested_mass; write gravity"),
        (["grad", "--wrt", "closure,closure.scale"], "parameter 'closure.scale' is named twice"),
        (["sweep", "--over", "closure.layers=1,2"], "it is a branch; name one of closure.layers.0.weight,"),
        (["sweep", "--over", "closure.layers.0.bias=1,2"], "is an array; name a parameter that is a single number"),
        (["run", "--set", "closure=1"], "--set closure: 'closure' is a branch of parameters"),
    ],
)
def test_mistakes_in_the_shell_name_the_path(file, words, message, capsys):
    assert main([words[0], str(file), *words[1:]]) == 2
    assert message in capsys.readouterr().err


@every(
    ("act", "message"),
    [
        (
            lambda s: simkit.value_and_grad(s, [], objective="off", steps=2),
            "wrt names no parameter",
        ),
        (lambda s: simkit.optimize(s, [], objective="off", steps=2), "wrt names no parameter"),
        (lambda s: simkit.value_and_grad(s, "params.closure", objective="off", steps=2), "; write closure$"),
        (lambda s: simkit.optimize(s, "closure.layer", objective="off", steps=2), "did you mean 'closure.layers'"),
        (lambda s: simkit.sweep(s, {"closure": [1.0]}, steps=2), "it is a branch; name one of closure.scale"),
        (lambda s: simkit.run(s, steps=2, closure=3.0), "'closure' is a branch of parameters"),
        (lambda s: simkit.run(s, steps=2, closure={"scale": 1.0}), "lack 'closure.layers.0.weight'"),
        (lambda s: simkit.run(s, steps=2, **{"closure.layers.0.bias": [9.0, 0, 0]}), r"bias\[0\] = 9 is above its upp"),
        (lambda s: simkit.ensemble(s, over=["closre"]), "unknown parameter 'closre'; did you mean 'closure'"),
    ],
)
def test_mistakes_in_python_name_the_path(act, message):
    with pytest.raises(simkit.UserError, match=message) as error:
        act(mass(nested=True))
    assert "\n" not in str(error.value)
