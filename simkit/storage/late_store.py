"""Store of work that may end within a second: what it holds is written at intervals, not after each segment."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from simkit.storage.store import Store

# Seconds between two writes: about as much work as a crash may cost, and a hundred times what writing a segment takes.
INTERVAL = 0.5


class LateStore(Store):
    """A `Store` that keeps segments in memory and writes them at intervals, and in an orderly stop.

    It is a context manager: if the work is left by an exception, what is not yet written is written. Work that ends
    within an interval writes nothing: its result is stored elsewhere. Arguments as for `Store`.
    """

    def __enter__(self) -> "LateStore":
        """Begin the first interval."""
        self._held: list[dict[str, np.ndarray]] = []
        self._unwritten: list[tuple[int, dict[str, np.ndarray]]] = []
        self._state: Any = None
        self._written_at = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is held back, if the work was interrupted."""
        if kind is not None:
            self._flush()

    def create(self) -> None:
        """Do nothing: the folders are created when the first segment is written."""

    def write(self, index: int, state: Any, arrays: dict[str, np.ndarray]) -> None:
        """Hold segment ``index`` and the state at its end, and write what is held if the interval is over.

        Args:
            index: as for `Store.write`.
            state: likewise.
            arrays: likewise.
        """
        self._held.append(arrays)
        self._unwritten.append((index, arrays))
        self._state = state
        if time.monotonic() - self._written_at >= INTERVAL:
            self._flush()

    def restore(
        self, template: Any, warn: Callable[[str], None], *, advance: Callable[[Any], Any] | None = None
    ) -> tuple[int, Any, dict[str, np.ndarray]] | None:
        """Read the newest state from which the work can resume, as `Store.restore`, and the segments before it.

        Args:
            template: as for `Store.restore`.
            warn: likewise.
            advance: likewise.
        """
        found = super().restore(template, warn, advance=advance)
        self._held = super().read() if found else []
        return found

    def discard(self) -> None:
        """Remove all segments and checkpoints."""
        self._held, self._unwritten = [], []
        super().discard()

    def read(self) -> list[dict[str, np.ndarray]]:
        """Return all segments in order."""
        return list(self._held)

    def _flush(self) -> None:
        unwritten, self._unwritten = self._unwritten, []
        if unwritten:
            super().create()
            for index, arrays in unwritten:
                self.write_segment(index, arrays)
            self.write_checkpoint(unwritten[-1][0], self._state)
        self._written_at = time.monotonic()
