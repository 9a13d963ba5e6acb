"""Killed jobs: the resumed result has the same bytes as an uninterrupted one.

``SIMKIT_KILLS=100 pytest -m "slow or not slow" tests/reliability/test_kill.py`` kills each kind of job that often.
"""

import collections
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from simkit.render.files import whole_file
from tests.clusters import Cluster

psutil = pytest.importorskip("psutil")

SIMKIT = [sys.executable, "-m", "simkit.cli.main"]

# Long enough to be killed in the middle, short enough to repeat; the number of segments, of chunks that of the segments
# written while they are computed; and what is killed.
DRIVER, WORKER, ANY = "driver", "worker", "driver or worker"
SMALL = "--set config.axes.x.cells=16 --set config.axes.y.cells=12"
SWEEP = f"sweep channel_flow --over reynolds=100,200,300,400 --chunk 1 {SMALL} --set steps=100000"
WORK = {
    "molecular": (
        "run soft_sphere_packing --set config.particles.small.count=32 --set config.particles.large.count=32 "
        "--set every=4 --no-render",
        10,
        DRIVER,
    ),
    "flow": (f"run channel_flow {SMALL} --set steps=24000 --no-render", 21, DRIVER),
    "rigid": ("run bouncing_ball --set time_step=0.0001 --set steps=36000 --no-render", 21, DRIVER),
    "sweep": (SWEEP, 30, DRIVER),
    "workers": (f"{SWEEP} --workers 2", 30, ANY),
    "relaxations": (
        "sweep soft_sphere_packing --seeds 12 --chunk 3 "
        "--set config.particles.small.count=64 --set config.particles.large.count=64",
        12,
        DRIVER,
    ),
    "optimize": ("optimize bouncing_ball --wrt launch_speed --method adam --iterations 60 --no-render", 21, DRIVER),
    "grad": (f"grad channel_flow --wrt reynolds,forcing {SMALL} --set steps=8000", 42, DRIVER),
    "processes": (
        f"launch -n 2 run channel_flow {SMALL} --set steps=200 --set every=20 --no-render",
        11,
        WORKER,
    ),
}
# Kills of one job at most, and of one test at least: jobs are begun until it has as many.
KILLS = 3
WANTED = int(os.environ.get("SIMKIT_KILLS", "1"))


def contents(folder):
    """Return the bytes of every file except charts."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".png")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def simkit(*words):
    ran = subprocess.run([*SIMKIT, *words], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def victim(process, kind, moments):
    """Return the process of a job that is killed next."""
    driver = psutil.Process(process.pid)
    # Python's own helper of shared memory is no worker.
    others = [one for one in driver.children(recursive=True) if "resource_tracker" not in " ".join(one.cmdline())]
    return moments.choice({DRIVER: [driver], WORKER: others, ANY: [driver, *others]}[kind] or [driver])


def killed(words, segments, kind, folder, moments):
    """Kill a job a few times, finish it, and return how often it was killed.

    The kills are spread over the run, each at a random time after the start of some segment.
    """
    options = ["--no-render"] if "--no-render" in words else []
    begin, go_on = [*words.split(), "--output", str(folder)], ["resume", str(folder), *options]
    if words.startswith("launch "):
        go_on = ["launch", "-n", "2", *go_on]
    if "--workers" in words:
        go_on += ["--workers", "2"]
    process, count, seen = None, 0, set()
    for after in sorted(moments.sample(range(segments - 1), KILLS)):
        if process is None or process.poll() is not None:
            command = go_on if folder.exists() else begin
            process = subprocess.Popen([*SIMKIT, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and len(seen) <= after:
            seen.update(folder.rglob("segments/*.npz"))
            time.sleep(0.002)
        time.sleep(0.03 * moments.random())
        if process.poll() is not None:
            continue
        with contextlib.suppress(psutil.NoSuchProcess):
            target = victim(process, kind, moments)
            target.kill()
            count += 1
            if target.pid == process.pid or words.startswith("launch "):
                process.wait()
    if process is not None:
        process.wait()
    simkit(*go_on)
    return count


def marks(name):
    return {"rigid": (), "workers": pytest.mark.slow, "processes": pytest.mark.slow}.get(name, pytest.mark.thorough)


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in WORK])
def test_jobs_killed_at_random_moments_resume_bit_for_bit(name, tmp_path):
    words, segments, kind = WORK[name]
    simkit(*words.split(), "--output", str(tmp_path / "whole"))
    expected, moments, count = contents(tmp_path / "whole"), random.Random(words), 0
    for job in range(WANTED):
        count += killed(words, segments, kind, tmp_path / f"killed_{job}", moments)
        assert count > 0, "every process ended before it could be killed; give the test more work"
        assert contents(tmp_path / f"killed_{job}") == expected
        shutil.rmtree(tmp_path / f"killed_{job}")
        if count >= WANTED:
            break
    print(f"{name}: {count} kills of {job + 1} jobs")


def killed_over_dask(words, folder, place, moments):
    """Kill a process of a sweep over Dask at a random moment, finish the sweep in one process; return what was killed.

    Nothing is killed if the sweep ends before.
    """
    with Cluster(place, workers=2) as cluster:
        command = [*SIMKIT, *words.split(), "--scheduler", str(cluster.place), "--output", str(folder)]
        driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        name = moments.choice(["scheduler", "worker", "driver"])
        target = {"scheduler": cluster.scheduler, "worker": cluster.workers[0], "driver": driver}[name]
        after = moments.randrange(5)
        while driver.poll() is None and not (
            (folder / "manifest.json").exists() and len(list(folder.glob("chunk_*.npz"))) >= after
        ):
            time.sleep(0.002)
        time.sleep(0.5 * moments.random())
        if driver.poll() is not None:
            name = "nothing"
        else:
            target.kill()
        _, words_of_error = driver.communicate(timeout=300)
        codes = {"scheduler": (0, 2), "worker": (0,), "driver": (0, -signal.SIGKILL), "nothing": (0,)}[name]
        assert driver.returncode in codes, words_of_error
        assert driver.returncode != 2 or "the Dask scheduler no longer answers" in words_of_error
    simkit("resume", str(folder))
    return name


@pytest.mark.slow
def test_sweeps_over_dask_killed_at_random_moments_end_with_the_bytes_of_one_process(tmp_path):
    pytest.importorskip("distributed")
    words = f"sweep channel_flow --over reynolds=100:300:6 --chunk 1 {SMALL} --set steps=40000"
    simkit(*words.split(), "--output", str(tmp_path / "whole"))
    expected, moments, counts = contents(tmp_path / "whole"), random.Random(words), collections.Counter()
    for job in range(WANTED):
        place = tmp_path / f"job_{job}"
        place.mkdir()
        counts[killed_over_dask(words, place / "sweep", place, moments)] += 1
        assert contents(place / "sweep") == expected
        shutil.rmtree(place)
    print(f"over Dask: {dict(counts)}")


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
