import os
import subprocess
import sys

import jax
import numpy as np
import pytest
import xarray

import simkit
from simkit.cli.main import main
from simkit.jobs.job import begin
from simkit.jobs.sweep_functions import planned
from simkit.jobs.sweep_results import objectives_in
from simkit.scenario.made_in_python import load
from simkit.storage.chunk_files import ChunkFile
from simkit.storage.run_directory import RunDirectory
from tests.jobs.test_sweeps import OVER, check_resumed, finished, wild_flow  # noqa: F401
from tests.scenarios.small import FEW_DISKS, NAMES, small
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


def two_parameters(name):
    """Return three values, near the default, of each of the first two scalar parameters."""
    numbers = [(key, p) for key, p in small(name).parameters.items() if not isinstance(p.default, tuple)]
    return {
        key: [float(np.clip(p.default + k * 1e-3 * (p.bounds[1] - p.bounds[0]), *p.bounds)) for k in (0, 1, 2)]
        for key, p in numbers[:2]
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_sweep_equals_a_loop_over_runs(name):
    over = two_parameters(name)
    (first, values), (second, others) = over.items()
    scenario = small(name)
    swept = simkit.sweep(scenario, over, seeds=2)
    # A single run has no objectives; those of members are compared in another test.
    swept = swept.drop_vars(objectives_in(swept, scenario))
    for i, j, seed in [(0, 0, 0), (1, 2, 1), (2, 1, 0)]:
        chosen = {first: values[i], second: others[j], "seed": scenario.run.seed + seed}
        single = simkit.run(scenario, **chosen)
        member = swept.isel({first: i, second: j, "seed": seed})
        ended = single.attrs["status"]
        assert member["status"].item() == (ended if ended in ("max_steps", "stepped_impact") else "ok")
        scale = max(float(abs(array).max()) for array in single.data_vars.values())
        for quantity in member.data_vars:
            quantity = str(quantity)
            if quantity == "status":
                continue
            plain = quantity.removeprefix("diagnosed_").removeprefix("final_")
            if quantity.startswith("final_") and f"observed_{plain}" in single:
                plain = f"observed_{plain}"
            last = slice(None) if "frame" in member[quantity].dims else -1
            # Vectorized code may round the last bit differently; see the scenarios' test of ensembles.
            np.testing.assert_allclose(
                member[quantity], single[plain][last], rtol=1e-12, atol=1e-12 * scale, err_msg=quantity
            )


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


@pytest.mark.filterwarnings("ignore:member")
def test_failed_member_does_not_depend_on_the_others_of_its_chunk():
    steps = [0.005, 5.0, 0.01]
    alone, together = (
        simkit.sweep(wild_flow(), {"time_step": steps}, chunk=chunk).isel(time_step=1) for chunk in (1, 3)
    )
    for name in alone.data_vars:
        if alone[name].dtype.kind == "f":
            # Diverging values depend on rounding.
            alone[name], together[name] = np.isfinite(alone[name]), np.isfinite(together[name])
        np.testing.assert_array_equal(alone[name], together[name])
    assert not alone["speed"].any()  # the frame of a failed member is meaningless


def test_sweep_raises_if_every_member_fails():
    with pytest.raises(simkit.RunFailedError, match=r"member 0 \(time_step = 5, seed = 0\).*every other member"):
        simkit.sweep(wild_flow(), {"time_step": [5.0, 6.0]})


def test_relaxations_that_stop_early_repeat_their_last_frame():
    # Dilute disks have no overlap after a few steps; dense ones take hundreds.
    scenario = load(
        "soft_sphere_packing",
        FEW_DISKS | {"steps": 4000, "every": 20, "config.relax.force_tolerance": 1e-8},
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
    xarray.testing.assert_identical(simkit.resume(tmp_path / "sweep"), swept)
    assert main(["resume", str(tmp_path / "sweep")]) == 0
    told = capsys.readouterr().out
    assert told.split("\n", 1)[0].split()[3:5] == ["objective_energy", "spread"]


def test_an_objective_may_combine_the_last_frame_and_a_diagnostic():
    mixed = (
        PENDULUMS
        + """
[objectives.mixed]
doc = "of both kinds of numbers"
expression = "mean(position**2)/(1 + energy)"
"""
    )
    swept = simkit.sweep(toy(mixed), {"frequency": [1.0, 2.0]}, seeds=2)
    for member in ({"frequency": 1.0, "seed": 0}, {"frequency": 2.0, "seed": 1}):
        value, _ = simkit.value_and_grad(toy(mixed, **member), "frequency", objective="mixed")
        assert float(swept["mixed"].sel(member)) == pytest.approx(value, rel=1e-6)


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


@pytest.mark.parametrize("stop", [1, 23])
def test_interrupted_sweep_resumes_with_the_same_bytes(stop, finished, tmp_path):
    check_resumed(stop, finished, tmp_path / "stopped")


@every("chunk", [None, 2])
def test_sweep_compiles_its_beginning_and_its_segment_once_each(chunk, caplog):
    caplog.clear()
    with jax.log_compiles():
        simkit.sweep(toy(), OVER, chunk=chunk)
    assert sum("Compiling jit(beginning)" in message for message in caplog.messages) == 1
    assert sum("Compiling jit(segment)" in message for message in caplog.messages) == 1
