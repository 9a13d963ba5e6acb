"""Progress of an unfinished job according to its files: the stored fraction, failures, and write times."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class StoredProgress:
    """Stored part of a job.

    Attributes:
        fraction: stored fraction of the job, of its maximum length if it may end early.
        words: stored amount, such as ``"120 of 400 steps"``.
        failed: a line for each failed member (the first of many), or for the run.
        times: times at which its files were written, in seconds.
        failures: number of failed members and damaged files; ``None`` if ``failed`` lists them all.
        members: number of members that have ended, of a sweep.
        totals: number of stored members by status, and quantiles of their final diagnostics.
    """

    fraction: float
    words: str
    failed: list[str]
    times: list[float]
    failures: int | None = None
    members: int = 0
    totals: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def write_times(paths: Iterable[Path]) -> list[float]:
    """Return the write times of files, in seconds; files removed meanwhile by another process are omitted.

    Args:
        paths: paths of the files.
    """
    found = []
    for path in paths:
        try:
            found.append(path.stat().st_mtime)
        except OSError:
            continue
    return found
