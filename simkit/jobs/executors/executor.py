"""Interface of an executor of chunks, the executor in this process, and counts of progress and of failures."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from simkit.errors import UserError

if TYPE_CHECKING:
    from simkit.jobs.callbacks import Report, Warn
    from simkit.jobs.chunks import Chunks

# A chunk is given up when it failed so often.
MOST_TRIES = 3


class Executor(Protocol):
    """Computes chunks that do not depend on one another, in any order."""

    @property
    def places(self) -> int:
        """How many chunks are computed at once; a sweep is cut into at least so many."""
        ...

    @property
    def shares_memory(self) -> bool:
        """Whether all places are on this machine."""
        ...

    @property
    def in_this_process(self) -> bool:
        """Whether chunks are computed where the sweep was asked for, and need no folder that others see."""
        ...

    def run(
        self, chunks: "Chunks", indices: Sequence[int], report: "Report", warn: "Warn"
    ) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
        """Compute chunks, and yield the number and the arrays of each when it is finished and stored.

        Args:
            chunks: of a sweep.
            indices: of those that are missing.
            report: called with the fraction done of all of them.
            warn: called with one line about damaged files, and of workers that died.

        Raises:
            UserError: if a chunk cannot be computed.
        """
        ...


@dataclasses.dataclass(frozen=True)
class InThisProcess:
    """One chunk after another, in the process that asks for the sweep."""

    places: int = 1
    shares_memory: bool = True
    in_this_process: bool = True

    def run(
        self, chunks: "Chunks", indices: Sequence[int], report: "Report", warn: "Warn"
    ) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
        """Compute chunks, see `Executor.run`."""
        tally = Tally(chunks, indices, report)
        for index in indices:
            yield index, chunks.compute(index, lambda fraction, words, index=index: tally.tell(index, fraction), warn)
            tally.tell(index, 1.0)


IN_THIS_PROCESS = InThisProcess()


class Tally:
    """Progress of chunks, told as that of the whole sweep.

    Args:
        chunks: of a sweep.
        indices: of those that are missing; the others count as done.
        report: called with the fraction done of the sweep.
    """

    def __init__(self, chunks: "Chunks", indices: Sequence[int], report: "Report") -> None:
        self._chunks, self._report = chunks, report
        self._missing, self._begun = set(indices), dict[int, float]()
        self._members = chunks.members(chunks.count - 1).stop
        self._whole = self._members - sum(len(chunks.members(index)) for index in indices)

    def tell(self, index: int, fraction: float) -> None:
        """Note how far a chunk is, and report the sum.

        Args:
            index: of the chunk.
            fraction: of it that is done; a chunk that is begun again does not go back.
        """
        if index in self._missing:
            self._begun[index] = max(self._begun.get(index, 0.0), fraction)
        if index in self._missing and fraction >= 1:
            self._missing.remove(index)
            del self._begun[index]
            self._whole += len(self._chunks.members(index))
        partly = sum(part * len(self._chunks.members(begun)) for begun, part in self._begun.items())
        # Members that end when they are done end one by one; the others end with their chunk.
        ended = self._whole + (round(partly) if self._chunks.one_by_one else 0)
        self._report((self._whole + partly) / self._members, f"{ended} of {self._members} members")


class Tries:
    """Count of failures of each chunk, and what to do next.

    Args:
        folder: of the sweep, for errors.
        warn: called with one line about a chunk that is tried again.
    """

    def __init__(self, folder: Path, warn: "Warn") -> None:
        self._folder, self._warn = folder, warn
        self._failed: dict[int, int] = {}

    def parts(self, index: int) -> int:
        """Return into how many parts a chunk is divided: its halves, after it failed twice, take less memory.

        Args:
            index: of the chunk.
        """
        return 2 if self._failed.get(index, 0) >= MOST_TRIES - 1 else 1

    def failed(self, index: int, reason: str) -> None:
        """Note that a chunk failed.

        Args:
            index: of the chunk.
            reason: in words.

        Raises:
            UserError: if it failed too often.
        """
        self._failed[index] = self._failed.get(index, 0) + 1
        if self._failed[index] >= MOST_TRIES:
            raise UserError(
                f"{self._folder}: chunk {index} failed {MOST_TRIES} times ({reason}); pass a smaller chunk= if memory "
                f"is short, and go on with: simkit resume {self._folder}"
            )
        how = "once more, in 2 parts, whose last digits may differ" if self.parts(index) > 1 else "once more"
        self._warn(f"chunk {index}: {reason}; computing it {how}")
