"""Ctrl-C and SIGTERM: resumable work stops in order and says how to go on."""

import shlex
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Shells and cluster managers send a signal to the process and to its group: that is one stop, not two.
SAME_STOP = 5.0


class Terminated(KeyboardInterrupt):
    """SIGTERM was received."""


def word_of(interrupt: KeyboardInterrupt) -> str:
    """Return what happened in a word."""
    return "terminated" if isinstance(interrupt, Terminated) else "interrupted"


@contextmanager
def resumable(output: Path) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into one line that says how to go on: what was finished is on disk already."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        on_disk, word = (output / "manifest.json").exists(), word_of(interrupt)
        raise type(interrupt)(
            f"{word}; go on with: simkit resume {shlex.quote(str(output))}" if on_disk else word
        ) from None


class Stops:
    """A context in which SIGTERM raises `Terminated` as Ctrl-C raises KeyboardInterrupt, each of them once.

    Args:
        last: whether the process ends after it; signals that come after the first are then ignored to its end.
    """

    def __init__(self, *, last: bool) -> None:
        self._last, self._first, self._over = last, -SAME_STOP, False
        self._former: dict[int, Any] = {}

    def __enter__(self) -> "Stops":
        # Only the main thread handles signals; what the parent process had ignored stays so.
        if threading.current_thread() is threading.main_thread():
            for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
                if signal.getsignal(number) == usual:
                    self._former[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *unused: object) -> None:
        if not (self._last and self._over):
            for number, handler in self._former.items():
                signal.signal(number, handler)

    def finish(self) -> None:
        """Ignore what is received from now on, since the work is stopping already."""
        self._over = True

    def _receive(self, number: int, frame: object) -> None:
        now = time.monotonic()
        if self._over or now - self._first < SAME_STOP:
            return
        self._first = now
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt
