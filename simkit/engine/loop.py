"""The host loop: work in compiled segments, with storage, progress and an orderly stop between them."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from simkit.storage.store import Store


@dataclasses.dataclass(frozen=True)
class Piece:
    """One finished segment.

    Attributes:
        index: 0 for the first, then 1, 2, ...
        state: the state in which it ends, from which the next one goes on.
        arrays: what is stored of it, ``"status"`` among it.
        finished: whether nothing is left to do.
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
    """What the loop runs: one simulation (`simkit.engine.driver`), or the members of a sweep (`simkit.engine.lanes`).

    A segment in which a buffer overflows is computed again with larger buffers, so each method returns the work to go
    on with beside its piece.
    """

    def restore(self, store: Store, warn: Callable[[str], None]) -> "tuple[Work, Piece] | None":
        """Return the last stored piece from which the work can go on, if there is one."""
        ...

    def begin(self) -> "tuple[Work, Piece]":
        """Return the first piece."""
        ...

    def advance(self, piece: Piece) -> "tuple[Work, Piece]":
        """Return the piece after another."""
        ...


def pieces_of(work: Work, store: Store | None, warn: Callable[[str], None]) -> Iterator[Piece]:
    """Run work segment by segment, yielding each piece when it is finished and stored.

    The iteration may be stopped at any time; a later call with the same store goes on from there, bit for bit. Pieces
    already stored are not yielded again: the first one is the last that was stored.

    Args:
        work: what to run.
        store: where segments and checkpoints go; ``None`` keeps nothing on disk.
        warn: told in one line when a damaged file is passed over.
    """
    found = work.restore(store, warn) if store else None
    work, piece = found or work.begin()
    if store and not found:
        store.create()
        store.write(piece.index, piece.state, piece.arrays)
    yield piece
    while not piece.finished:
        work, piece = work.advance(piece)
        if store:
            store.write(piece.index, piece.state, piece.arrays)
        yield piece


def run_all(
    work: Work, store: Store | None, warn: Callable[[str], None], report: Callable[[Piece], None]
) -> tuple[list[dict[str, np.ndarray]], Piece]:
    """Run work to its end and return the arrays of all its pieces, with those stored earlier, and the last piece.

    Args:
        work: what to run.
        store: as for `pieces_of`.
        warn: as for `pieces_of`.
        report: told of each piece.
    """
    kept, last = [], None
    for last in pieces_of(work, store, warn):
        report(last)
        if store is None:
            kept.append(last.arrays)
    assert last is not None  # there is always a first piece
    return store.read() if store else kept, last
