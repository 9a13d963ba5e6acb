"""Progress of long work: a bar with rate and time left on a terminal, a plain line now and then elsewhere."""

import shutil
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
        unit: what steps are called.
        doing: what is done before the first step.
        may_end_early: whether the work may be done before all steps, so that the time left is the longest there may be.
        terminal: whether lines may be overwritten; ``None`` asks standard error.
    """

    def __init__(
        self,
        name: str,
        steps: int | None = None,
        unit: str = "steps",
        *,
        doing: str = "compiling",
        may_end_early: bool = False,
        terminal: bool | None = None,
    ) -> None:
        self._name, self._steps, self._unit, self._doing = name, steps, unit, doing
        self._longest = "at most " if may_end_early else ""
        self._terminal = sys.stderr.isatty() if terminal is None else terminal
        self._shown = 0.0

    def __enter__(self) -> Self:
        self._start: tuple[float, float] | None = None
        self._shown = time.monotonic()
        if self._terminal:
            self._draw(f"\r{_cut(f'{self._name}  {self._doing}')}")
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
        done = f"{100 * fraction:3.0f} %"
        if self._longest and self._steps:
            done = f"{round(self._steps * fraction)} of at most {self._steps} {self._unit}"
        line = f"{self._name}  {done}{self._speed(now, fraction)}{'  ' + words if words else ''}"
        if self._terminal:
            # The bar gives way to words; a line that is too long all the same would leave copies of itself behind.
            room = min(BAR, _columns() - len(line) - 4)
            filled = int(room * fraction)
            bar = f"[{'#' * filled}{'.' * (room - filled)}] " if room >= BAR // 4 else ""
            self._draw(f"\r\033[K{_cut(bar + line)}")
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
        rate = f"  {_rate(self._steps * done / elapsed, self._unit)}" if self._steps else ""
        return f"{rate}  {self._longest}{clock(left)} left"

    @staticmethod
    def _draw(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _rate(rate: float, unit: str) -> str:
    """Return a rate with two digits or more, of slow work as the time for one step."""
    if rate < 1:
        return f"{1 / rate:,.1f} s/{unit.removesuffix('s')}"
    return f"{rate:,.0f} {unit}/s" if rate >= 10 else f"{rate:.1f} {unit}/s"


def _columns() -> int:
    return shutil.get_terminal_size().columns


def _cut(line: str) -> str:
    """Return a line that fits the terminal; one as wide as it would wrap on some."""
    room = _columns() - 1
    return line if len(line) <= room else f"{line[: max(room - 3, 0)]}..."


def clock(seconds: float) -> str:
    """Return a time as on a clock, such as ``"1:05:09"``.

    Args:
        seconds: at least 0.
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
