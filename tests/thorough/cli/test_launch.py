"""One simulation in several processes: the results and files of one process, also after a process has died."""

import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

import simkit
from simkit.cli.main import main
from tests.tables import every

VALUES = {"config.axes.x.cells": 16, "config.axes.y.cells": 16, "steps": 60, "every": 5, "perturbation": 0.3}
SET = [word for name in VALUES for word in ("--set", f"{name}={VALUES[name]}".replace("(", "[").replace(")", "]"))]


def simkit_command(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "simkit.cli.main", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def launched(count, *words):
    return simkit_command("launch", "-n", count, *words, "--no-render")


def ended(process):
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def told(err):
    """Return the lines of an error, without those of a long first wait, which a slow machine adds."""
    return [line for line in err.strip().splitlines() if not re.match(r"\w+  ", line)]


def wait_for(path):
    for _ in range(1200):
        if path.exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} never came")


def assert_equal_to_one_process(folder):
    found, alone = simkit.open_run(folder), simkit.run("channel_flow", **VALUES)
    assert set(found) == set(alone) and found.sizes == alone.sizes
    for name in ("u", "v", "bulk_velocity", "kinetic_energy", "wall_shear_stress"):
        # Another order of sums, 60 steps in float32.
        np.testing.assert_allclose(found[name], alone[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_two_processes_give_the_results_of_one(tmp_path):
    code, out, err = ended(launched(2, "run", "channel_flow", *SET, "-o", tmp_path / "run", "--json"))
    assert code == 0, err
    assert out.startswith("{")  # nothing else is on standard output
    assert_equal_to_one_process(tmp_path / "run")


def test_processes_stop_by_themselves_when_launch_is_killed(tmp_path):
    run = tmp_path / "run"
    process = launched(2, "run", "channel_flow", *SET, "-o", run)
    wait_for(run / "segments" / "000002.npz")
    ranks = psutil.Process(process.pid).children()
    process.kill()
    assert len(ranks) == 2 and not psutil.wait_procs(ranks, timeout=60)[1]
    simkit.resume(run)
    assert_equal_to_one_process(run)


@every("rank", [0, 1])
def test_a_run_with_a_killed_process_resumes_in_any_number_of_processes(rank, tmp_path):
    run = tmp_path / str(rank)
    process = launched(2, "run", "channel_flow", *SET, "-o", run)
    wait_for(run / "segments" / "000002.npz")
    # The words before this end depend on which process notices first.
    next(each for each in psutil.Process(process.pid).children() if str(rank) in each.cmdline()[-3:-2]).kill()
    code, _, err = ended(process)
    assert code == 3 and err.strip().splitlines()[-1].endswith(f"resume with: simkit resume {run}")
    if rank == 0:
        return
    process = launched(4, "resume", run)
    wait_for(run / "segments" / "000006.npz")
    process.send_signal(signal.SIGTERM)
    code, _, err = ended(process)
    assert code == 143
    assert err.strip().splitlines()[-1] == f"simkit: terminated; resume with: simkit resume {run}"
    assert not (run / "summary.json").exists()
    code, _, err = ended(simkit_command("resume", run, "--no-render"))
    assert code == 0, err
    assert_equal_to_one_process(run)


@every(
    "count, words, message",
    [
        (3, ["channel_flow", *SET], "processes = 3 do not divide the cells along any axis"),
        (2, ["lennard_jones_fluid"], "buffers that grow, such as neighbor lists, runs in one process"),
    ],
    ids=["cells", "lists"],
)
def test_simulations_that_cannot_be_divided_are_refused(count, words, message, tmp_path):
    code, _, err = ended(launched(count, "run", *words, "-o", tmp_path / "run"))
    assert code == 2
    assert message in err and len(told(err)) == 1
    assert not (tmp_path / "run").exists()


def test_an_existing_output_is_refused_by_all_processes(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes").write_text("mine")
    code, _, err = ended(launched(2, "run", "channel_flow", *SET, "-o", tmp_path / "run"))
    assert code == 2 and len(told(err)) == 1


def test_two_processes_divide_the_seeds_of_a_derivative(capsys):
    words = ["grad", "channel_flow", *SET, "--precision", "float64", "--wrt", "reynolds,perturbation", "--seeds", "4"]
    code, out, err = ended(simkit_command("launch", "-n", 2, *words, "--json"))
    assert code == 0, err
    assert main([*words, "--json"]) == 0
    found, alone = json.loads(out), json.loads(capsys.readouterr().out)
    assert found["value"] == pytest.approx(alone["value"], rel=1e-12)
    for name, row in alone["wrt"].items():
        assert found["wrt"][name] == pytest.approx(row, rel=1e-9)


@every(
    "more, words",
    [
        (["--seeds", 3], "2 processes do not divide seeds = 3; give a multiple"),
        ([], "--processes divides the seeds of a derivative; give --seeds"),
    ],
)
def test_derivatives_that_cannot_be_divided_are_refused(more, words):
    code, _, err = ended(simkit_command("launch", "-n", 2, "grad", "channel_flow", *SET, "--wrt", "reynolds", *more))
    assert code == 2 and words in err and len(told(err)) == 1
