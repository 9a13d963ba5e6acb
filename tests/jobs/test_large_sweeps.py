"""Sweeps with large results: stored in chunks, reported by totals, and read when they are indexed."""

import json
import sys

import numpy as np
import pytest
import xarray

import simkit
from simkit.cli.main import main
from simkit.cli.reports.sweep import _print_omitted
from simkit.errors import UserError
from simkit.jobs import chunk_size
from simkit.jobs.job import begin
from simkit.jobs.progress import progress_of
from simkit.jobs.quantiles import KEPT, Quantiles
from simkit.jobs.sweeps import Sweep
from simkit.jobs.totals import block_lengths
from simkit.scenario.loading import load
from simkit.storage.archives import read_arrays, write_arrays
from simkit.storage.run_directory import RunDirectory
from tests.scenarios.small import FEW_DISKS
from tests.stopping import StopAfter, Stopped
from tests.toys import SQUARED, toy

OVER = {"frequency": [1.0, 2.0, 3.0], "time_step": [0.01, 0.02]}


@pytest.fixture
def small_files(monkeypatch):
    """Results over 2 kB stay in chunks."""
    monkeypatch.setattr(chunk_size, "ONE_FILE", 2000)


def is_lazy(result):
    return all(variable.chunks is not None for variable in result.data_vars.values())


def without_order(result):
    return result.load().assign_attrs(failed=int(result.attrs["failed"]))


@pytest.fixture(params=[True, False], ids=["dask", "plain"])
def dask(request, monkeypatch):
    """Whether Dask is importable."""
    if not request.param:
        import importlib.util

        find = importlib.util.find_spec
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "dask" else find(name, *a))
    return request.param


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


def test_objectives_that_need_frames_are_named(small_files, tmp_path, capsys):
    text = SQUARED.replace("final(rms(position))", "largest(max(squares))")
    text += "[quantities.squares]\nexpression = 'position*pendulum'\ndoc = 'a field'\n"
    begin(Sweep(toy(text), OVER, seeds=2, chunk=5), tmp_path / "sweep")
    found = simkit.open_run(tmp_path / "sweep")
    assert found.attrs["objectives_left_out"] == "spread" and "mean_time" in found
    assert main(["resume", str(tmp_path / "sweep"), "--no-render"]) == 0
    assert "not shown:  spread: it needs frames that a sweep does not store" in capsys.readouterr().out


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


PARTS = [
    {"frequency": 1},
    {"frequency": slice(1, None), "seed": 0},
    {"time_step": [1, 0, 1], "seed": slice(None, None, -1)},
    {"frequency": [2, 0], "frame": -1},
    {"frequency": 0, "time_step": 1, "seed": 1, "frame": slice(2, 9, 3)},
    {"frequency": slice(0, 0)},
]


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_any_part_of_a_lazy_result_equals_that_of_the_loaded_result(part, small_files, tmp_path, dask):
    begin(Sweep(toy(), OVER, seeds=2, chunk=5), tmp_path / "sweep")
    opened = simkit.open_run(tmp_path / "sweep")
    xarray.testing.assert_identical(opened.isel(part).load(), opened.load().isel(part))


def test_only_indexed_chunks_are_read(small_files, tmp_path, dask):
    begin(Sweep(toy(), {"frequency": [1.0, 2.0, 3.0, 4.0]}, seeds=5, chunk=5), tmp_path / "sweep")
    opened = simkit.open_run(tmp_path / "sweep")
    path = tmp_path / "sweep" / "chunk_0002.npz"
    path.write_bytes(path.read_bytes()[:-100])
    assert opened.isel(frequency=[0, 1, 3])["energy"].values.shape == (3, 5, 11)
    with pytest.raises(UserError, match=r"chunk_0002.npz: .* make it again with: simkit resume .*sweep"):
        opened["energy"].isel(frequency=2).load()
    path.unlink()
    with pytest.raises(UserError, match=r"chunk_0002.npz: it is missing; make it again with: simkit resume"):
        simkit.open_run(tmp_path / "sweep")
    whole = simkit.resume(tmp_path / "sweep").load()
    assert path.exists()
    xarray.testing.assert_identical(whole, simkit.open_run(tmp_path / "sweep").load())


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


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_converging_members_are_stored_in_blocks(tmp_path, monkeypatch):
    packing = load("soft_sphere_packing", FEW_DISKS)
    whole = simkit.sweep(packing, {"packing_fraction": [0.7, 0.8]}, seeds=4, chunk=2)
    monkeypatch.setattr(chunk_size, "ONE_FILE", 20_000)
    result = simkit.sweep(packing, {"packing_fraction": [0.7, 0.8]}, seeds=4, chunk=2, output=tmp_path / "sweep")
    assert len(list((tmp_path / "sweep").glob("chunk_*.npz"))) > 1
    xarray.testing.assert_identical(result.load(), whole)


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


def growth(**more):
    own = simkit.Simulation(
        init=lambda params, key: params["rate"],
        step=lambda x, params: x * params["rate"],
        observe=lambda x, params: {"x": x},
        diagnose=lambda x, params: {"x": x},
        params={"rate": 1.0},
    )
    rates = [*np.linspace(0.5, 1.0, 95), *np.linspace(1e30, 2e30, 5)]
    return simkit.sweep(own, {"rate": rates}, seeds=20, steps=40, **more)


def test_totals_are_those_of_all_members(small_files, tmp_path, capsys):
    with pytest.warns(UserWarning, match=r"member 1900 \(rate = 1e\+30, seed = 0\) turned non-finite"):
        result = growth(output=tmp_path / "sweep", chunk=64)
    assert result.attrs["failed"] == 100
    found = progress_of(tmp_path / "sweep")
    assert (found.failures, len(found.failed)) == (100, 100)
    assert found.totals["statuses"] == {"non_finite": 100, "ok": 1900}
    ends = result["x"].isel(frame=-1).values[:95]
    expected = dict(zip(("5 %", "50 %", "95 %"), np.quantile(ends, [0.05, 0.5, 0.95]), strict=True))
    told = found.totals["quantiles"]["x"]
    assert {key: told[key] for key in expected} == pytest.approx(expected, rel=1e-12)
    summary = json.loads((tmp_path / "sweep" / "summary.json").read_text())
    assert summary["statuses"] == found.totals["statuses"] and summary["quantiles"] == found.totals["quantiles"]
    assert main(["status", str(tmp_path / "sweep")]) == 0
    told = capsys.readouterr().out
    assert "ended:      100 non finite, 1900 ok" in told and "... and 80 more" in told and "50 %" in told


def test_at_most_a_given_number_of_failures_is_named():
    from simkit.jobs.sweep_results import failures

    with pytest.warns(UserWarning):
        result = growth()
    lines, last = failures(result, most=7), failures(result, most=99)[-1]
    assert len(lines) == 8 and lines[-1].startswith("93 more members failed")
    assert last.startswith("1 more member failed")


@pytest.mark.parametrize(
    ("left", "words"), [("spread", "spread: it needs frames"), ("spread, squares", "squares: they need frames")]
)
def test_one_or_several_objectives_are_named_as_left_out(left, words, capsys):
    _print_omitted(xarray.Dataset(attrs={"objectives_left_out": left}), "not shown: ")
    assert words in capsys.readouterr().out


def test_a_large_sweep_is_reported_by_its_totals(small_files, tmp_path, capsys):
    words = ["sweep", "bouncing_ball", "--over", "launch_speed=3:6:99", "--set", "steps=30", "--set", "every=10"]
    words += ["--chunk", "33"]
    assert main([*words, "--output", str(tmp_path / "sweep")]) == 0
    told = capsys.readouterr().out
    assert "members:    99" in told and "ended:      99 ok" in told and "in chunks" in told
    assert main(["resume", str(tmp_path / "sweep"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["members"] == 99 and report["failures"] == 0 and "50 %" in report["quantiles"]["height"]


def test_quantiles_of_few_numbers_are_exact():
    numbers = np.random.default_rng(1).normal(size=KEPT)
    found = Quantiles()
    for part in np.array_split(numbers, 7):
        found.add(part)
    assert found.uncertainty == 0
    fractions = [0.0, 0.01, 0.5, 0.99, 1.0]
    np.testing.assert_allclose(found.at(fractions), np.quantile(numbers, fractions), rtol=1e-12)


@pytest.mark.parametrize("order", ["random", "rising", "falling", "equal"])
def test_quantiles_of_many_numbers_are_within_their_rank_error(order):
    count = 40 * KEPT + 17
    numbers = {
        "random": np.random.default_rng(2).permutation(count).astype(float),
        "rising": np.arange(count, dtype=float),
        "falling": np.arange(count, dtype=float)[::-1],
        "equal": np.full(count, 3.0),
    }[order]
    found = Quantiles()
    for start in range(0, count, 50_000):
        found.add(numbers[start : start + 50_000])
    assert found.count == count
    assert sum(level.size for level in found._levels) < 8 * KEPT
    assert found.uncertainty <= count * np.log2(count / KEPT) / KEPT
    fractions = np.linspace(0, 1, 21)
    if order == "equal":
        assert found.at(fractions) == [3.0] * 21
    else:
        # Each number equals its rank.
        assert np.abs(np.array(found.at(fractions)) - fractions * (count - 1)).max() <= found.uncertainty + 1


@pytest.mark.parametrize(
    ("shape", "most", "expected"),
    [((1000, 1000), 10_000, (10, 1000)), ((7,), 3, (3,)), ((4, 6), 5, (1, 5)), ((2, 3, 5), 1, (1, 1, 1))],
)
def test_blocks_are_ranges_of_members(shape, most, expected):
    assert block_lengths(shape, most) == expected


@pytest.mark.slow
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
from simkit.jobs.progress import progress_of
from simkit.jobs.reopening import open_run

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
