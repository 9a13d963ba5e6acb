"""Failed members and runs in all reports: table, messages, exit code, JSON, chart and data set."""

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile

import jax
import numpy as np
import xarray

from simkit.cli.main import main
from simkit.cli.reports import optimization, sweep
from simkit.cli.verbs import stored_jobs
from simkit.cli.verbs.shipped import Gallery, Validate
from simkit.core.status import FAILURES, Status, failed
from simkit.jobs.optimizations import Optimization, Optimized
from simkit.jobs.runs import Outcome
from simkit.jobs.sweeps import Sweep
from simkit.jobs.validation import Check
from simkit.scenario.build import build
from simkit.scenario.catalog import find_scenario
from simkit.storage.datasets import labels_of
from tests.tables import every


def result_of(*status):
    """Return the result of a sweep over two launch speeds and two seeds."""
    energy = np.array([[1.0, 2.0], [3.0, 4.0]])[..., None]
    grid = ("launch_speed", "seed")
    names = np.array([code.name.lower() for code in status]).reshape(2, 2)
    variables = {"energy": ((*grid, "frame"), energy), "status": (grid, names)}
    return xarray.Dataset(variables, coords={"launch_speed": [3.0, 4.0], "seed": [0, 1]})


def outcome_of(status, result=Outcome):
    arrays = {"diagnosed.loss": np.arange(3.0), "diagnosed.best_loss": np.arange(3.0), "observed.best_spin": np.ones(3)}
    arrays |= {"diagnosed.iteration": np.arange(3), "status": np.array([0, 0, status], np.int32)}
    scenario, labels = find_scenario("bouncing_ball"), {"dimensions": {}, "coordinates": {}}
    return result(arrays, labels, np.asarray(status), 2, None, scenario)


def test_codes_and_names_of_failures_agree():
    codes = np.array(list(Status))
    names = np.array([status.name.lower() for status in Status])
    np.testing.assert_array_equal(failed(codes), failed(names))
    assert {Status(code) for code in codes[failed(codes)]} == set(FAILURES)


def test_a_sweep_without_failures_succeeds(tmp_path, capsys):
    result = result_of(Status.OK, Status.CONVERGED, Status.BRIEF_CONTACT, Status.OK)
    job = Sweep(find_scenario("bouncing_ball"), {})
    assert sweep.finish(result, job, tmp_path, argparse.Namespace(json=False), None) == 0
    assert capsys.readouterr().err == ""


@every("code", list(Status), ids=lambda code: code.name)
def test_the_data_set_of_a_run_says_whether_it_failed(code):
    dataset = outcome_of(code).dataset()
    assert bool(dataset.attrs["failed"]) == (code in FAILURES)
    assert dataset.attrs["status"] == code.name.lower()
    assert dataset.attrs["message"].startswith("bouncing_ball ")


def test_a_converged_run_tells_which_measure_is_within_which_tolerance():
    with jax.enable_x64(True):
        labels = labels_of(build("lennard_jones_crystal"))
    outcome = outcome_of(Status.CONVERGED)
    arrays = outcome.arrays | {"diagnosed.max_force": np.array([1.0, 2e-4, 3e-12])}
    told = dataclasses.replace(outcome, arrays=arrays, labels=labels).message
    assert told == "bouncing_ball converged; max_force = 3e-12 is within force_tolerance x stiffness x length"


def test_a_status_is_told_with_the_numbers_that_tell_of_it():
    outcome = outcome_of(Status.SWEEPS_TOO_FEW)
    labels = outcome.labels | {"quantities": {"residual": {"doc": "speed left between bodies"}}}
    arrays = outcome.arrays | {"diagnosed.residual": np.array([0.0, 0.1, 0.25])}
    told = dataclasses.replace(outcome, arrays=arrays, labels=labels).message
    assert told.endswith("or bodies of less different mass; residual = 0.25 (speed left between bodies)")
    arrays = outcome.arrays | {"diagnosed.time": np.array([0.0, 0.1, 0.2])}
    labels = outcome.labels | {"quantities": {"time": {"doc": "time; data end in force.x at 0.15"}}}
    ended = dataclasses.replace(outcome, arrays=arrays, labels=labels, status=np.asarray(Status.TABLE_ENDED)).message
    assert "; time = 0.2 (time; data end in force.x at 0.15), with " in ended


def test_an_optimization_that_uses_all_its_iterations_succeeds_with_a_message(tmp_path, capsys):
    outcome = outcome_of(Status.MAX_STEPS, Optimized)
    job = Optimization(outcome.scenario, ("spin",), "miss")
    assert optimization.finish(outcome, job, tmp_path, argparse.Namespace(json=True), None) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert json.loads(captured.out)["message"].startswith("bouncing_ball used its 2 iterations without converging")
    assert "more iterations may find better ones" in job.warning(outcome)
    assert "between iteration 1 and iteration 2" in outcome_of(Status.NON_FINITE, Optimized).message


def test_a_number_of_a_failed_run_is_not_validated(monkeypatch, capsys):
    check = Check("toy", "energy", 1.0, 1.0, 0.0, 1e-3, "known", failure="toy stalled")
    assert not check.passed
    monkeypatch.setattr("simkit.jobs.validation.validate", lambda scenario, report: [check])
    assert Validate.main(argparse.Namespace(scenarios=["bouncing_ball"], json=False)) == 3
    captured = capsys.readouterr()
    assert "FAIL" in captured.out and captured.err == "simkit: toy stalled\n"


def test_a_launch_whose_first_process_aborts_names_each_process_its_end_and_its_log(monkeypatch, tmp_path, capsys):
    told = "ValueError: no such mesh\\nE1128 12:00:00.5 7 agent.cc:1] lost"
    second = f"import sys; print('{told}', file=sys.stderr); sys.exit(1)"
    programs = ["import os, time; time.sleep(2); os.abort()", second]

    def started(words, count, index, address, log):
        return subprocess.Popen([sys.executable, "-c", programs[index]], stderr=log)

    monkeypatch.setattr(stored_jobs, "_started", started)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert main(["launch", "-n", "2", "run", "projectile", "-o", "folder"]) == 3
    (folder,) = tmp_path.glob("simkit_*")
    assert "agent.cc" in (folder / "process_1.log").read_text()
    ends = "process 0 was killed by SIGABRT, as told above; process 1 ended with code 1: ValueError: no such mesh"
    expected = f"simkit: {ends} (logs in {folder}); resume with: simkit resume folder\n"
    assert capsys.readouterr().err == expected
    programs[0] = ""
    assert main(["launch", "-n", "2", "run", "projectile"]) == 0 and [*tmp_path.glob("simkit_*")] == [folder]


def test_the_gallery_keeps_the_picture_of_an_earlier_successful_run(monkeypatch, tmp_path, capsys):
    (tmp_path / "bouncing_ball").mkdir()
    picture = tmp_path / "bouncing_ball" / "film.mp4"
    picture.write_bytes(b"an earlier film")
    monkeypatch.setattr("simkit.cli.gallery.begin", lambda job, output, report: outcome_of(Status.IMPACT_OVERFLOW))
    arguments = argparse.Namespace(scenarios=["bouncing_ball"], output=tmp_path, pages=False, json=False)
    assert Gallery.main(arguments) == 3
    assert picture.read_bytes() == b"an earlier film"
    assert "had more impacts" in capsys.readouterr().err
