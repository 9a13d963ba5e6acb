"""Expressions for quantities, objectives and values, in scenario files and on the command line."""

import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from simkit.jobs.job import begin
from simkit.jobs.optimizations import Optimization
from simkit.scenario.made_in_python import load
from tests.jobs.test_expressions import FILE
from tests.stopping import StopAfter, Stopped
from tests.tables import every


@pytest.fixture
def eddies(tmp_path):
    path = tmp_path / "eddies.toml"
    path.write_text(FILE)
    return path


def late(run):
    return float(run["intensity"].values[run["time"].values >= 0.15].mean())


def test_expressions_are_recorded_by_runs_and_reduced_by_objectives(eddies):
    run = simkit.run(eddies)
    assert run["fluctuation"].attrs["units"] == "U" and run["fluctuation"].dims == run["u"].dims
    u = run["u"]
    np.testing.assert_allclose(run["fluctuation"], u - u.mean("x"), atol=1e-14)
    value, _ = simkit.value_and_grad(eddies, ["reynolds"])
    assert value == pytest.approx(late(run), rel=1e-12)
    value, _ = simkit.value_and_grad(eddies, ["reynolds"], objective="largest_fluctuation")
    assert value == pytest.approx(float(np.abs(run["fluctuation"]).max()), rel=1e-12)
    text = "time_mean(rms(fluctuation), after=0.15)**2 + final(mean_u)"
    value, derivative = simkit.value_and_grad(eddies, ["reynolds", "forcing"], objective=text)
    rms = np.sqrt((run["fluctuation"] ** 2).mean(("x", "y")))
    expected = float(rms[run["time"] >= 0.15].mean()) ** 2 + float(run["mean_u"][-1])
    assert value == pytest.approx(expected, rel=1e-12) and set(derivative) == {"reynolds", "forcing"}
    value, _ = simkit.value_and_grad(eddies, ["reynolds"], objective="largest(at(u, x=2.1, y=0.3)) + mean(final(u*y))")
    expected = float(u.interp(x=2.1, y=0.3).max()) + float((u[-1] * u["y"]).mean())
    assert value == pytest.approx(expected, rel=1e-12)


def test_expressions_work_in_sweeps_optimizations_and_resumed_jobs(eddies, tmp_path, capsys):
    swept = simkit.sweep(eddies, {"reynolds": [50.0, 200.0]})
    for reynolds in (50.0, 200.0):
        run = simkit.run(eddies, reynolds=reynolds)
        np.testing.assert_allclose(swept["intensity"].sel(reynolds=reynolds).squeeze(), run["intensity"], rtol=1e-9)
        assert float(swept["late_intensity"].sel(reynolds=reynolds).squeeze()) == pytest.approx(late(run), rel=1e-9)
        # A sweep stores only the last frame of a field.
        last = float(np.abs(run["fluctuation"][-1]).max() + run["intensity"][-1])
        assert float(swept["last_fluctuation"].sel(reynolds=reynolds).squeeze()) == pytest.approx(last, rel=1e-9)
    bare = simkit.sweep(eddies, {"reynolds": [50.0, 200.0]}, final_frames=False)
    assert bare.attrs["objectives_left_out"] == "largest_fluctuation, last_fluctuation"
    assert bare["late_intensity"].equals(swept["late_intensity"])
    assert swept.attrs["objectives_left_out"] == "largest_fluctuation" and "largest_fluctuation" not in swept
    assert main(["sweep", str(eddies), "--over", "reynolds=50,200", "-o", str(tmp_path / "sweep")]) == 0
    told = capsys.readouterr().out
    assert "late_intensity" in told.split("\n", 1)[0] and "not shown: largest_fluctuation: " in told
    text = "(final(mean_u) - 0.004)**2*1e6"
    job = Optimization(load(eddies), ("forcing",), text, "adam", 4)
    begin(job, tmp_path / "whole")
    with pytest.raises(Stopped):
        begin(job, stopped := tmp_path / "stopped", report=StopAfter(2))
    assert simkit.resume(stopped).identical(simkit.open_run(tmp_path / "whole"))
    assert main(["resume", str(stopped)]) == 0
    assert main(["validate", str(eddies)]) == 0


@every(
    ("before", "after", "message"),
    [
        ("[quantities.intensity]", "[quantities.speed]", "expression: the name 'speed' is taken"),
        ('doc = "how much of the flow fluctuates"', "", "quantities.intensity.doc is missing"),
        ('unit = "U"', "unit = 3", "quantities.fluctuation.unit"),
        ('"time_mean(intensity, after=0.15)"', '"intensify"', "did you mean 'intensity'?"),
        ('"time_mean(intensity, after=0.15)"', "3", "is no expression; write one in quotes"),
        ('goal = "maximize"', 'reduce = "sum"', "objectives.largest_fluctuation.reduce has no effect beside expr"),
        (
            'derivative = "reynolds"',
            'derivative = "reynolds"\nquantity = "intensity"',
            "validation[1].quantity has no effect beside objective; leave it out",
        ),
        ('quantity = "fluctuation"', 'quantity = "fluctuations"', "did you mean 'fluctuation'?"),
    ],
)
def test_mistakes_in_a_file_are_one_line(eddies, before, after, message, capsys):
    assert before in FILE
    eddies.write_text(FILE.replace(before, after))
    assert main(["run", str(eddies), "--no-render"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "eddies.toml" in error and message in error


@every(
    ("objective", "message"),
    [
        ("time_mean(u)", "objective: 'time_mean(u)' has one number for each x and y; reduce it by mean"),
        ("late_intensit", "did you mean 'late_intensity'?"),
    ],
)
def test_mistakes_in_an_objective_are_one_line(eddies, objective, message, capsys):
    assert main(["grad", str(eddies), "--wrt", "reynolds", "--objective", objective]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and message in error
