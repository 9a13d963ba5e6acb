"""How results, derivatives, scenarios and simulations show themselves in a notebook."""

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import xarray

import simkit
from simkit.core.display import DISPLAYS
from simkit.export import notebook
from simkit.jobs.results import Origin, ResultDataset
from simkit.scenario.catalog import parse_scenario
from simkit.scenario.made_in_python import load
from tests.core.toys import oscillator
from tests.export.runs import CHANNEL
from tests.toys import PENDULUMS, toy

HOSTILE = "</td></p><script>alert(1)</script> & \"quoted\" 'x'"
LARGEST = 2_500_000  # bytes of an output


@pytest.fixture(scope="module")
def shown(factories):
    """Each kind of value under a hostile title and meaning, by name."""
    text = re.sub("(?m)^(title|summary|doc) = .*", lambda line: f"{line[1]} = {json.dumps(HOSTILE)}", PENDULUMS)
    scenario = toy(text)
    return {
        "run": simkit.run(scenario),
        "sweep": simkit.sweep(scenario, {"frequency": [1.0, 2.0]}, seeds=2),
        "optimization": simkit.optimize(scenario, "frequency", iterations=2),
        "starts": simkit.optimize(scenario, "frequency", iterations=2, starts=2),
        "derivative": simkit.value_and_grad(scenario, "frequency", check=True),
        "scenario": scenario,
        "simulation": oscillator(),
    }


def test_each_shows_its_own_numbers(shown):
    assert "ran all its steps" in shown["run"]._repr_html_()
    assert "4 members over frequency (2), seed (2): 4 ok" in shown["sweep"]._repr_html_()
    assert '<th scope="col">best</th>' in shown["optimization"]._repr_html_()
    table = shown["derivative"]._repr_html_()
    assert "<td>agrees</td>" in table and f"{shown['derivative'].derivative['frequency']:.6g}" in table
    assert all(f"<td>{name}</td>" in shown["scenario"]._repr_html_() for name in ("frequency", "time_step"))
    assert '<td>frequency</td><td class="number">1.3</td>' in shown["simulation"]._repr_html_()


def test_a_derivative_is_the_pair_of_value_and_slopes(shown):
    pair = shown["derivative"]
    value, slopes = pair
    assert isinstance(pair, tuple) and repr(pair) == repr((value, slopes)) and pickle.loads(pickle.dumps(pair)) == pair
    assert pair.check.verdict == {"frequency": "agrees"} and pair.note == ""
    with pytest.raises(simkit.UserError, match="check=True compares the derivative of one run"):
        simkit.value_and_grad(toy(), "frequency", seeds=2, check=True)


def test_a_failed_run_and_an_unfinished_one_are_shown(tmp_path):
    diverging = simkit.Simulation(
        init=lambda params, key: {"size": params["size"]},
        step=lambda state, params: {"size": state["size"] * 1e30},
        observe=lambda state, params: {},
        diagnose=lambda state, params: dict(state),
        params={"size": 1e30},
    )
    with pytest.raises(simkit.RunFailedError):
        simkit.run(diverging, steps=4, every=1, output=tmp_path / "run")
    page = simkit.open_run(tmp_path / "run")._repr_html_()
    assert "<mark>" in page and "non-finite" in page
    (tmp_path / "run" / "summary.json").unlink()
    assert "is not finished" in simkit.open_run(tmp_path / "run")._repr_html_()


def test_what_cannot_be_shown_falls_back_to_text(monkeypatch, shown):
    def fail(value):
        raise ZeroDivisionError

    for kind in ("result", "derivative", "scenario", "simulation"):
        monkeypatch.setitem(DISPLAYS, kind, fail)
    assert shown["simulation"]._repr_html_() is None and shown["derivative"]._repr_html_() is None
    origin = Origin("run", toy(), None)
    assert ResultDataset.of(xarray.Dataset({"a": 1.0}), origin)._repr_html_().startswith("<div><svg")


def test_a_slow_or_large_film_is_a_picture(flow, monkeypatch):
    run = simkit.open_run(flow[1])
    assert "image/png" in run._repr_html_()  # three frames are not worth a film
    monkeypatch.setattr(notebook, "SECONDS", 60.0)
    long = simkit.run(load(parse_scenario(CHANNEL.replace("every = 10", "every = 1"), Path("channel.toml")), {}))
    assert "image/gif" in notebook.result(long)
    monkeypatch.setattr(notebook, "MOST_BYTES", 10)
    assert "image/gif" not in notebook.result(long)
    monkeypatch.setattr(notebook, "MOST_BYTES", LARGEST)
    monkeypatch.setattr(notebook, "SECONDS", 0.0)
    assert "image/gif" not in notebook.result(long) and "image/png" in notebook.result(long)


def test_a_part_of_a_result_and_a_copy_for_another_process_are_plain_data(shown):
    run = shown["run"]
    assert "image/" not in run.isel(time=[0, 1])._repr_html_()
    copied = pickle.loads(pickle.dumps(run))
    assert type(copied) is xarray.Dataset and copied.equals(run)
    np.testing.assert_array_equal(copied["position"], run["position"])
