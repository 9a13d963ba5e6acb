"""Record of what the files of unfinished work hold: the share that is stored, failures, and times of writing."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class SoFar:
    """What is stored of a job.

    Attributes:
        fraction: of the work; the longest there may be, of work that may end early.
        words: how much that is, such as ``"120 of 400 steps"``.
        failed: a line for each member that failed, the first of many, or for the run.
        times: when its files were written, in seconds.
        failures: how many members failed, or files are damaged.
        totals: of the members that are stored: how many ended how, and quantiles of their diagnostics at the end.
    """

    fraction: float
    words: str
    failed: list[str]
    times: list[float]
    failures: int | None = None
    totals: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def times_of(paths: Iterable[Path]) -> list[float]:
    """Return when files were written; those that another process has removed meanwhile are left out.

    Args:
        paths: of the files.
    """
    found = []
    for path in paths:
        try:
            found.append(path.stat().st_mtime)
        except OSError:
            continue
    return found
