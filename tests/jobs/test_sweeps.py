"""Sweeps: members, chunks, cores, results that are stored, resumed, extended, merged, and read back."""

import dataclasses
import json
import re
import shutil

import jax
import numpy as np
import pytest
import xarray

import simkit
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.jobs.chunk_size import CPU_CHUNK_BYTES, Sizes
from simkit.jobs.job import begin, prepared_of, proceed
from simkit.jobs.runs import Run
from simkit.jobs.stored_jobs import progress_of
from simkit.jobs.sweep_functions import joined
from simkit.jobs.sweeps import Sweep
from simkit.storage.datasets import attribute
from simkit.storage.run_directory import RunDirectory
from tests.stopping import StopAfter, Stopped
from tests.tables import every
from tests.toys import begun, registered, toy

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
    (whole, expected), folder = finished, tmp_path / "stopped"
    with pytest.raises(Stopped):
        begin(Sweep(toy(), OVER, **THREE_CHUNKS), folder, report=StopAfter(12))
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
    "one number": ({"frequency": 3.0}, {}, "over frequency = 3.0 is of type float; give a list of values"),
    "no seeds": (OVER, {"seeds": 0}, "seeds = 0 is not an integer from"),
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


def test_an_invalid_member_is_named_before_the_sweep_runs():
    # No moment of inertia is larger than the sum of the others, here 5.
    with pytest.raises(UserError, match=r"member 4 \(moment_x = 9, seed = 0\): body 0 .* at most 5"):
        simkit.sweep("asymmetric_top", {"moment_x": [1.5, 3.0, 9.0]}, seeds=2)


@pytest.fixture
def two(tmp_path):
    """Two run directories of sweeps over two seeds."""
    return [begun(tmp_path / name, toy(seed=seed), "sweep") for name, seed in (("a", 2), ("b", 0))]


def over(sweep, zip=False, **values):
    return dataclasses.replace(sweep, over=values, zip=zip)


def test_sweeps_that_do_not_belong_together_are_refused_in_one_line(two):
    one = over(Sweep.of(two[0]), frequency=(2.0, 3.0))

    def later(seed, **changes):
        run = dataclasses.replace(one.scenario.run, seed=seed)
        return dataclasses.replace(one, scenario=dataclasses.replace(one.scenario, run=run), **changes)

    steps = dataclasses.replace(one.scenario, run=dataclasses.replace(one.scenario.run, steps=40))
    cases = {
        "other steps": (dataclasses.replace(one, scenario=steps), "run.steps is 20 and 40"),
        "other parameters": (over(one, time_step=(0.01,)), r"over is \['frequency'\] and \['time_step'\]"),
        "no frames": (dataclasses.replace(one, final_frames=False), "final_frames is True and False"),
        "the same point": (over(one, frequency=(5.0, 3.0)), "both have frequency = 3; leave one of them out"),
        "the same points": (one, "of equal points, with the seeds 2 and then 2"),
        "a gap of seeds": (later(7), "of equal points, with the seeds 3 and then 7"),
        "other seeds and points": (later(4, over={"frequency": (1.0,)}), r"in seeds \(2 to 3 and 4 to 5\)"),
    }
    missed = []
    for what, (other, words) in cases.items():
        try:
            missed.append(f"{what}: accepted, {joined(two, [one, other])}")
        except UserError as error:
            if not re.search(words, str(error)) or str(two[0].path) not in str(error) or "\n" in str(error):
                missed.append(f"{what}: {error}")
    assert not missed


@every(("cores", "members", "chunk"), [(1, 100_000, 100_000), (2, 7, 7), (2, 100_000, 50_000)])
def test_a_sweep_is_divided_where_several_cores_compute_it(cores, members, chunk, x64, monkeypatch):
    monkeypatch.setattr("simkit.jobs.chunk_size.cores_for_chunks", lambda: [None] * cores)
    job = Sweep(toy(), {"frequency": (1.0,)}, seeds=members)
    prepared = prepared_of(job, new=False)
    assert Sizes(job, prepared).usual_chunk() == chunk
    bytes_of_one = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(prepared.shapes[0]) if leaf.size)
    assert chunk == members or chunk * bytes_of_one >= CPU_CHUNK_BYTES


def test_an_extended_run_has_the_bytes_of_one_run_of_as_many_steps(tmp_path):
    simkit.run(toy(), output=tmp_path / "run")
    whole = simkit.run(toy(steps=48))
    directory = RunDirectory.open(tmp_path / "run")
    with pytest.raises(Stopped):
        proceed(Run.of(directory).extended(directory, 48), directory, report=StopAfter(3))
    assert progress_of(tmp_path / "run").state == "interrupted"
    assert simkit.open_run(tmp_path / "run").attrs["status"] == "unfinished"
    xarray.testing.assert_identical(simkit.resume(tmp_path / "run", steps=48), whole)
    xarray.testing.assert_identical(simkit.open_run(tmp_path / "run"), whole)
    xarray.testing.assert_identical(simkit.resume(tmp_path / "run", steps=60), simkit.run(toy(steps=60)))
    assert progress_of(tmp_path / "run").words == "60 of 60 steps"


def test_an_extension_that_does_not_fit_is_refused_and_changes_nothing(tmp_path, capsys):
    simkit.run(toy(steps=80, every=2), output=tmp_path / "run")
    before = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for steps, words in (
        (40, "it has 80 steps, stored in segments of 4, so give more steps, and a multiple of 4, such as 84$"),
        (86, "a multiple of 4, such as 88$"),
        (0, "is not an integer of at least 1"),
        (1.5, "is not an integer"),
    ):
        with pytest.raises(UserError, match=words):
            simkit.resume(tmp_path / "run", steps=steps)
    begin(Sweep(toy(), {"frequency": (1.0,)}), tmp_path / "sweep")
    with pytest.raises(UserError, match=r"sweep holds a sweep, and steps= continues a run; leave it out"):
        simkit.resume(tmp_path / "sweep", steps=40)
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before
    assert main(["resume", str(tmp_path / "run"), "--steps", "84", "--no-render", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["diagnostics"]["time"] == pytest.approx(0.84)


def test_a_lazily_opened_sweep_is_read_after_the_working_directory_changed(tmp_path, monkeypatch):
    monkeypatch.setattr("simkit.jobs.chunk_size.ONE_FILE", 100)
    monkeypatch.chdir(tmp_path)
    simkit.sweep(toy(), {"frequency": [1.0, 2.0]}, chunk=1, output="sweep")
    opened = simkit.open_run("sweep")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert float(opened["time"].isel(frequency=1, seed=0, frame=-1)) == pytest.approx(0.2)


@every("value", [1.5, 3, True, "word", "", 2**32 - 1, (), (1, 2.5), ((1, 2), (3, 4)), ("a", "b"), (True,)])
def test_every_plain_value_can_be_stored_as_an_attribute(value):
    import xarray

    stored = xarray.Dataset(attrs={"value": attribute(value)}).to_netcdf(engine="scipy")
    found = xarray.open_dataset(stored, engine="scipy").attrs["value"]
    if value == 2**32 - 1:
        value = str(value)  # NetCDF has no larger integers than 2**31 - 1
    deep = isinstance(value, tuple) and (not value or not isinstance(value[0], int | float) or value == (True,))
    np.testing.assert_array_equal(np.asarray(json.loads(found) if deep else found), np.asarray(value))
