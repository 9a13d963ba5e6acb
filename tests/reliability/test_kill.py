"""Killed jobs: the resumed result has the same bytes as an uninterrupted one."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from simkit.render.files import whole_file

SIMKIT = [sys.executable, "-m", "simkit.cli.main"]

# Long enough to be killed in the middle, short enough to repeat; and the number of segments.
WORK = {
    "molecular": (
        "run soft_sphere_packing --set config.particles.small.count=32 --set config.particles.large.count=32 "
        "--set every=4 --no-render",
        10,
    ),
    "flow": ("run channel_flow --set cells=[32,24] --set steps=12000 --no-render", 21),
    "rigid": ("run bouncing_ball --set time_step=0.0001 --set steps=36000 --no-render", 21),
    "sweep": ("sweep channel_flow --over reynolds=100,200,300 --chunk 1 --set cells=[16,12] --set steps=8000", 63),
    "relaxations": (
        "sweep soft_sphere_packing --seeds 12 --chunk 3 "
        "--set config.particles.small.count=8 --set config.particles.large.count=8",
        24,
    ),
    "optimize": ("optimize bouncing_ball --wrt launch_speed --method adam --iterations 60 --no-render", 21),
    "grad": ("grad channel_flow --wrt reynolds,forcing --set cells=[16,12] --set steps=8000", 42),
}
KILLS = 3


def contents(folder):
    """Return the bytes of every file except charts."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".png")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def simkit(*words):
    ran = subprocess.run([*SIMKIT, *words], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("words", "segments"),
    [
        pytest.param(*work, id=name, marks=() if name == "rigid" else pytest.mark.thorough)
        for name, work in WORK.items()
    ],
)
def test_jobs_killed_at_random_moments_resume_bit_for_bit(words, segments, tmp_path):
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    simkit(*words.split(), "--output", str(whole))
    moments = random.Random(words)
    command = [*words.split(), "--output", str(folder)]
    killed, seen = 0, set()
    # The kills are spread over the run, each at a random time after the start of some segment.
    for after in sorted(moments.sample(range(segments - 1), KILLS)):
        process = subprocess.Popen([*SIMKIT, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and len(seen) <= after:
            seen.update(folder.rglob("segments/*.npz"))
            time.sleep(0.002)
        time.sleep(0.03 * moments.random())
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
        process.wait()
        command = ["resume", str(folder), *(["--no-render"] if "--no-render" in words else [])]
    simkit(*command)
    assert killed > 0, "every process ended before it could be killed; give the test more work"
    assert contents(folder) == contents(whole)


KILLED_WHILE_DRAWING = """
import os, signal, sys
from PIL import Image
from simkit.cli.main import main

def save(self, path, *unused, **options):
    path.write_bytes(b"half a picture")
    os.kill(os.getpid(), signal.SIGKILL)

Image.Image.save = save
main(["render", sys.argv[1], "--format", "png"])
"""


@pytest.mark.parametrize("words", [["resume", "--no-render"], ["render", "--format", "png"]])
def test_leftovers_of_killed_drawing_are_removed_and_those_of_running_drawing_kept(words, tmp_path):
    folder = tmp_path / "run"
    simkit("run", "bouncing_ball", "--set", "steps=30", "--no-render", "--output", str(folder))
    ran = subprocess.run([sys.executable, "-c", KILLED_WHILE_DRAWING, folder], check=False)
    assert ran.returncode == -signal.SIGKILL
    (abandoned,) = folder.glob(".*.partial")
    with whole_file(folder / "bouncing_ball.png") as living:
        assert not abandoned.exists()
        abandoned.write_bytes(b"half a picture")
        living.write_bytes(b"under way")
        verb, *options = words
        simkit(verb, str(folder), *options)
        assert list(folder.glob(".*.partial")) == [living]
