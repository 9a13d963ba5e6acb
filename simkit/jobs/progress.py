"""Progress of stored work, read from its files while a process goes on with it or after that was killed."""

import dataclasses
import itertools
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from simkit.jobs.so_far import SoFar
from simkit.storage.kinds import kind_of
from simkit.storage.regular_files import check_regular
from simkit.storage.run_directory import RunDirectory, is_held

# A gap between two files that is so many times the usual one is a pause between two processes.
PAUSE = 10


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far the work of a run directory is.

    Attributes:
        folder: the run directory.
        kind: of job, in words.
        scenario: its name.
        state: ``"finished"``; ``"running"`` if a process holds the directory; otherwise ``"interrupted"``.
        fraction: that is stored.
        words: what is stored, such as ``"12 of 32 members"``.
        failed: a line for each member that failed, the first of many, or for the run.
        failures: how many failed.
        totals: of the members of a sweep that are stored: ``statuses``, how many ended how, and ``quantiles`` of their
            diagnostics at the end.
        seconds_left: estimated from the times of the files; ``None`` if it is not running or nothing is known yet.
    """

    folder: Path
    kind: str
    scenario: str
    state: Literal["finished", "running", "interrupted"]
    fraction: float
    words: str
    failed: list[str]
    failures: int
    totals: Mapping[str, Any]
    seconds_left: float | None


def progress_of(path: Path | str) -> Progress:
    """Return how far the work of a run directory is; nothing is written or computed.

    Args:
        path: the run directory.

    Raises:
        UserError: if it is not a run directory, or its manifest cannot be read.
    """
    directory = RunDirectory.open(path)
    job: Any = kind_of(directory.kind).of(directory)
    found: SoFar = job.so_far(directory)
    state = "running" if is_held(directory.path) else "interrupted"
    if all(check_regular(directory.path / name) for name in job.results):
        state = "finished"
    began = (directory.path / "manifest.json").stat().st_mtime
    done = 1.0 if state == "finished" else found.fraction
    left = _seconds_left(done, [began, *found.times]) if state == "running" else None
    noun = job.noun.removeprefix("a ").removeprefix("an ")
    failures = len(found.failed) if found.failures is None else found.failures
    return Progress(
        folder=directory.path,
        kind=noun,
        scenario=directory.manifest["scenario"],
        state=state,
        fraction=done,
        words=found.words,
        failed=found.failed,
        failures=failures,
        totals=found.totals,
        seconds_left=left,
    )


def _seconds_left(fraction: float, times: Sequence[float]) -> float | None:
    """Return how long the rest takes at the speed so far, pauses between processes left out."""
    times = sorted(times)
    gaps = [after - before for before, after in itertools.pairwise(times)]
    if not gaps or not 0 < fraction < 1:
        return None
    longest = PAUSE * statistics.median(gaps)
    worked = sum(min(gap, longest) for gap in gaps) if len(gaps) > 2 else sum(gaps)
    return worked * (1 - fraction) / fraction
