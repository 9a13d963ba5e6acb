"""Optimizations by every method and from several starts: minima, messages, and resumption."""

import dataclasses
import json
import re

import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import simkit
from simkit.cli.main import main
from simkit.export import pictures
from simkit.export.pictures import draw_sweep
from simkit.jobs.job import begin
from simkit.jobs.optimizations import Optimization, Starts, best_of
from simkit.jobs.runs import RunFailedError
from simkit.jobs.stored_jobs import progress_of
from simkit.scenario.made_in_python import scenario_of
from tests.jobs.test_derivatives import OF_VALLEYS, OPTIONS, plane, valleys
from tests.stopping import StopAfter, Stopped

# Zero at x, y = 2, 1.
FIT = "sum((final(curve) - 2*2.718281828459045**(-0.3*place))**2)"


def with_places():
    return dataclasses.replace(plane(), coordinates={"place": np.arange(5.0)})


@pytest.mark.parametrize("method", ["lbfgs", "levenberg_marquardt"])
def test_a_weighted_sum_of_objectives_has_the_weighted_mean_of_their_minima(method):
    # min of a |p - p1|^2 + b |p - p2|^2 is at (a p1 + b p2)/(a + b), with minima p1 = (2, 0) and p2 = (0, -1).
    for a, b in ((1.0, 1.0), (1.0, 3.0), (4.0, 1.0)):
        text = f"{a}*((final(sqrt(near)))**2) + {b}*final(sqrt(far))**2" if method != "lbfgs" else f"{a}*near + {b}*far"
        found = simkit.optimize(plane(), ["x", "y"], objective=text, method=method, **OPTIONS)
        assert found["best_x"].values[-1] == pytest.approx(2 * a / (a + b), abs=1e-3)
        assert found["best_y"].values[-1] == pytest.approx(-b / (a + b), abs=1e-3)


def test_a_count_is_optimized_without_its_derivative():
    pytest.importorskip("evosax")
    with pytest.warns(UserWarning, match="in steps only"):
        flat = simkit.optimize(plane(), ["x", "y"], objective="final(count)", **OPTIONS)
    assert flat["best_loss"].values[-1] == flat["best_loss"].values[0] > 0
    options = {"objective": "final(count)", "method": "cma_es", "iterations": 100}
    found = simkit.optimize(plane(), ["x", "y"], **options, **OPTIONS)
    assert found["best_loss"].values[-1] == 0 and "converged after" in found.attrs["message"]
    several = simkit.optimize(plane(), ["x", "y"], starts=3, **options, **OPTIONS)
    assert np.all(several["best_loss"].isel(frame=-1) == 0) and np.all(several["status"] == "converged")


@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
@pytest.mark.parametrize("method", ["lbfgs", "adam", "levenberg_marquardt", "cma_es"])
def test_an_interrupted_optimization_resumes_bit_for_bit(method, several, tmp_path):
    if method == "cma_es":
        pytest.importorskip("evosax")
    simulation = with_places()
    scenario, _ = scenario_of(simulation, {"steps": 1})
    more = {"wrt": ("x", "y"), "objective": FIT, "method": method, "iterations": 20}
    job = Starts(scenario, {"x": (-1.2, 0.4, 3.0)}, chunk=2, **more) if several else Optimization(scenario, **more)
    with pytest.raises(Stopped):
        begin(job, tmp_path / "stopped", report=StopAfter(7 if several else 3))
    found = simkit.resume(tmp_path / "stopped", simulation=simulation)
    begin(job, tmp_path / "whole")
    xarray.testing.assert_identical(found, simkit.open_run(tmp_path / "whole"))
    kind = "optimization from several starts" if several else "optimization"
    assert progress_of(tmp_path / "stopped").kind == kind
    for path in (tmp_path / "whole").rglob("*.npz"):
        other = tmp_path / "stopped" / path.relative_to(tmp_path / "whole")
        assert other.read_bytes() == path.read_bytes(), path.name


def test_a_stop_says_why(tmp_path):
    # At the kink no step decreases the value, and the gradient is not zero.
    found = simkit.optimize(plane(), ["x"], objective="1 + max(width - 2.1, 6.3 - 3*width)", iterations=60, **OPTIONS)
    assert "float32 resolves no further progress" in found.attrs["message"]
    assert found.sizes["iteration"] < 40
    at_bound = simkit.optimize(plane(), ["x"], objective="0 - width", steps=1, iterations=200)
    assert at_bound.sizes["iteration"] < 60
    assert "x = 4 ends at its upper bound 4, toward which the objective still improves" in at_bound.attrs["message"]
    used_up = simkit.optimize(plane(), ["x"], objective="near", iterations=1, steps=1)
    assert "used its 1 iteration without converging" in used_up.attrs["message"]


def test_a_loss_that_turns_non_finite_is_described_by_its_parameters_and_the_best_before():
    simulation = plane().with_quantities(edge=lambda s, params: jnp.sqrt(params["x"] - 1) - 0.1)
    with pytest.raises(RunFailedError) as caught:
        simkit.optimize(simulation, "x", objective="edge**2", method="adam", iterations=60, **OPTIONS)
    words = str(caught.value)
    found = re.search(
        r"between iteration \d+ and iteration \d+, with x = (\S+), .*; the best before was (\S+) at x", words
    )
    assert found is not None
    assert float(found[1]) < 1
    # The start is at x = 3.
    assert float(found[2]) < (2**0.5 - 0.1) ** 2


def test_each_start_equals_a_single_optimization_from_there():
    begun = [-1.2, -0.4, 0.4, 1.2]
    found = simkit.optimize(valleys(), ["x", "y"], starts={"x": begun}, **OF_VALLEYS)
    assert found["status"].dims == ("x", "seed") and found["best_x"].shape == (4, 1)
    for index, x in enumerate(begun):
        one = simkit.optimize(valleys(), ["x", "y"], x=x, **OF_VALLEYS)
        member = found.isel(x=index, seed=0)
        assert float(member["best_x"]) == pytest.approx(float(one["best_x"][-1]), abs=2e-3)
        assert float(member["best_loss"][-1]) == pytest.approx(float(one["best_loss"][-1]), abs=1e-5)
        assert member["status"].item() == one.attrs["status"]
    # The minima are roots of 4 x^3 - 2 x + 0.2 = 0.
    lows = np.sort(np.roots([4.0, 0.0, -2.0, 0.2]).real)[[0, 2]]
    ends = found["best_x"].values.ravel()
    np.testing.assert_allclose(ends, lows[[0, 0, 1, 1]], atol=2e-3)
    assert found["best_x"].values[best_of(found, maximize=False)] == pytest.approx(lows[0], abs=2e-3)


def test_starts_are_drawn_between_the_bounds():
    found = simkit.optimize(valleys(), ["x", "y"], starts=8, **OF_VALLEYS)
    assert found["status"].dims == ("point", "seed") and found.sizes["point"] == 8
    # A Latin hypercube has one start in each eighth of the bounds.
    assert sorted(((found["x"].values + 1.5) / 3 * 8).astype(int)) == list(range(8))
    assert "Latin hypercube of 8 points" in found.attrs["points"]


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
