"""Signals Ctrl-C and SIGTERM: resumable work stops in order and names the command that resumes it."""

import shlex
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Shells and cluster managers send a signal to the process and to its group; within this time it is one stop, in s.
SAME_STOP = 5.0


class Terminated(KeyboardInterrupt):
    """SIGTERM was received."""


def word_of(interrupt: KeyboardInterrupt) -> str:
    """Return ``"terminated"`` or ``"interrupted"``."""
    return "terminated" if isinstance(interrupt, Terminated) else "interrupted"


@contextmanager
def resumable(output: Path) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into one line with the command that resumes from the stored segments."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        on_disk, word = (output / "manifest.json").exists(), word_of(interrupt)
        raise type(interrupt)(
            f"{word}; resume with: simkit resume {shlex.quote(str(output))}" if on_disk else word
        ) from None


class Stops:
    """Context manager in which SIGTERM raises `Terminated`, like Ctrl-C KeyboardInterrupt, each once.

    Args:
        last: whether the process ends after it; signals after the first are then ignored until its end.
    """

    def __init__(self, *, last: bool) -> None:
        self._last, self._first, self._over = last, -SAME_STOP, False
        self._former: dict[int, Any] = {}

    def __enter__(self) -> "Stops":
        # Only the main thread handles signals; signals ignored by the parent process stay ignored.
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
        """Ignore later signals, since the work is already stopping."""
        self._over = True

    def _receive(self, number: int, frame: object) -> None:
        now = time.monotonic()
        if self._over or now - self._first < SAME_STOP:
            return
        self._first = now
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt
