"""Progress of long work: a bar with rate and time left on a terminal, a plain line now and then elsewhere."""

import sys
import time
from typing import Self

BAR = 28
# Plain lines go to logs: one every few seconds is enough to see that work goes on.
PLAIN_INTERVAL = 5.0


class Progress:
    """A context manager that is told the fraction done.

    Args:
        name: what is running.
        steps: steps in all, for the rate; ``None`` shows none.
        unit: what a step is called.
    """

    def __init__(self, name: str, steps: int | None = None, unit: str = "steps") -> None:
        self._name, self._steps, self._unit = name, steps, unit
        self._terminal = sys.stderr.isatty()
        self._shown = 0.0

    def __enter__(self) -> Self:
        self._start: tuple[float, float] | None = None
        self._shown = time.monotonic()
        if self._terminal:
            self._draw(f"\r{self._name}  compiling")
        return self

    def __exit__(self, *unused: object) -> None:
        if self._terminal:
            self._draw("\r\033[K")

    def update(self, fraction: float, words: str = "") -> None:
        """Show how far the work is.

        Args:
            fraction: done, from 0 to 1.
            words: anything worth knowing now.
        """
        now = time.monotonic()
        if self._start is None and fraction > 0:
            # Rate and time left count from the first work done, so that compilation does not distort them.
            self._start = (now, fraction)
        if not self._terminal and now - self._shown < PLAIN_INTERVAL:
            return
        line = f"{self._name}  {100 * fraction:3.0f} %{self._speed(now, fraction)}{'  ' + words if words else ''}"
        if self._terminal:
            filled = int(BAR * fraction)
            self._draw(f"\r\033[K[{'#' * filled}{'.' * (BAR - filled)}] {line}")
        else:
            self._draw(line + "\n")
        self._shown = now

    def _speed(self, now: float, fraction: float) -> str:
        if self._start is None:
            return ""
        began, first = self._start
        elapsed, done = now - began, fraction - first
        if elapsed <= 0 or done <= 0:
            return ""
        left = elapsed * (1 - fraction) / done
        rate = f"  {self._steps * done / elapsed:,.0f} {self._unit}/s" if self._steps else ""
        return f"{rate}  {_clock(left)} left"

    @staticmethod
    def _draw(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
