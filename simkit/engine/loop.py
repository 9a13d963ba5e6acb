"""The host loop: compiled segments one after another, stored and reported, with an orderly stop between them."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from simkit.storage.store import Store


@dataclasses.dataclass(frozen=True)
class Segment:
    """One finished segment.

    Attributes:
        index: 0 for the first, then 1, 2, ...
        state: state at its end, the initial state of the next segment.
        arrays: arrays to store, including ``"status"``.
        finished: whether this is the last segment.
    """

    index: int
    state: Any
    arrays: dict[str, np.ndarray]
    finished: bool

    @property
    def status(self) -> np.ndarray:
        """Status codes at the end: a scalar, or one per member."""
        return self.arrays["status"][-1]


class Work(Protocol):
    """Work of the loop: one simulation (`simkit.engine.driver`), or the members of a sweep (`simkit.engine.lanes`).

    A segment in which a buffer overflows is computed again with larger buffers, so each method returns, beside its
    segment, the work that computes the next one.
    """

    def restore(self, store: Store, warn: Callable[[str], None]) -> "tuple[Work, Segment] | None":
        """Return the last stored segment from which the work can resume, or ``None``."""
        ...

    def begin(self) -> "tuple[Work, Segment]":
        """Return the first segment."""
        ...

    def advance(self, segment: Segment) -> "tuple[Work, Segment]":
        """Return the segment after the given one."""
        ...


def segments_of(work: Work, store: Store | None, warn: Callable[[str], None]) -> Iterator[Segment]:
    """Run work segment by segment, yielding each segment when it is finished and stored.

    The iteration may be stopped at any time; a later call with the same store resumes bit for bit, and first yields
    the last segment stored.

    Args:
        work: work to run.
        store: store of segments and checkpoints; ``None`` keeps nothing on disk.
        warn: called with one line when a damaged file is skipped.
    """
    found = work.restore(store, warn) if store else None
    work, segment = found or work.begin()
    if store and not found:
        store.create()
        store.write(segment.index, segment.state, segment.arrays)
    yield segment
    while not segment.finished:
        work, segment = work.advance(segment)
        if store:
            store.write(segment.index, segment.state, segment.arrays)
        yield segment


def run_all(
    work: Work, store: Store | None, warn: Callable[[str], None], report: Callable[[Segment], None]
) -> tuple[list[dict[str, np.ndarray]], Segment]:
    """Run work to its end; return the arrays of all segments, including those stored earlier, and the last segment.

    Args:
        work: work to run.
        store: as for `segments_of`.
        warn: as for `segments_of`.
        report: called with each segment.
    """
    kept, last = [], None
    for last in segments_of(work, store, warn):
        report(last)
        if store is None:
            kept.append(last.arrays)
    assert last is not None  # there is always a first segment
    return store.read() if store else kept, last
