"""Sweeps with large results: stored in chunks, reported by totals, and read when they are indexed."""

import json
import shutil

import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.jobs import chunk_size
from simkit.jobs.job import begin
from simkit.jobs.stored_jobs import progress_of
from simkit.jobs.sweeps import Sweep
from tests.toys import registered, toy

OVER = {"frequency": [1.0, 2.0, 3.0], "time_step": [0.01, 0.02]}


@pytest.fixture
def small_files(monkeypatch):
    """Results over 2 kB stay in chunks."""
    monkeypatch.setattr(chunk_size, "ONE_FILE", 2000)


@pytest.fixture(params=[True, False], ids=["dask", "plain"])
def dask(request, monkeypatch):
    """Whether Dask is importable."""
    if not request.param:
        import importlib.util

        find = importlib.util.find_spec
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "dask" else find(name, *a))
    return request.param


PARTS = [
    {"frequency": 1},
    {"frequency": slice(1, None), "seed": 0},
    {"time_step": [1, 0, 1], "seed": slice(None, None, -1)},
    {"frequency": [2, 0], "frame": -1},
    {"frequency": 0, "time_step": 1, "seed": 1, "frame": slice(2, 9, 3)},
    {"frequency": slice(0, 0)},
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The folder of a finished sweep whose result stays in three chunks, to be copied."""
    folder = tmp_path_factory.mktemp("large") / "sweep"
    with registered(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_size, "ONE_FILE", 2000)
        begin(Sweep(toy(), OVER, seeds=2, chunk=5), folder)
    return folder


def test_any_part_of_a_lazy_result_equals_that_of_the_loaded_result(stored, dask):
    opened = simkit.open_run(stored)
    assert all((variable.chunks is not None) == dask for variable in opened.data_vars.values())
    loaded = simkit.open_run(stored).load()
    for part in PARTS:
        assert opened.isel(part).load().identical(loaded.isel(part)), part


def test_only_indexed_chunks_are_read(stored, tmp_path, dask):
    folder = shutil.copytree(stored, tmp_path / "sweep")
    opened = simkit.open_run(folder)
    path = folder / "chunk_0002.npz"
    path.write_bytes(path.read_bytes()[:-100])
    assert opened.isel(frequency=[0, 1])["energy"].values.shape == (2, 2, 2, 11)
    with pytest.raises(UserError, match=r"chunk_0002.npz: .* make it again with: simkit resume .*sweep"):
        opened["energy"].isel(frequency=2).load()
    path.unlink()
    with pytest.raises(UserError, match=r"chunk_0002.npz: it is missing; make it again with: simkit resume"):
        simkit.open_run(folder)
    whole = simkit.resume(folder).load()
    assert path.read_bytes() == (stored / path.name).read_bytes()
    assert whole.identical(simkit.open_run(stored).load())


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
