"""Merged sweeps: equal to one sweep of all points and seeds."""

import json
import shutil

import pytest
import xarray

import simkit
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.jobs import chunk_size
from simkit.jobs.job import begin
from simkit.jobs.stored_jobs import progress_of
from simkit.jobs.sweeps import Sweep
from simkit.storage.run_directory import RunDirectory
from tests.scenarios.small import FEW_DISKS
from tests.stopping import StopAfter, Stopped
from tests.toys import SQUARED, toy

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


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_sweeps_of_converging_members_are_merged(tmp_path):
    from simkit.scenario.made_in_python import load

    packing = load("soft_sphere_packing", FEW_DISKS)
    for name, values in (("a", [0.7]), ("b", [0.8])):
        simkit.sweep(packing, {"packing_fraction": values}, seeds=4, chunk=2, output=tmp_path / name)
    found = simkit.merge([tmp_path / "b", tmp_path / "a"], tmp_path / "merged")
    the_same(found, simkit.sweep(packing, {"packing_fraction": [0.7, 0.8]}, seeds=4, chunk=2))


def own():
    return simkit.Simulation(
        init=lambda params, key: params["rate"],
        step=lambda x, params: x * params["rate"],
        observe=lambda x, params: {"x": x},
        diagnose=lambda x, params: {"x": x},
        params={"rate": 1.0},
    )


def test_sweeps_of_a_simulation_made_in_python_are_merged_with_it(tmp_path):
    for name, rates in (("a", [1.0, 2.0]), ("b", [1.5])):
        simkit.sweep(own(), {"rate": rates}, steps=8, chunk=1, output=tmp_path / name)
    found = simkit.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "merged", simulation=own())
    assert found["x"].isel(frame=-1, seed=0).values.tolist() == [1.0, 1.5**9, 2.0**9]


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


def test_merge_on_the_command_line(tmp_path, capsys):
    words = ["--set", "steps=30", "--set", "every=10", "--chunk", "1", "--json"]
    for name, values in (("a", "3,5"), ("b", "4,6")):
        over = f"launch_speed={values}"
        assert main(["sweep", "bouncing_ball", "--over", over, "-o", str(tmp_path / name), *words]) == 0
    capsys.readouterr()
    merged = tmp_path / "merged"
    assert main(["merge", str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(merged), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["axes"]["launch_speed"] == [3.0, 4.0, 5.0, 6.0] and report["members"] == 4
    assert RunDirectory.open(merged).manifest["request"]["over"] == {"launch_speed": [3.0, 4.0, 5.0, 6.0]}
    assert main(["export", str(merged), "--to", "csv", "-o", str(tmp_path / "merged.csv")]) == 0
    assert len((tmp_path / "merged.csv").read_text().splitlines()) == 5
    assert main(["merge", str(tmp_path / "a"), "-o", str(tmp_path / "c")]) == 2
    assert "two sweeps or more" in capsys.readouterr().err


def test_merged_sweeps_have_objectives(tmp_path):
    over = {"frequency": [1.0, 2.0, 3.0, 4.0]}
    for index, values in enumerate(([1.0, 2.0], [3.0, 4.0])):
        simkit.sweep(toy(SQUARED), {"frequency": values}, chunk=2, output=tmp_path / f"part_{index}")
    merged = simkit.merge([tmp_path / "part_0", tmp_path / "part_1"], tmp_path / "merged")
    assert {"objective_energy", "mean_time", "spread"} <= set(merged)
    the_same(merged, simkit.sweep(toy(SQUARED), over, chunk=2, output=tmp_path / "whole"))


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
