"""Optimizations from several starts: equal to single optimizations, stored and resumed like a sweep."""

import dataclasses
import json

import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import simkit
from simkit.cli.main import main
from simkit.export import pictures
from simkit.export.pictures import draw_sweep
from simkit.jobs.job import begin
from simkit.jobs.optimizations import Starts, best_of
from simkit.jobs.stored_jobs import progress_of
from simkit.scenario.made_in_python import scenario_of
from tests.jobs.test_starts import OPTIONS, valleys
from tests.stopping import StopAfter, Stopped


def test_each_start_equals_a_single_optimization_from_there():
    begun = [-1.2, -0.4, 0.4, 1.2]
    found = simkit.optimize(valleys(), ["x", "y"], starts={"x": begun}, **OPTIONS)
    assert found["status"].dims == ("x", "seed") and found["best_x"].shape == (4, 1)
    for index, x in enumerate(begun):
        one = simkit.optimize(valleys(), ["x", "y"], x=x, **OPTIONS)
        member = found.isel(x=index, seed=0)
        assert float(member["best_x"]) == pytest.approx(float(one["best_x"][-1]), abs=2e-3)
        assert float(member["best_loss"][-1]) == pytest.approx(float(one["best_loss"][-1]), abs=1e-5)
        assert member["status"].item() == one.attrs["status"]
    # The minima are roots of 4 x^3 - 2 x + 0.2 = 0.
    lows = np.sort(np.roots([4.0, 0.0, -2.0, 0.2]).real)[[0, 2]]
    ends = found["best_x"].values.ravel()
    np.testing.assert_allclose(ends, lows[[0, 0, 1, 1]], atol=2e-3)
    assert found["best_x"].values[best_of(found, maximize=False)] == pytest.approx(lows[0], abs=2e-3)


def test_bounds_of_the_best_start_are_reported(tmp_path, capsys):
    words = ["optimize", "bouncing_ball", "--wrt", "launch_speed", "--objective", "final(energy)", "--starts", "2"]
    assert main([*words, "--set", "steps=60", "--iterations", "8", "--output", str(tmp_path / "out")]) == 0
    assert "ends at its lower bound 1, toward which the objective still improves\n" in capsys.readouterr().out


def test_starts_are_drawn_between_the_bounds():
    found = simkit.optimize(valleys(), ["x", "y"], starts=8, **OPTIONS)
    assert found["status"].dims == ("point", "seed") and found.sizes["point"] == 8
    # A Latin hypercube has one start in each eighth of the bounds.
    assert sorted(((found["x"].values + 1.5) / 3 * 8).astype(int)) == list(range(8))
    assert "Latin hypercube of 8 points" in found.attrs["points"]


@pytest.mark.parametrize("method", ["lbfgs", "adam"])
@pytest.mark.parametrize("stop", [2, 7])
def test_an_interrupted_multi_start_optimization_resumes_bit_for_bit(stop, method, tmp_path):
    scenario, _ = scenario_of(valleys(), {"steps": 1})
    more = {"wrt": ("x", "y"), "objective": "depth", "method": method, "iterations": 30, "chunk": 3}
    job = Starts(scenario, {"x": (-1.2, -0.4, 0.1, 0.4, 1.2)}, **more)
    with pytest.raises(Stopped):
        begin(job, tmp_path / "stopped", report=StopAfter(stop))
    found = simkit.resume(tmp_path / "stopped", simulation=valleys())
    whole = begin(job, tmp_path / "whole")
    xarray.testing.assert_identical(found, whole)
    for path in (tmp_path / "whole").iterdir():
        assert (tmp_path / "stopped" / path.name).read_bytes() == path.read_bytes(), path.name
    xarray.testing.assert_identical(simkit.open_run(tmp_path / "stopped"), whole)
    assert progress_of(tmp_path / "whole").kind == "optimization from several starts"


def test_a_start_that_used_its_iterations_did_not_fail(tmp_path):
    """Only a start whose objective turned non-finite did, in the data set, its summary, the progress and the chart."""
    record = valleys()
    base = record.diagnose

    def diagnose(s, params):
        known = base(s, params)
        return known | {"rough": jnp.where(params["x"] > 1.0, jnp.nan, known["depth"])}

    record = dataclasses.replace(record, diagnose=diagnose)
    starts, folder = {"x": [-1.2, 0.4, 1.2]}, tmp_path / "starts"
    options = {"objective": "rough", "steps": 1, "iterations": 2, "output": folder}
    with pytest.warns(UserWarning, match="non-finite from 1 of 3 starts"):
        found = simkit.optimize(record, ["x"], starts=starts, **options)
    assert found["status"].values.ravel().tolist() == ["max_steps", "max_steps", "non_finite"]
    assert found.attrs["failed"] == 1 and simkit.open_run(folder).attrs["failed"] == 1
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["failures"] == 1 and [line[:8] for line in summary["failed"]] == ["member 2"]
    assert progress_of(folder).failures == 1
    drawn = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "sweep_chart", lambda path, data: drawn.append(data))
        draw_sweep(found, scenario_of(record, {"steps": 1})[0], tmp_path / "chart.png")
    assert drawn[0].failed.ravel().tolist() == [False, False, True]


def test_starts_on_the_command_line(tmp_path, capsys):
    words = ["optimize", "bouncing_ball", "--wrt", "launch_speed", "--starts", "3", "--iterations", "4"]
    words += ["--set", "steps=60", "--set", "every=20", "-o", str(tmp_path / "found")]
    assert main([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["starts"]) == 3
    assert report["best_value"] == min(start["best value"] for start in report["starts"])
    assert report["best"]["launch_speed"] == report["starts"][0]["launch_speed"]
    assert main(["resume", str(tmp_path / "found")]) == 0
    assert f"best {report['objective']}: {report['best_value']:.6g} at launch_speed" in capsys.readouterr().out
