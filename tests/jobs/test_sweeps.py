import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import simkit
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.jobs.job import begin
from simkit.jobs.plans import planned
from simkit.jobs.sweep_objectives import objectives_in
from simkit.jobs.sweeps import Sweep
from simkit.scenario.loading import load
from simkit.scenario.schema import parse_scenario
from simkit.storage.chunk_files import ChunkFile
from simkit.storage.run_directory import RunDirectory
from tests.scenarios.small import FEW_DISKS, NAMES, small
from tests.stopping import StopAfter, Stopped
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
OVER = {"frequency": [1.0, 2.0, 3.0], "time_step": [0.01, 0.02]}


def two_parameters(name):
    """Return three values, near the default, of each of the first two scalar parameters."""
    numbers = [(key, p) for key, p in small(name).parameters.items() if not isinstance(p.default, tuple)]
    return {
        key: [float(np.clip(p.default + k * 1e-3 * (p.bounds[1] - p.bounds[0]), *p.bounds)) for k in (0, 1, 2)]
        for key, p in numbers[:2]
    }


def assert_identical(a, b):
    xarray.testing.assert_identical(a, b)
    for name in a.data_vars:
        assert a[name].dtype.kind == b[name].dtype.kind


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


def test_axes_are_labeled_with_what_was_swept():
    swept = simkit.sweep(toy(), OVER, seeds=3, seed=10)
    assert swept["status"].dims == ("frequency", "time_step", "seed")
    assert swept["energy"].dims == ("frequency", "time_step", "seed", "frame")
    assert swept["final_position"].dims == ("frequency", "time_step", "seed", "pendulum", "column")
    assert swept["frequency"].values.tolist() == [1.0, 2.0, 3.0]
    assert swept["time_step"].values.tolist() == [0.01, 0.02]
    assert swept["seed"].values.tolist() == [10, 11, 12]
    assert swept["pendulum"].values.tolist() == [0.5, 1.5, 2.5]
    # 20 steps of the swept time step, for every frequency and seed.
    ends = np.broadcast_to(np.array([0.2, 0.4])[:, None], (3, 2, 3))
    np.testing.assert_allclose(swept["time"].isel(frame=-1), ends, rtol=1e-12)


def test_members_depend_on_their_seed_alone():
    swept = simkit.sweep(toy(), {}, seeds=3)
    again = simkit.sweep(toy(), {}, seeds=3, seed=1)
    assert swept["position"].dims == ("seed", "frame")
    assert len(set(swept["position"].isel(frame=0).values.tolist())) == 3
    np.testing.assert_array_equal(swept["position"].sel(seed=[1, 2]), again["position"].sel(seed=[1, 2]))


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


def test_final_frames_can_be_omitted():
    result = simkit.sweep(toy(), {"frequency": [3.0, 4.0]}, final_frames=False)
    assert "final_position" not in result and "position" in result


def test_result_is_read_back_unchanged(tmp_path):
    result = simkit.sweep(toy(), OVER, seeds=2, output=tmp_path / "sweep")
    assert_identical(simkit.open_run(tmp_path / "sweep"), result)
    assert_identical(simkit.resume(tmp_path / "sweep"), result)
    assert sorted(path.name for path in (tmp_path / "sweep").iterdir()) == [
        ".lock",
        "chunk_0000.npz",
        "manifest.json",
        "scenario.toml",
        "summary.json",
        "sweep.nc",
    ]


@pytest.mark.parametrize("stop", [1, 12, 23])
def test_interrupted_sweep_resumes_with_the_same_bytes(stop, tmp_path):
    options = {"seeds": 2, "chunk": 5}  # three chunks of eleven segments each
    with pytest.raises(Stopped):
        begin(Sweep(toy(), OVER, **options), tmp_path / "stopped", report=StopAfter(stop))
    result = simkit.resume(tmp_path / "stopped")
    assert_identical(result, simkit.sweep(toy(), OVER, output=tmp_path / "whole", **options))
    for path in (tmp_path / "whole").iterdir():
        assert (tmp_path / "stopped" / path.name).read_bytes() == path.read_bytes(), path.name


def test_unfinished_sweep_is_not_read(tmp_path):
    simkit.sweep(toy(), OVER, output=tmp_path / "sweep")
    (tmp_path / "sweep" / "sweep.nc").unlink()
    with pytest.raises(simkit.UserError, match="not finished; finish it with: simkit resume"):
        simkit.open_run(tmp_path / "sweep")


def test_damaged_result_is_refused_and_computed_again(tmp_path):
    result = simkit.sweep(toy(), OVER, output=tmp_path / "sweep")
    path = tmp_path / "sweep" / "sweep.nc"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    with pytest.raises(simkit.UserError, match="make it again with: simkit resume"):
        simkit.open_run(tmp_path / "sweep")
    assert_identical(simkit.resume(tmp_path / "sweep"), result)
    assert_identical(simkit.open_run(tmp_path / "sweep"), result)


def test_damaged_chunk_is_computed_again(tmp_path):
    result = simkit.sweep(toy(), OVER, output=tmp_path / "sweep", chunk=3)
    path = tmp_path / "sweep" / "chunk_0001.npz"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.warns(UserWarning, match=r"chunk_0001.npz: .*; computing it again"):
        assert_identical(simkit.resume(tmp_path / "sweep"), result)


MISTAKES = {
    "unknown parameter": ({"frequenzy": [1.0, 2.0]}, {}, "did you mean 'frequency'"),
    "out of bounds": ({"frequency": [1.0, 200.0]}, {}, r"above its upper bound 10; choose a value in \[0.1, 10\]"),
    "no values": ({"frequency": []}, {}, "no values; give a list of numbers"),
    "not a number": ({"frequency": ["fast"]}, {}, "write a number"),
    "not finite": ({"frequency": [float("nan")]}, {}, "not finite"),
    "two dimensions": ({"frequency": [[1.0, 2.0]]}, {}, "is a list; write a number"),
    "one number": ({"frequency": 3.0}, {}, "give a list of numbers"),
    "rows": ({"frequency": [[1.0], [1.0, 2.0]]}, {}, "give a list of numbers"),
    "seeds None": (OVER, {"seeds": None}, "seeds = None is of type NoneType; write an integer"),
    "no seeds": (OVER, {"seeds": 0}, "seeds = 0 is out of range"),
    "no chunk": (OVER, {"chunk": 0}, "chunk = 0 is out of range"),
    "large seeds": (OVER, {"seeds": 2, "seed": 2**32 - 1}, "begin with a smaller seed"),
    "large chunk": (OVER, {"chunk": 6, "memory": 1000}, r"needs .* may be used; pass a smaller chunk= "),
    "memory as text": (OVER, {"memory": "100 B"}, r"one member needs .* and 100 B may be used"),
    "no memory size": (OVER, {"memory": "much"}, r"'much' is not a memory size"),
    "no memory": (OVER, {"memory": 0}, r"memory = 0 is not a memory size"),
    "little memory": (OVER, {"memory": 100}, r"one member needs .* and 100 B may be used; pass a larger memory="),
    "many members": ({}, {"seeds": 2**31}, r"sweep would take .* free on its disk; sweep fewer values"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistake_gives_one_line_and_leaves_no_folder(what, tmp_path):
    over, options, message = MISTAKES[what]
    with pytest.raises(simkit.UserError, match=message) as caught:
        simkit.sweep(toy(), over, output=tmp_path / "deep" / "sweep", **options)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_members_are_numbered_along_the_last_axis_first():
    plan = Sweep(toy(seed=5), {"frequency": (1.0, 2.0), "time_step": (0.01, 0.02, 0.03)}, 2, 5, True)
    assert (plan.shape, plan.members) == ((2, 3, 2), 12)
    values, seeds = plan.values_of(np.arange(5))
    assert values["frequency"].tolist() == [1.0] * 5
    assert values["time_step"].tolist() == [0.01, 0.01, 0.02, 0.02, 0.03]
    assert seeds.tolist() == [5, 6, 5, 6, 5]
    values, seeds = plan.values_of(np.array([11, 4, 4]))  # in any order, and again
    assert values["time_step"].tolist() == [0.03] * 3 and seeds.tolist() == [6, 5, 5]


def test_keys_of_members_are_those_of_single_runs(x64):
    seeds = np.array([0, 1, 2**31 - 1])
    together = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
    for seed, key in zip(seeds, together, strict=True):
        np.testing.assert_array_equal(jax.random.key_data(jax.random.key(int(seed))), jax.random.key_data(key))


@pytest.mark.parametrize("chunk", [None, 2])
def test_sweep_compiles_its_beginning_and_its_segment_once_each(chunk, caplog):
    with jax.log_compiles():
        simkit.sweep(toy(), OVER, chunk=chunk)
    assert sum("Compiling jit(beginning)" in message for message in caplog.messages) == 1
    assert sum("Compiling jit(segment)" in message for message in caplog.messages) == 1


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


def test_an_invalid_member_is_named_before_the_sweep_runs():
    # No moment of inertia is larger than the sum of the others, here 5.
    with pytest.raises(UserError, match=r"member 4 \(moment_x = 9, seed = 0\): body 0 .* at most 5"):
        simkit.sweep("asymmetric_top", {"moment_x": [1.5, 3.0, 9.0]}, seeds=2)
