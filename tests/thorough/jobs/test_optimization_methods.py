"""Optimizations by every method, on the command line and in Python: weights, penalties, resumption and stops."""

import dataclasses
import json
import re

import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import simkit
from simkit.cli.main import main
from simkit.jobs.job import begin
from simkit.jobs.optimizations import Optimization, Starts
from simkit.jobs.runs import RunFailedError
from simkit.scenario.made_in_python import scenario_of
from tests.jobs.test_optimization_methods import OPTIONS, plane
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


def test_a_penalty_keeps_a_constraint_to_the_weight(capsys, tmp_path):
    # min of |p - (2, 0)|^2 with x + y <= 1 is at (1.5, -0.5); with the penalty w (x + y - 1)^2 the excess of x + y is
    # e = 1/(1 + 2 w), and p = (2 - w e, -w e).
    for weight in (1.0, 100.0):
        text = f"near + {weight}*max(0, width - 1)**2"
        found = simkit.optimize(plane(), ["x", "y"], objective=text, **OPTIONS)
        excess = 1 / (1 + 2 * weight)
        assert found["best_x"].values[-1] == pytest.approx(2 - weight * excess, abs=1e-3)
        assert found["best_y"].values[-1] == pytest.approx(-weight * excess, abs=1e-3)


def test_declared_objectives_are_combined_by_name(tmp_path, capsys):
    words = ["optimize", "bouncing_ball", "--wrt", "launch_speed", "--set", "steps=60", "--set", "every=20"]
    words += ["--iterations", "3", "--no-render", "--json"]
    assert main([*words, "--objective", "miss + 0*final_position", "-o", str(tmp_path / "combined")]) == 0
    combined = json.loads(capsys.readouterr().out)
    assert main([*words, "--objective", "miss", "-o", str(tmp_path / "one")]) == 0
    assert combined["best_loss"] == pytest.approx(json.loads(capsys.readouterr().out)["best_loss"], rel=1e-4)


def test_a_fit_by_levenberg_marquardt_takes_fewer_updates_and_says_that_it_converged():
    counts = {}
    for method in ("lbfgs", "levenberg_marquardt"):
        found = simkit.optimize(with_places(), ["x", "y"], objective=FIT, method=method, **OPTIONS)
        assert found["best_x"].values[-1] == pytest.approx(2, abs=1e-3)
        assert found["best_y"].values[-1] == pytest.approx(1, abs=1e-3)
        counts[method] = found.sizes["iteration"] - 1
        assert found.attrs["message"] == f"simulation converged after {counts[method]} iterations"
    assert counts["levenberg_marquardt"] < counts["lbfgs"]


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


def test_a_target_is_hit_after_a_number_of_bounces_that_has_no_derivative():
    pytest.importorskip("evosax")
    options = {"objective": "miss + 10*abs(final(bounces) - 4)", "iterations": 60}
    wrt = ["launch_speed", "launch_angle"]
    by_gradient = simkit.optimize("bouncing_ball", wrt, **options)
    # Six bounces, two too many.
    assert by_gradient["best_loss"].values[-1] == pytest.approx(20, abs=1e-6)
    found = simkit.optimize("bouncing_ball", wrt, method="cma_es", **options)
    assert found["best_loss"].values[-1] < 1e-6
    bounces = simkit.run(
        "bouncing_ball",
        launch_speed=found["best_launch_speed"].values[-1],
        launch_angle=found["best_launch_angle"].values[-1],
    )["bounces"]
    assert bounces.values[-1] == 4


@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
@pytest.mark.parametrize("method", ["levenberg_marquardt", "cma_es"])
def test_an_interrupted_optimization_resumes_bit_for_bit(method, several, tmp_path):
    if method == "cma_es":
        pytest.importorskip("evosax")
    simulation = with_places()
    scenario, _ = scenario_of(simulation, {"steps": 1})
    more = {"wrt": ("x", "y"), "objective": FIT, "method": method, "iterations": 20}
    job = Starts(scenario, {"x": (-1.2, 0.4, 3.0)}, chunk=2, **more) if several else Optimization(scenario, **more)
    with pytest.raises(Stopped):
        begin(job, tmp_path / "stopped", report=StopAfter(3))
    found = simkit.resume(tmp_path / "stopped", simulation=simulation)
    begin(job, tmp_path / "whole")
    xarray.testing.assert_identical(found, simkit.open_run(tmp_path / "whole"))
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
