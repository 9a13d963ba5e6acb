import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import simkit
from simkit.errors import UserError
from simkit.jobs.job import begin
from simkit.jobs.sweeps import Sweep
from simkit.scenario.catalog import parse_scenario
from simkit.scenario.made_in_python import load
from tests.stopping import StopAfter, Stopped
from tests.tables import every
from tests.toys import registered, toy

OVER = {"frequency": [1.0, 2.0, 3.0], "time_step": [0.01, 0.02]}
THREE_CHUNKS = {"seeds": 2, "chunk": 5}  # of eleven segments each


def assert_identical(a, b):
    xarray.testing.assert_identical(a, b)
    for name in a.data_vars:
        assert a[name].dtype.kind == b[name].dtype.kind


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


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished sweep of three chunks, to be copied, and its result."""
    folder = tmp_path_factory.mktemp("swept") / "sweep"
    with registered():
        return folder, simkit.sweep(toy(), OVER, output=folder, **THREE_CHUNKS)


@pytest.fixture
def copy(finished, tmp_path):
    """A copy of the folder of the finished sweep."""
    return shutil.copytree(finished[0], tmp_path / "sweep")


def test_final_frames_can_be_omitted():
    result = simkit.sweep(toy(), {"frequency": [3.0, 4.0]}, final_frames=False)
    assert "final_position" not in result and "position" in result


def test_result_is_read_back_unchanged(finished, copy):
    assert_identical(simkit.open_run(copy), finished[1])
    assert_identical(simkit.resume(copy), finished[1])
    assert sorted(path.name for path in copy.iterdir()) == [
        ".lock",
        "chunk_0000.npz",
        "chunk_0001.npz",
        "chunk_0002.npz",
        "manifest.json",
        "manifest_copy.json",
        "scenario.toml",
        "summary.json",
        "sweep.nc",
    ]


def test_interrupted_sweep_resumes_with_the_same_bytes(finished, tmp_path):
    check_resumed(12, finished, tmp_path / "stopped")


def check_resumed(stop, finished, folder):
    """Check that a sweep stopped after some of its segments resumes with the same bytes."""
    whole, expected = finished
    with pytest.raises(Stopped):
        begin(Sweep(toy(), OVER, **THREE_CHUNKS), folder, report=StopAfter(stop))
    assert_identical(simkit.resume(folder), expected)
    for path in whole.iterdir():
        assert (folder / path.name).read_bytes() == path.read_bytes(), path.name


def test_unfinished_sweep_is_not_read(copy):
    (copy / "sweep.nc").unlink()
    with pytest.raises(simkit.UserError, match="not finished; finish it with: simkit resume"):
        simkit.open_run(copy)


def test_damaged_result_is_refused_and_computed_again(finished, copy):
    path = copy / "sweep.nc"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    with pytest.raises(simkit.UserError, match="make it again with: simkit resume"):
        simkit.open_run(copy)
    assert_identical(simkit.resume(copy), finished[1])
    assert_identical(simkit.open_run(copy), finished[1])


def test_damaged_chunk_is_computed_again(finished, copy):
    path = copy / "chunk_0001.npz"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.warns(UserWarning, match=r"chunk_0001.npz: .*; computing it again"):
        assert_identical(simkit.resume(copy), finished[1])


MISTAKES = {
    "unknown parameter": ({"frequenzy": [1.0, 2.0]}, {}, "did you mean 'frequency'"),
    "out of bounds": ({"frequency": [1.0, 200.0]}, {}, r"above its upper bound 10; choose a value in \[0.1, 10\]"),
    "no values": ({"frequency": []}, {}, "no values; give a list of them"),
    "not a number": ({"frequency": ["fast"]}, {}, "is no number; write one"),
    "not finite": ({"frequency": [float("nan")]}, {}, "is not a finite number"),
    "two dimensions": ({"frequency": [[1.0, 2.0]]}, {}, "is no number; write one"),
    "one number": ({"frequency": 3.0}, {}, "give a list of them"),
    "rows": ({"frequency": [[1.0], [1.0, 2.0]]}, {}, "give a list of them"),
    "seeds None": (OVER, {"seeds": None}, "seeds = None is not an integer of"),
    "no seeds": (OVER, {"seeds": 0}, "seeds = 0 is not an integer of"),
    "no chunk": (OVER, {"chunk": 0}, "chunk = 0 is not an integer of"),
    "large seeds": (OVER, {"seeds": 2, "seed": 2**32 - 1}, "begin with a smaller seed"),
    "large chunk": (OVER, {"chunk": 6, "memory": 1000}, r"needs .* may be used; pass a smaller chunk= "),
    "memory as text": (OVER, {"memory": "100 B"}, r"one member needs .* and 100 B may be used"),
    "no memory size": (OVER, {"memory": "much"}, r"'much' is not a memory size"),
    "no memory": (OVER, {"memory": 0}, r"memory = 0 is not a memory size"),
    "little memory": (OVER, {"memory": 100}, r"one member needs .* and 100 B may be used; pass a larger memory="),
    "many members": ({}, {"seeds": 2**31}, r"sweep would take .* free on its disk; sweep fewer values"),
}


@every("what", MISTAKES)
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


def test_an_invalid_member_is_named_before_the_sweep_runs():
    # No moment of inertia is larger than the sum of the others, here 5.
    with pytest.raises(UserError, match=r"member 4 \(moment_x = 9, seed = 0\): body 0 .* at most 5"):
        simkit.sweep("asymmetric_top", {"moment_x": [1.5, 3.0, 9.0]}, seeds=2)
