"""Finished runs continued to more steps, and sweeps read from another working directory."""

import json

import pytest
import xarray

import simkit
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.jobs.job import begin, proceed
from simkit.jobs.runs import Run
from simkit.jobs.stored_jobs import progress_of
from simkit.jobs.sweeps import Sweep
from simkit.storage.run_directory import RunDirectory
from tests.stopping import StopAfter, Stopped
from tests.toys import toy


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
