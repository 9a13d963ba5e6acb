"""Progress of running, interrupted and finished jobs, read from their files."""

import json

import pytest

import simkit
from simkit.cli.main import main
from simkit.errors import UserError
from simkit.jobs.stored_jobs import progress_of
from simkit.storage.run_directory import RunDirectory, is_locked
from tests.core.toys import descent
from tests.stopping import StopAfter, Stopped
from tests.toys import toy


def interrupted(folder, job, after):
    """Begin a job and stop it after some segments."""
    from simkit.jobs.job import begin

    with pytest.raises(Stopped):
        begin(job, folder, report=StopAfter(after))


def test_progress_of_a_sweep_counts_members_and_failures(tmp_path, capsys):
    growth = simkit.Simulation(
        init=lambda params, key: params["rate"],
        step=lambda x, params: x * params["rate"],
        observe=lambda x, params: {"x": x},
        diagnose=lambda x, params: {"x": x},
        params={"rate": 1.0},
    )
    with pytest.warns(UserWarning, match="member 4"):
        simkit.sweep(growth, {"rate": [1.0, 2.0, 1e30]}, seeds=2, chunk=4, steps=40, output=tmp_path / "sweep")
    found = progress_of(tmp_path / "sweep")
    assert (found.state, found.words) == ("finished", "6 of 6 members")
    assert [line.partition(")")[0] for line in found.failed] == [
        f"member {4 + seed} (rate = 1e+30, seed = {seed}" for seed in (0, 1)
    ]
    for name in ("sweep.nc", "summary.json", "chunk_0001.npz"):
        (tmp_path / "sweep" / name).unlink()
    found = progress_of(tmp_path / "sweep")
    assert (found.state, found.words, found.failed) == ("interrupted", "4 of 6 members", [])
    (tmp_path / "sweep" / "chunk_0000.npz").write_bytes(b"damaged")
    found = progress_of(tmp_path / "sweep")
    assert found.words == "0 of 6 members"
    call = f'simkit.resume("{tmp_path / "sweep"}", simulation=...) in Python'
    assert found.failed[0].endswith(f"make it again with: {call}")
    assert main(["status", str(tmp_path / "sweep")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"resume with: {call}"


def test_progress_within_a_chunk_counts_segments(tmp_path):
    from simkit.jobs.sweeps import Sweep

    interrupted(tmp_path / "sweep", Sweep(toy(steps=40, every=1), {"frequency": (1.0, 2.0, 3.0, 4.0)}, chunk=2), 31)
    found = progress_of(tmp_path / "sweep")
    assert 0.5 < found.fraction < 1
    assert found.words == "2 of 4 members"


def test_a_locked_job_is_running_and_can_be_read_by_others(tmp_path, capsys):
    from simkit.jobs.runs import Run

    folder = tmp_path / "run"
    interrupted(folder, Run(toy(steps=40, every=1)), 6)
    assert not is_locked(folder)
    with RunDirectory.open(folder).locked():
        assert is_locked(folder)
        found = progress_of(folder)
        assert found.state == "running"
        assert found.seconds_left is not None and found.seconds_left >= 0
        assert main(["status", str(folder)]) == 0
        assert "state:      running" in capsys.readouterr().out
    assert main(["status", str(folder)]) == 0
    assert f"resume with: simkit resume {folder}" in capsys.readouterr().out


def test_a_folder_without_a_run_is_refused(tmp_path, capsys):
    with pytest.raises(UserError, match="is not a run directory"):
        progress_of(tmp_path)
    assert main(["status", str(tmp_path / "nothing")]) == 2


def test_status_as_json(tmp_path, capsys):
    simkit.run(toy(steps=4), output=tmp_path / "run")
    assert main(["status", str(tmp_path / "run"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["state"], told["fraction"], told["failed"]) == ("finished", 1.0, [])


def test_the_status_of_a_run_that_did_not_converge_says_so(tmp_path):
    with pytest.warns(UserWarning, match="did not converge"):
        simkit.run(descent(), steps=4, every=2, output=tmp_path / "run")
    (line,) = progress_of(tmp_path / "run").failed
    assert line.startswith("did not converge within its steps")
