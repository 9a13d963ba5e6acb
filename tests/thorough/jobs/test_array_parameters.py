"""Parameters of 0, 1, 2 and 3 dimensions in runs, sweeps, optimizations, storage and export."""

import dataclasses
import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.core.simulation import Simulation
from simkit.export import program
from simkit.scenario import registry
from simkit.scenario.catalog import parse_scenario
from simkit.storage.files import read_arrays
from tests.core.toys import oscillator

VALUES = {
    "shift": 0.1,
    "row": (0.1, 0.2),
    "table": ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6)),
    "block": (((0.1, 0.2), (0.3, 0.4)), ((0.5, 0.6), (0.7, 0.8))),
}


SCENARIO = """\
name = "toy_arrays"
title = "Arrays"
summary = "A pendulum whose frequency is a sum of arrays."
simulation = "toy.arrays"
[run]
steps = 4
every = 2
precision = "float64"
[objectives.energy]
doc = "energy at the end"
[render]
view = "field"
quantity = "position"
""" + "".join(
    f"[params.{name}]\ndefault = {json.dumps(value)}\nbounds = [0.0, 2.0]\ndoc = 'part of it'\n"
    for name, value in VALUES.items()
)


def arrays() -> Simulation:
    """Make a pendulum whose frequency is the sum of all entries of its parameters."""
    simple = oscillator()

    def inner(params):
        return {"frequency": sum(jnp.sum(params[name]) for name in VALUES), "time_step": jnp.asarray(0.01, float)}

    return dataclasses.replace(
        simple,
        init=lambda params, key: simple.init(inner(params), key),
        step=lambda state, params: simple.step(state, inner(params)),
        observe=lambda state, params: {"position": state.position[:, None]},
        diagnose=lambda state, params: simple.diagnose(state, inner(params)),
        params={name: jnp.asarray(value, float) for name, value in VALUES.items()},
        dimensions={"position": ("pendulum", "column")},
    )


@pytest.fixture
def scenario(monkeypatch):
    monkeypatch.setitem(registry.FACTORIES, "toy.arrays", "tests.thorough.jobs.test_array_parameters:arrays")
    return parse_scenario(SCENARIO, Path("toy_arrays.toml"))


def assert_attributes(dataset, without=()):
    for name in set(VALUES) - set(without):
        found = dataset.attrs[name]
        kept = json.loads(found) if isinstance(found, str) else found
        np.testing.assert_array_equal(np.asarray(kept), np.asarray(VALUES[name]))


def derivative(scenario, folder):
    simkit.value_and_grad(scenario, list(VALUES), output=folder)
    return simkit.open_run(folder)


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_arrays_go_through_run_sweep_optimize_and_back(scenario, tmp_path):
    work = {
        "run": lambda folder: simkit.run(scenario, output=folder),
        "sweep": lambda folder: simkit.sweep(scenario, {"shift": [0.1, 0.2]}, output=folder),
        "optimize": lambda folder: simkit.optimize(scenario, list(VALUES), method="adam", iterations=1, output=folder),
        "grad": lambda folder: derivative(scenario, folder),
    }
    for kind, begin in work.items():
        for dataset in (begin(tmp_path / kind), simkit.open_run(tmp_path / kind), simkit.resume(tmp_path / kind)):
            assert_attributes(dataset, without={"shift"} if kind == "sweep" else ())
            assert dataset.to_netcdf(engine="scipy")
        (tmp_path / kind / "summary.json").unlink()
        assert_attributes(simkit.resume(tmp_path / kind), without={"shift"} if kind == "sweep" else ())
    slopes = simkit.value_and_grad(scenario, list(VALUES), mode="reverse")[1]
    for name, slope in slopes.items():
        np.testing.assert_allclose(simkit.open_run(tmp_path / "grad")[name].values, slope, rtol=1e-5, atol=1e-7)
    best = simkit.open_run(tmp_path / "optimize")
    assert best["best_block"].shape == (2, 2, 2, 2) and best["best_shift"].shape == (2,)


def test_arrays_are_exported(scenario, tmp_path):
    assert program(scenario, tmp_path / "out", what="final", batch="symbolic").passed
    card = json.loads((tmp_path / "out" / "io.json").read_text())
    assert {port["name"]: port["shape"] for port in card["inputs"]}["params.block"] == ["symbolic", 2, 2, 2]
    tables = read_arrays(tmp_path / "out" / "reference.npz")["start.input.params.table"]
    np.testing.assert_allclose(tables, [VALUES["table"]] * 3, rtol=1e-6)
