"""Killed jobs of every domain, over workers, processes and Dask.

``SIMKIT_KILLS=100 pytest tests/thorough/reliability/test_kill.py`` kills each kind of job that often.
"""

import collections
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from tests.clusters import Cluster
from tests.reliability.killing import ANY, DRIVER, SIMKIT, WORKER, assert_resumes, contents, environment, simkit

# Long enough to be killed in the middle, short enough to repeat; the number of segments; and what is killed.
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
    # Near pairs are carried from step to step, and found again.
    "many bodies": (
        "run granular_column --set config.bodies.1.grid.counts=[37,1,5] --set config.bodies.2.count=200 "
        "--set steps=2000 --no-render",
        21,
        DRIVER,
    ),
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
    "processes": (f"launch -n 2 run channel_flow {SMALL} --set steps=200 --set every=20 --no-render", 11, WORKER),
}
# Kills of one job at most, and of one test at least: jobs are begun until it has as many.
KILLS = 3
WANTED = int(os.environ.get("SIMKIT_KILLS", "1"))


@pytest.mark.parametrize("name", WORK)
def test_jobs_killed_at_random_moments_resume_bit_for_bit(name, tmp_path):
    words, segments, kind = WORK[name]
    count = assert_resumes(words, segments, tmp_path, jobs=WANTED, wanted=WANTED, kind=kind, kills=KILLS)
    print(f"{name}: {count} kills")


def killed_over_dask(words, folder, place, moments):
    """Kill a process of a sweep over Dask at a random moment, finish the sweep in one process; return what was killed.

    Nothing is killed if the sweep ends before.
    """
    with Cluster(place, workers=2) as cluster:
        command = [*SIMKIT, *words.split(), "--scheduler", str(cluster.place), "--output", str(folder)]
        driver = subprocess.Popen(
            command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
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
        codes = {"scheduler": (0, 3), "worker": (0,), "driver": (0, -signal.SIGKILL), "nothing": (0,)}[name]
        assert driver.returncode in codes, words_of_error
        assert driver.returncode != 3 or "the Dask scheduler no longer answers" in words_of_error
    simkit("resume", str(folder))
    return name


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
