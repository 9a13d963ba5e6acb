"""Kill it anywhere: what is resumed is the same, byte for byte, as what was never interrupted."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

SIMKIT = [sys.executable, "-m", "simkit.cli.main"]

# Long enough to be hit in the middle, short enough to be run three times.
WORK = {
    "molecular": ["run", "soft_sphere_packing", "--set", "particles=64", "--set", "every=4", "--no-render"],
    "flow": ["run", "channel_flow", "--set", "cells=[32, 24]", "--set", "steps=12000", "--no-render"],
    "rigid": ["run", "bouncing_ball", "--set", "time_step=0.0001", "--set", "steps=36000", "--no-render"],
    "sweep": ["sweep", "channel_flow", "--over", "reynolds=100,200,300", "--chunk", "1"]
    + ["--set", "cells=[16, 12]", "--set", "steps=8000"],
    "optimize": ["optimize", "bouncing_ball", "--wrt", "launch_speed", "--method", "adam", "--iterations", "60"]
    + ["--no-render"],
}


def contents(folder):
    """Return every file's bytes; locks and charts are no results."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix not in (".png", ".lock") and not path.name.startswith(".")
    }


def simkit(*words):
    return subprocess.run([*SIMKIT, *words], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", params=WORK)
def uninterrupted(request, tmp_path_factory):
    """Run once without interruption: its bytes, and how long it takes with everything compiled."""
    words = WORK[request.param]
    for name in ("warm", "whole"):
        folder = tmp_path_factory.mktemp(request.param) / name
        began = time.monotonic()
        ran = simkit(*words, "--output", str(folder))
        duration = time.monotonic() - began
        assert ran.returncode == 0, ran.stderr
    return words, contents(folder), duration


def test_a_run_killed_at_random_moments_resumes_bit_identically(uninterrupted, tmp_path):
    words, expected, duration = uninterrupted
    folder, moments = tmp_path / "run", random.Random(len(expected))
    killed = 0
    command = [*words, "--output", str(folder)]
    for _ in range(3):
        process = subprocess.Popen(
            [*SIMKIT, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        # From the moment there is something to lose, kill at any time of what an uninterrupted run takes.
        while process.poll() is None and not (folder / "manifest.json").exists():
            time.sleep(0.005)
        time.sleep(moments.random() * duration / 3)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            killed += 1
        process.wait()
        command = ["resume", str(folder)]
        if words[0] != "sweep":
            command.append("--no-render")
    resumed = simkit(*command)
    assert resumed.returncode == 0, resumed.stderr
    assert killed > 0, "every process ended before it could be killed; give the test more work"
    assert contents(folder) == expected
