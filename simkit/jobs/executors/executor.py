"""Interface of executors of chunks, and counters of progress and failures."""

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from simkit.core.parameter import POSITIVE
from simkit.core.settings import number
from simkit.errors import argument
from simkit.storage.run_directory import UnfinishedError

if TYPE_CHECKING:
    from simkit.jobs.chunks import Chunks
    from simkit.jobs.reporting import Report, Warn

# Number of failures after which a chunk is given up.
MOST_TRIES = 3
# A segment takes seconds, and compilation of a large program minutes.
DEADLINE = number(
    "seconds without progress after which a chunk is given to another worker", 900.0, bounds=(POSITIVE[0], 1e9)
)


class Executor(Protocol):
    """Computes independent chunks, in any order."""

    @property
    def concurrency(self) -> int:
        """Number of processes that compute chunks; a sweep is divided into at least this many."""
        ...

    @property
    def shares_memory(self) -> bool:
        """Whether all chunks are computed on this machine."""
        ...

    @property
    def in_this_process(self) -> bool:
        """Whether chunks are computed in the process of the sweep, and need no shared folder."""
        ...

    def run(
        self, chunks: "Chunks", indices: Sequence[int], report: "Report", warn: "Warn"
    ) -> Generator[tuple[int, dict[str, np.ndarray]], None, None]:
        """Compute chunks, and yield index and arrays of each when it is finished and stored.

        Args:
            chunks: chunks of the sweep.
            indices: indices of the missing chunks.
            report: called with the fraction done of the sweep.
            warn: called with one line about damaged files or dead workers.

        Raises:
            UserError: if a chunk cannot be computed.
        """
        ...


class Tally:
    """Progress of the whole sweep, summed over its chunks.

    Args:
        chunks: chunks of the sweep.
        indices: indices of the missing chunks; the others count as done.
        report: called with the fraction done of the sweep.
    """

    def __init__(self, chunks: "Chunks", indices: Sequence[int], report: "Report") -> None:
        self._chunks, self._report = chunks, report
        self._missing, self._begun = set(indices), dict[int, float]()
        self._members = chunks.members(chunks.count - 1).stop
        self._finished = self._members - sum(len(chunks.members(index)) for index in indices)

    def update(self, index: int, fraction: float) -> None:
        """Record the progress of a chunk, and report that of the sweep.

        Args:
            index: index of the chunk.
            fraction: fraction done of the chunk; the progress of a restarted chunk does not decrease.
        """
        if index in self._missing:
            self._begun[index] = max(self._begun.get(index, 0.0), fraction)
        if index in self._missing and fraction >= 1:
            self._missing.remove(index)
            del self._begun[index]
            self._finished += len(self._chunks.members(index))
        partly = sum(part * len(self._chunks.members(begun)) for begun, part in self._begun.items())
        # Converging members end one by one; others end with their chunk.
        ended = self._finished + (round(partly) if self._chunks.uses_lanes else 0)
        self._report((self._finished + partly) / self._members, f"{ended} of {self._members} members")


class Tries:
    """Failures of each chunk, and the decision to retry, divide or give up.

    Args:
        folder: run directory of the sweep, named in errors.
        warn: called with one line about a chunk that is computed again.
    """

    def __init__(self, folder: Path, warn: "Warn") -> None:
        self._folder, self._warn = folder, warn
        self._failures: dict[int, int] = {}

    def parts(self, index: int) -> int:
        """Return the number of parts of a chunk: 2 after it has failed twice, since halves need less memory.

        Args:
            index: index of the chunk.
        """
        return 2 if self._failures.get(index, 0) >= MOST_TRIES - 1 else 1

    def record_failure(self, index: int, reason: str) -> None:
        """Record the failure of a chunk.

        Args:
            index: index of the chunk.
            reason: cause in words.

        Raises:
            UnfinishedError: if the chunk has failed `MOST_TRIES` times.
        """
        self._failures[index] = self._failures.get(index, 0) + 1
        if self._failures[index] >= MOST_TRIES:
            raise UnfinishedError(
                f"chunk {index} failed {MOST_TRIES} times ({reason}); pass a smaller "
                f"{argument('chunk')} if memory is short, then "
                "resume with",
                self._folder,
            )
        how = "once more, in 2 parts, whose last digits may differ" if self.parts(index) > 1 else "once more"
        self._warn(f"chunk {index}: {reason}; computing it {how}")
