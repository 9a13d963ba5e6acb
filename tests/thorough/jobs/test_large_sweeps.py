"""Sweeps with large results: stored in chunks, reported by totals, and read when they are indexed."""

import sys

import numpy as np
import pytest
import xarray

import simkit
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.jobs import chunk_size
from simkit.jobs.job import begin
from simkit.jobs.sweeps import Sweep
from simkit.storage.files import read_arrays, write_arrays
from simkit.storage.run_directory import RunDirectory
from tests.jobs.test_large_sweeps import OVER, dask, small_files  # noqa: F401
from tests.stopping import StopAfter, Stopped
from tests.toys import SQUARED, toy


def is_lazy(result):
    return all(variable.chunks is not None for variable in result.data_vars.values())


def test_a_large_result_stays_in_its_chunks_and_equals_the_result_in_memory(tmp_path, monkeypatch, dask):
    whole = simkit.sweep(toy(), OVER, seeds=2, chunk=5)
    monkeypatch.setattr(chunk_size, "ONE_FILE", 2000)
    result = simkit.sweep(toy(), OVER, seeds=2, chunk=5, output=tmp_path / "sweep")
    names = {path.name for path in (tmp_path / "sweep").iterdir()}
    assert "sweep.nc" not in names and {"chunk_0000.npz", "chunk_0002.npz", "summary.json"} <= names
    opened = simkit.open_run(tmp_path / "sweep")
    assert is_lazy(opened) == dask
    for found in (result, opened, simkit.resume(tmp_path / "sweep")):
        xarray.testing.assert_identical(found.load(), whole)
    assert opened["frequency"].attrs["units"] == "1/s" and opened["seed"].values.tolist() == [0, 1]


def test_objectives_of_a_large_result_are_those_of_the_result_in_memory(tmp_path, monkeypatch, capsys):
    whole = simkit.sweep(toy(SQUARED), OVER, seeds=2, chunk=5)
    names = {"objective_energy", "mean_time", "spread"}
    assert names <= set(whole) and all(whole[name].dtype == np.float64 for name in names)
    monkeypatch.setattr(chunk_size, "ONE_FILE", 2000)
    begin(Sweep(toy(SQUARED), OVER, seeds=2, chunk=5), tmp_path / "sweep")
    for found in (simkit.open_run(tmp_path / "sweep"), simkit.resume(tmp_path / "sweep")):
        xarray.testing.assert_identical(found.load(), whole)
    assert main(["resume", str(tmp_path / "sweep"), "--no-render"]) == 0
    told = capsys.readouterr().out
    assert "spread" in told and "not shown" not in told
    simkit.sweep(toy(), OVER, seeds=2, chunk=5, output=tmp_path / "plain")
    assert not (tmp_path / "plain" / "objectives.npz").exists()


@pytest.mark.parametrize("damage", ["missing", "cut", "of another sweep", "a name less", "a member less"])
def test_damaged_objectives_are_computed_again(damage, small_files, tmp_path):
    whole, other = tmp_path / "whole", tmp_path / "other"
    for folder, seed in ((whole, 0), (other, 7)):
        begin(Sweep(toy(SQUARED, seed=seed), OVER, seeds=2, chunk=5), folder)
    path = whole / "objectives.npz"
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage.startswith("a "):
        seal = RunDirectory.open(whole).seal.of("objectives")
        arrays = read_arrays(path, seal)
        arrays["spread"] = arrays["spread"][:-1]
        if damage == "a name less":
            del arrays["spread"]
        write_arrays(path, arrays, seal)
    else:
        path.write_bytes(data[:-20] if damage == "cut" else (other / "objectives.npz").read_bytes())
    with pytest.raises(UserError, match="simkit resume"):
        simkit.open_run(whole)
    simkit.resume(whole)
    assert path.read_bytes() == data


@pytest.mark.parametrize("stop", [1, 12, 23])
def test_an_interrupted_large_sweep_resumes(stop, small_files, tmp_path):
    options = {"seeds": 2, "chunk": 5}
    with pytest.raises(Stopped):
        begin(Sweep(toy(), OVER, **options), tmp_path / "stopped", report=StopAfter(stop))
    with pytest.raises(UserError, match="not finished; finish it with: simkit resume"):
        simkit.open_run(tmp_path / "stopped")
    simkit.resume(tmp_path / "stopped")
    simkit.sweep(toy(), OVER, output=tmp_path / "whole", **options)
    for path in (tmp_path / "whole").iterdir():
        assert (tmp_path / "stopped" / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.parametrize("size", [[2, 3], [3]])
def test_large_results_of_configurations_stay_in_their_chunks(size, small_files, tmp_path, dask, monkeypatch):
    over = {"config.size": size, "frequency": [1.0, 2.0], "time_step": [0.01, 0.02]}
    result = simkit.sweep(toy(), over, seeds=3, chunk=5, output=tmp_path / "sweep")
    assert not list((tmp_path / "sweep").rglob("sweep.nc"))
    opened = simkit.open_run(tmp_path / "sweep")
    assert is_lazy(opened) == dask
    monkeypatch.setattr(chunk_size, "ONE_FILE", 1e9)
    whole = simkit.sweep(toy(), over, seeds=3, chunk=5, output=tmp_path / "whole")
    for found in (result, opened):
        xarray.testing.assert_identical(found.isel(seed=[0, 2]).load(), whole.isel(seed=[0, 2]))


@pytest.mark.parametrize("to", ["netcdf", "zarr", "csv", "parquet"])
def test_a_large_sweep_is_exported_like_a_small_one(to, tmp_path, monkeypatch, dask):
    import pandas

    from simkit.export import data_file

    small = simkit.sweep(toy(), OVER, seeds=2, chunk=5)
    monkeypatch.setattr(chunk_size, "ONE_FILE", 2000)
    begin(Sweep(toy(), OVER, seeds=2, chunk=5), tmp_path / "sweep")
    one, other = (
        data_file(result, to, tmp_path / name)
        for name, result in (("large", simkit.open_run(tmp_path / "sweep")), ("small", small))
    )
    if to in ("csv", "parquet"):
        read = pandas.read_csv if to == "csv" else pandas.read_parquet
        axes = ["frequency", "time_step", "seed"]
        pandas.testing.assert_frame_equal(read(one).sort_values(axes, ignore_index=True), read(other))
    else:
        opened = [
            xarray.open_zarr(path, consolidated=False) if to == "zarr" else xarray.open_dataset(path)
            for path in (one, other)
        ]
        xarray.testing.assert_identical(opened[0].load(), opened[1].load())


def test_memory_limit_decides_whether_a_result_stays_in_chunks(tmp_path):
    def fitted(memory):
        begin(Sweep(toy(), OVER, seeds=40, memory=memory), tmp_path / str(memory))
        return (tmp_path / str(memory) / "sweep.nc").exists()

    assert fitted(None) and not fitted(40_000)


def test_a_sweep_of_a_million_members_needs_little_memory(tmp_path):
    # In a separate process, to measure its peak memory.
    import subprocess

    ran = subprocess.run(
        [sys.executable, "-c", MILLION, str(tmp_path / "sweep")], capture_output=True, text=True, check=True
    )
    base, most = map(int, ran.stdout.split()[-2:])
    # The results are 600 MB; a chunk of them is 16 MiB, which is copied a few times while it is written or read.
    assert (most - base) * 1024 < 300e6, ran.stdout


MILLION = """
import resource, sys
import numpy as np
import simkit
from simkit.jobs.stored_jobs import progress_of
from simkit.jobs.stored_jobs import open_run

own = simkit.Simulation(
    init=lambda params, key: {"x": params["rate"], "a": params["rate"]},
    step=lambda s, params: {"x": s["x"] * 0.99, "a": s["a"] + params["rate"] + params["shift"]},
    observe=lambda s, params: dict(s),
    diagnose=lambda s, params: dict(s),
    params={"rate": 1.0, "shift": 0.0},
)
over = {"rate": np.linspace(0.5, 1.5, 1000).tolist(), "shift": np.linspace(-0.5, 0.5, 1000).tolist()}
simkit.sweep(own, {"rate": [1.0, 2.0]}, steps=720, every=10)
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
result = simkit.sweep(own, over, steps=720, every=10, output=sys.argv[1])
size = sum(variable.nbytes for variable in result.data_vars.values())
assert size > 550e6, size
import pathlib
folder = pathlib.Path(sys.argv[1])
(folder / "summary.json").unlink()
(folder / "chunk_0003.npz").unlink()
opened = simkit.resume(folder, simulation=own)
found = progress_of(folder)
assert found.totals["statuses"] == {"ok": 1_000_000}
assert abs(found.totals["quantiles"]["a"]["50 %"] - 721.0) < 2.0, found.totals
assert float(opened["a"].isel(rate=999, shift=999, seed=0, frame=-1)) > 1400
print(base, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
