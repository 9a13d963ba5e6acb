"""Points of sweeps: zipped values, samples, tables, and values of the configuration."""

import numpy as np
import pytest
import xarray

import simkit
from simkit import Simulation
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.jobs.job import begin
from simkit.jobs.sweep_functions import planned
from tests.jobs.test_plans import PLANS
from tests.stopping import StopAfter, Stopped
from tests.toys import PENDULUMS, toy


@pytest.mark.parametrize("plan", PLANS)
def test_an_interrupted_sweep_resumes_and_is_read_back(plan, tmp_path):
    asked = PLANS[plan](tmp_path)
    job = planned(toy(), asked.pop("over", {}), **asked, chunk=2)
    with pytest.raises(Stopped):
        begin(job, tmp_path / "stopped", report=StopAfter(1))
    resumed = simkit.resume(tmp_path / "stopped")
    begin(job, tmp_path / "whole")
    xarray.testing.assert_identical(resumed, simkit.open_run(tmp_path / "whole"))


def test_an_interrupted_sweep_over_configurations_resumes(tmp_path):
    job = planned(toy(), {"config.size": [2, 3], "frequency": [1.0, 2.0]}, chunk=1)
    with pytest.raises(Stopped):
        begin(job, tmp_path / "stopped", report=StopAfter(3))
    begin(job, tmp_path / "whole")
    xarray.testing.assert_identical(simkit.resume(tmp_path / "stopped"), simkit.open_run(tmp_path / "whole"))


def test_a_branch_may_be_set_and_one_of_its_parameters_swept():
    nested = Simulation(
        init=lambda params, key: {"x": params["closure"]["scale"] + params["closure"]["offset"]},
        step=lambda state, params: state,
        observe=lambda state, params: {},
        params={"closure": {"scale": 1.0, "offset": 0.5}},
        diagnose=lambda state, params: {"x": state["x"]},
    )
    closure = {"scale": 9.0, "offset": 2.0}
    swept = simkit.sweep(nested, {"closure.scale": [1.0, 3.0]}, closure=closure, steps=1)
    assert swept["x"][:, 0, -1].values.tolist() == [3.0, 5.0]
    with pytest.raises(UserError, match=r"'closure\.scale' is swept"):
        simkit.sweep(nested, {"closure.scale": [1.0, 3.0]}, **{"closure.scale": 2.0}, steps=1)


def test_a_forecast_does_not_mind_an_earlier_sweep(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.toml").write_text(PENDULUMS)
    words = ["sweep", "./toy.toml", "--over", "frequency=1,2"]
    assert main([*words, "--no-render"]) == 0
    assert main([*words, "--dry-run"]) == 0
    capsys.readouterr()
    assert main([*words, "--dry-run", "--output", "runs/toy_pendulums_sweep"]) == 2
    assert "already holds" in capsys.readouterr().err


@pytest.mark.parametrize("plan", PLANS)
def test_each_point_is_the_run_with_its_values(plan, tmp_path):
    swept = simkit.sweep(toy(), **PLANS[plan](tmp_path), seeds=2)
    assert swept["energy"].dims == ("point", "seed", "frame")
    for point in range(swept.sizes["point"]):
        values = {name: float(swept[name][point]) for name in ("frequency", "time_step")}
        run = simkit.run(toy(), **values, seed=toy().run.seed + 1)
        np.testing.assert_allclose(swept["energy"][point, 1], run["energy"], rtol=1e-12)


def test_values_of_the_configuration_are_an_outer_axis(tmp_path):
    swept = simkit.sweep(toy(), {"config.size": [2, 3], "frequency": [1.0, 2.0]}, seeds=2, output=tmp_path / "sweep")
    assert swept["energy"].dims == ("config.size", "frequency", "seed", "frame")
    for place, count in enumerate((2, 3)):
        run = simkit.run(toy(), **{"config.size": count}, frequency=2.0)
        np.testing.assert_allclose(swept["energy"][place, 1, 0], run["energy"], rtol=1e-12)
        part = simkit.open_run(tmp_path / "sweep" / f"config_{place:04d}")
        assert part.sizes["pendulum"] == count
    xarray.testing.assert_identical(simkit.open_run(tmp_path / "sweep"), swept)
    xarray.testing.assert_identical(simkit.resume(tmp_path / "sweep"), swept)
