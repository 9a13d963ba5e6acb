"""Jobs that are killed at random moments: the resumed result has the same bytes as an uninterrupted one."""

import contextlib
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.toys import FACTORIES

psutil = pytest.importorskip("psutil")

ROOT = Path(__file__).parents[2]
SIMKIT = [sys.executable, "-m", "simkit.cli.main"]
# The command line with the simulations of toys, which compile in a moment.
TOYS = [
    sys.executable,
    "-c",
    f"""
import sys
from simkit.cli.main import main
from simkit.scenario import registry
registry.FACTORIES |= {FACTORIES}
sys.exit(main())
""",
]
# What is killed.
DRIVER, WORKER, ANY = "driver", "worker", "driver or worker"


def environment() -> dict[str, str]:
    """Return the environment of a command that finds simkit and the tests of this checkout."""
    return os.environ | {"PYTHONPATH": str(ROOT)}


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file except charts."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".png")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def simkit(*words: str, program: list[str] = SIMKIT) -> None:
    """Run a command that must succeed."""
    ran = subprocess.run([*program, *words], env=environment(), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def victim(process: subprocess.Popen[Any], kind: str, moments: random.Random) -> Any:
    """Return the process of a job that is killed next."""
    driver = psutil.Process(process.pid)
    # Python's own helper of shared memory is no worker.
    others = [child for child in driver.children(recursive=True) if "resource_tracker" not in " ".join(child.cmdline())]
    return moments.choice({DRIVER: [driver], WORKER: others, ANY: [driver, *others]}[kind] or [driver])


def killed(
    words: str,
    segments: int,
    folder: Path,
    moments: random.Random,
    *,
    kind: str = DRIVER,
    kills: int = 1,
    parts: str = "segments/*.npz",
    program: list[str] = SIMKIT,
) -> int:
    """Kill a job a few times, finish it, and return how often it was killed.

    The kills are spread over the run, each at a random time after the start of some segment.

    Args:
        words: of the command line.
        segments: number of files of parts that are written while the work is computed.
        folder: of the job.
        moments: random numbers.
        kind: the process to kill.
        kills: at most.
        parts: pattern of these files.
        program: that takes the words.
    """
    options = ["--no-render"] if "--no-render" in words else []
    begin, go_on = [*words.split(), "--output", str(folder)], ["resume", str(folder), *options]
    if words.startswith("launch "):
        go_on = ["launch", "-n", "2", *go_on]
    if "--workers" in words:
        go_on += ["--workers", "2"]
    process, count, seen = None, 0, set()
    for after in sorted(moments.sample(range(segments - 1), kills)):
        if process is None or process.poll() is not None:
            command = [*program, *(go_on if folder.exists() else begin)]
            process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and len(seen) <= after:
            seen.update(folder.rglob(parts))
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
    simkit(*go_on, program=program)
    return count


def assert_resumes(words: str, segments: int, home: Path, *, jobs: int = 1, wanted: int = 1, **options: Any) -> int:
    """Kill jobs until there are `wanted` kills or as many jobs as `jobs`, and compare each with one left alone.

    Returns:
        The number of kills.
    """
    simkit(*words.split(), "--output", str(home / "whole"), program=options.get("program", SIMKIT))
    expected, moments, count = contents(home / "whole"), random.Random(words), 0
    for job in range(jobs):
        count += killed(words, segments, home / f"killed_{job}", moments, **options)
        assert contents(home / f"killed_{job}") == expected
        shutil.rmtree(home / f"killed_{job}")
        if count >= wanted:
            break
    assert count > 0, "every process ended before it could be killed; give the test more work"
    return count
