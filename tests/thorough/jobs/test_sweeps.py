"""Sweeps: members equal single runs, in any chunks, devices, orders, and merged; and resumed with the same bytes."""

import json
import os
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest
import xarray

import simkit
from simkit import Simulation
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.jobs import chunk_size
from simkit.jobs.job import begin
from simkit.jobs.stored_jobs import progress_of
from simkit.jobs.sweep_functions import planned
from simkit.jobs.sweeps import Sweep
from simkit.scenario.catalog import parse_scenario
from simkit.scenario.made_in_python import load
from simkit.storage.chunk_files import ChunkFile
from simkit.storage.run_directory import RunDirectory
from tests.jobs.test_executors import own
from tests.jobs.test_plans import PLANS
from tests.jobs.test_sweeps import OVER
from tests.scenarios.small import FEW_DISKS, small
from tests.stopping import StopAfter, Stopped
from tests.tables import every
from tests.toys import PENDULUMS, SQUARED, toy

LATE = (
    PENDULUMS
    + """
[objectives.late]
doc = "mean after the end"
expression = "time_mean(energy, after=1e6)"
goal = "minimize"
"""
)


def wild_flow(**values):
    """Return undriven eddies, whose time step has no bound known in advance and may be far too long."""
    text = load("channel_flow").text
    wild = text.replace("bounds = [1e-4, 0.02]", "bounds = [1e-4, 10.0]")
    assert wild != text
    flow = {
        "config.axes.x.cells": 8,
        "config.axes.y.cells": 8,
        "steps": 400,
        "every": 5,
        "reynolds": 20000.0,
        "forcing": 0.0,
        "perturbation": 0.5,
    }
    return load(parse_scenario(wild, "wild_flow.toml"), flow | values)


@pytest.mark.parametrize("swept", ["radius", "target"])
def test_parameter_that_is_also_recorded_keeps_its_axis(swept):
    values = [0.1, 0.2]
    result = simkit.sweep(small("bouncing_ball"), {swept: values})
    assert result[swept].values.tolist() == values
    recorded = np.asarray(result[f"final_{swept}"]).reshape(2, -1)[:, 0]
    np.testing.assert_allclose(recorded, values, rtol=1e-15)


def test_chunks_do_not_change_the_result():
    whole = simkit.sweep(toy(), OVER)
    for chunk in (1, 4, 5, 6, 100):
        assert_close(simkit.sweep(toy(), OVER, chunk=chunk), whole)


def assert_close(a, b):
    """Compare data sets up to the last bits in which vectors of different lengths may differ."""
    assert set(a.data_vars) == set(b.data_vars)
    for name in a.data_vars:
        assert a[name].dims == b[name].dims
        if name == "status":
            assert (a[name].values == b[name].values).all()
        else:
            scale = np.nanmax(np.abs(b[name].values), initial=0.0)
            np.testing.assert_allclose(a[name], b[name], rtol=1e-12, atol=1e-12 * scale, err_msg=str(name))


def test_failed_member_is_named_and_does_not_change_the_others():
    steps = (0.005, 5.0, 0.01)
    with pytest.warns(UserWarning, match=r"^member 1 \(time_step = 5, seed = 0\) turned non-finite; bring"):
        result = simkit.sweep(wild_flow(), {"time_step": steps})
    assert result["status"].values.ravel().tolist() == ["ok", "non_finite", "ok"]
    assert np.isnan(result["kinetic_energy"].isel(time_step=1, seed=0, frame=-1))
    good = simkit.sweep(wild_flow(), {"time_step": steps[::2]})
    for name in good.data_vars:
        beside, alone = result[name].isel(time_step=[0, 2]).values, good[name].values
        if name == "status":
            assert (beside == alone).all()
        else:
            # float32: vectors of 3 and of 2 members may round differently, and 400 steps of a laminar flow forget it.
            np.testing.assert_allclose(beside, alone, rtol=1e-4, atol=1e-4 * np.max(np.abs(alone)), err_msg=str(name))


def test_sweep_raises_if_every_member_fails():
    with pytest.raises(simkit.RunFailedError, match=r"member 0 \(time_step = 5, seed = 0\).*every other member"):
        simkit.sweep(wild_flow(), {"time_step": [5.0, 6.0]})


def test_relaxations_that_stop_early_repeat_their_last_frame():
    # Dilute disks have no overlap after a few steps; dense ones take hundreds.
    scenario = load(
        "soft_sphere_packing", FEW_DISKS | {"steps": 4000, "every": 20, "config.relax.force_tolerance": 1e-8}
    )
    fractions = [0.6, 0.9]
    for chunk in (1, 2):
        result = simkit.sweep(scenario, {"packing_fraction": fractions}, chunk=chunk)
        assert (result["status"] == "converged").all()
        assert result.sizes["frame"] == 201
        iterations = result["iteration"].isel(seed=0)
        assert int(iterations[0, -1]) < int(iterations[1, -1]) < 4000
        assert (iterations.diff("frame") >= 0).all()


@pytest.mark.parametrize("stop", ["", "time > 0.07"])
def test_objectives_of_members_are_those_of_single_runs(stop, tmp_path, capsys):
    values = {"stop": stop} if stop else {}
    job = planned(toy(SQUARED, **values), {"frequency": [1.0, 2.0]}, seeds=2, chunk=3)
    swept = begin(job, tmp_path / "sweep")
    names = {"objective_energy": "energy", "mean_time": "mean_time", "spread": "spread"}
    for variable, name in names.items():
        for member in ({"frequency": 1.0, "seed": 0}, {"frequency": 2.0, "seed": 1}):
            value, _ = simkit.value_and_grad(toy(SQUARED, **values, **member), "frequency", objective=name)
            assert float(swept[variable].sel(member)) == pytest.approx(value, rel=1e-12)
    assert swept["spread"].attrs["long_name"] == "of the last angles"
    assert simkit.resume(tmp_path / "sweep").identical(swept)
    assert main(["resume", str(tmp_path / "sweep")]) == 0
    told = capsys.readouterr().out
    assert told.split("\n", 1)[0].split()[3:5] == ["objective_energy", "spread"]


def test_an_objective_that_is_not_finite_is_named(tmp_path, capsys):
    """Every member is fine, and the mean begins after the end of the run."""
    told = "objective late is not finite in 2 of 2 members that did not fail: a time of after"
    with pytest.warns(UserWarning, match=told):
        simkit.sweep(toy(LATE), {"frequency": [1.0, 2.0]}, output=tmp_path / "sweep")
    assert main(["resume", str(tmp_path / "sweep")]) == 3
    assert "objective late is not finite" in capsys.readouterr().err


SPREAD = """
import sys
import jax, simkit
from simkit.jobs import chunk_size, chunks
from simkit.scenario import registry
from tests.toys import FACTORIES, toy
# As on two devices of another kind: those of a CPU compute different chunks.
chunks.devices_of_members = chunk_size.devices_of_members = jax.local_devices
registry.FACTORIES.update(FACTORIES)
assert len(jax.local_devices()) == 2, jax.local_devices()
simkit.sweep(toy(), {"frequency": [1.0, 2.0, 3.0, 4.0]}, seeds=2, output=sys.argv[1], chunk=4)
open(sys.argv[1] + "/chunk_0001.npz", "wb").close()  # this half is computed again, on two devices
simkit.resume(sys.argv[1])
simkit.sweep(toy(), {"frequency": [1.0, 2.0, 3.0]}, output=sys.argv[2])  # the last member runs twice
"""


def test_sweep_over_two_devices_equals_one_device(tmp_path):
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-W", "ignore", "-c", SPREAD, tmp_path / "two", tmp_path / "odd"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    one = simkit.sweep(toy(), {"frequency": [1.0, 2.0, 3.0, 4.0]}, seeds=2, chunk=4)
    assert_close(simkit.open_run(tmp_path / "two"), one)
    assert_close(simkit.open_run(tmp_path / "odd"), simkit.sweep(toy(), {"frequency": [1.0, 2.0, 3.0]}))
    chunk = ChunkFile(RunDirectory.open(tmp_path / "odd"), 0, frames=11)
    assert len(chunk.read_whole()["status"]) == 4


@every("chunk", [None, 2])
def test_sweep_compiles_its_beginning_and_its_segment_once_each(chunk, caplog):
    caplog.clear()
    with jax.log_compiles():
        simkit.sweep(toy(), OVER, chunk=chunk)
    assert sum("Compiling jit(beginning)" in message for message in caplog.messages) == 1
    assert sum("Compiling jit(segment)" in message for message in caplog.messages) == 1


GRID = {"frequency": [1.0, 2.0, 3.0], "time_step": [0.01, 0.02]}


def sweep(folder, over, **more):
    """Sweep with chunks of one length, so that the last digits of a member are the same in any sweep."""
    return simkit.sweep(toy(**more.pop("scenario", {})), over, chunk=2, output=folder, **more)


# Two sweeps, and one of all their members.
PAIRS = {
    "values in turn": (
        ({"frequency": [1.0, 3.0], "time_step": [0.01, 0.02]}, {}),
        ({"frequency": [2.0], "time_step": [0.01, 0.02]}, {}),
        (GRID, {}),
    ),
    "values of the last axis": (
        ({"frequency": [1.0, 2.0, 3.0], "time_step": [0.01]}, {"seeds": 2}),
        ({"frequency": [1.0, 2.0, 3.0], "time_step": [0.02]}, {"seeds": 2}),
        (GRID, {"seeds": 2}),
    ),
    "seeds": (
        (GRID, {"seeds": 3, "scenario": {"seed": 6}}),
        (GRID, {"seeds": 2, "scenario": {"seed": 4}}),
        (GRID, {"seeds": 5, "scenario": {"seed": 4}}),
    ),
    "seeds alone": (({}, {"seeds": 2}), ({}, {"seeds": 4, "scenario": {"seed": 2}}), ({}, {"seeds": 6})),
    "points": (
        ({"frequency": [1.0, 2.0], "time_step": [0.01, 0.02]}, {"zip": True, "seeds": 2}),
        ({"frequency": [3.0, 2.5], "time_step": [0.03, 0.02]}, {"zip": True, "seeds": 2}),
        ({"frequency": [1.0, 2.0, 3.0, 2.5], "time_step": [0.01, 0.02, 0.03, 0.02]}, {"zip": True, "seeds": 2}),
    ),
    "grids that are none together": (
        ({"frequency": [1.0, 2.0], "time_step": [0.01]}, {}),
        ({"frequency": [3.0], "time_step": [0.02, 0.03]}, {}),
        ({"frequency": [1.0, 2.0, 3.0, 3.0], "time_step": [0.01, 0.01, 0.02, 0.03]}, {"zip": True}),
    ),
}


def the_same(merged, whole):
    drop = ["points"]
    merged, whole = (
        found.load().drop_attrs(deep=False).assign_attrs({k: v for k, v in found.attrs.items() if k not in drop})
        for found in (merged, whole)
    )
    xarray.testing.assert_identical(merged, whole)


def test_damaged_chunks_of_a_merged_sweep_are_computed_again(tmp_path):
    one, other, whole = PAIRS["values in turn"]
    for name, (over, more) in (("a", one), ("b", other)):
        sweep(tmp_path / name, over, **more)
    simkit.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    shutil.rmtree(tmp_path / "a")
    (tmp_path / "merged" / "chunk_0001.npz").write_bytes(b"damaged")
    with pytest.warns(UserWarning, match="chunk_0001.npz: .*; computing it again"):
        found = simkit.resume(tmp_path / "merged")
    the_same(found, sweep(None, whole[0]))


def test_sweeps_of_a_simulation_made_in_python_are_merged_with_it(tmp_path):
    for name, rates in (("a", [1.0, 2.0]), ("b", [1.5])):
        simkit.sweep(own(), {"rate": rates}, steps=8, chunk=1, output=tmp_path / name)
    found = simkit.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "merged", simulation=own())
    assert found["x"].isel(frame=0, seed=0).values.tolist() == [1.0, 1.5, 2.0]


def test_merge_on_the_command_line(tmp_path, capsys):
    words = ["--set", "steps=30", "--set", "every=10", "--chunk", "1", "--json"]
    for name, values in (("a", "3,5"), ("b", "4,6")):
        over = f"launch_speed={values}"
        assert main(["sweep", "bouncing_ball", "--over", over, "-o", str(tmp_path / name), *words]) == 0
    capsys.readouterr()
    assert main(["merge", str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(tmp_path / "merged"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["axes"]["launch_speed"] == [3.0, 4.0, 5.0, 6.0] and report["members"] == 4


def test_folders_without_a_finished_sweep_are_refused(tmp_path):
    a, b, out = tmp_path / "a", tmp_path / "b", tmp_path / "merged"
    sweep(a, {"frequency": [2.0, 3.0]})
    simkit.run(toy(), output=tmp_path / "run")
    simkit.sweep(toy(), {"config.size": [2, 3], "frequency": [1.0]}, output=tmp_path / "configs")
    with pytest.raises(Stopped):
        begin(Sweep(toy(), {"frequency": (1.0,)}), b, report=StopAfter(3))
    for folders, words in (
        ([a], "two sweeps or more"),
        (None, "folders = None: merging takes two sweeps or more, each once; give their folders"),
        (3, "folders = 3: merging takes two sweeps or more"),
        ([a, a], "two sweeps or more, each once"),
        ([a, tmp_path / "run"], "run holds a run; give the folder of a sweep"),
        (
            [a, tmp_path / "configs"],
            "configs holds a sweep over configurations; give the folder of a sweep, such as config_0000",
        ),
        ([a, b], "b is not finished; finish it with: simkit resume"),
        ([a, tmp_path], "is not a run directory"),
    ):
        with pytest.raises(UserError, match=words):
            simkit.merge(folders, out)
        assert not out.exists()
    simkit.resume(b)
    with pytest.raises(UserError, match="already holds a run"):
        simkit.merge([a, b], tmp_path / "run")
    with pytest.raises(UserError, match="is one of the sweeps"):
        simkit.merge([a, b], a, overwrite=True)
    chunk = b / "chunk_0000.npz"
    chunk.write_bytes((a / "chunk_0000.npz").read_bytes())
    with pytest.raises(UserError, match=r"b/chunk_0000.npz: it is from another run; make it again with: simkit resume"):
        simkit.merge([a, b], out)
    assert not out.exists()


@pytest.mark.parametrize("is_large", [False, True], ids=["one_file", "chunks"])
@pytest.mark.parametrize("name", PAIRS)
def test_merged_sweeps_are_the_sweep_of_all_members(name, is_large, tmp_path, monkeypatch):
    if is_large:
        monkeypatch.setattr(chunk_size, "ONE_FILE", 100)
    *parts, (over, more) = PAIRS[name]
    folders = [tmp_path / f"part_{index}" for index in range(len(parts))]
    for folder, (points, options) in zip(folders, parts, strict=True):
        sweep(folder, points, **options)
    found = simkit.merge(folders, tmp_path / "merged")
    whole = sweep(None, over, **more)
    the_same(found, whole)
    the_same(simkit.open_run(tmp_path / "merged"), whole)
    the_same(simkit.resume(tmp_path / "merged"), whole)
    assert (tmp_path / "merged" / "sweep.nc").exists() != is_large
    assert progress_of(tmp_path / "merged").words == f"{whole['status'].size} of {whole['status'].size} members"


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
