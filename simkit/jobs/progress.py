"""Progress of a stored job, read from its files while it runs or after it was interrupted."""

import dataclasses
import itertools
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from simkit.jobs.stored_progress import StoredProgress
from simkit.storage.kinds import kind_of
from simkit.storage.regular_files import check_regular
from simkit.storage.run_directory import RunDirectory, is_locked

# A gap between two files longer than this many median gaps counts as an interruption.
PAUSE = 10


@dataclasses.dataclass(frozen=True)
class Progress:
    """Progress of the job in a run directory.

    Attributes:
        folder: the run directory.
        kind: kind of job, in words.
        scenario: name of the scenario.
        state: ``"finished"``, or ``"damaged"`` if a finished sweep lacks parts; ``"running"`` if a process has locked
            the directory; otherwise ``"interrupted"``.
        fraction: stored fraction of the job.
        words: stored amount, such as ``"12 of 32 members"``.
        failed: a line for each failed member (the first `MOST_NAMED`), or for the run.
        failures: number of failures.
        totals: ``statuses``, the number of stored members of a sweep by status, and ``quantiles`` of their final
            diagnostics.
        resuming: the command that resumes the job, or the call in Python.
        seconds_left: estimated from the times of the files; ``None`` if the job is not running or has just begun.
    """

    folder: Path
    kind: str
    scenario: str
    state: Literal["finished", "running", "interrupted", "damaged"]
    fraction: float
    words: str
    failed: list[str]
    failures: int
    totals: Mapping[str, Any]
    resuming: str
    seconds_left: float | None


def progress_of(path: Path | str) -> Progress:
    """Return the progress of the job in a run directory; nothing is written or computed.

    Args:
        path: the run directory.

    Raises:
        UserError: if it is not a run directory, or its manifest cannot be read.
    """
    directory = RunDirectory.open(path)
    job: Any = kind_of(directory.kind).of(directory)
    found: StoredProgress = job.stored_progress(directory)
    state = "running" if is_locked(directory.path) else "interrupted"
    if all(check_regular(directory.path / name) for name in job.results):
        state = "finished" if found.fraction == 1 or not job.keeps_parts else "damaged"
    began = (directory.path / "manifest.json").stat().st_mtime
    done = 1.0 if state == "finished" else found.fraction
    left = None
    if state == "running":
        left = _seconds_left(done, [began, *found.times], (directory.path / ".lock").stat().st_mtime)
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
        resuming=directory.resuming,
        seconds_left=left,
    )


def _seconds_left(fraction: float, times: Sequence[float], resumed: float) -> float | None:
    """Return the time left at the speed so far, without interruptions, of which the last one ended at ``resumed``."""
    times = sorted(times)
    gaps = [after - before for before, after in itertools.pairwise(times) if not before < resumed < after]
    if not gaps or not 0 < fraction < 1:
        return None
    longest = PAUSE * statistics.median(gaps)
    worked = sum(min(gap, longest) for gap in gaps) if len(gaps) > 2 else sum(gaps)
    return worked * (1 - fraction) / fraction
