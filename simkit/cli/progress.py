"""Progress display: a bar that vanishes, on a terminal or in a notebook; plain lines, seconds apart, in a log."""

import contextlib
import html
import json
import os
import shutil
import sys
import threading
import time
from typing import Any, ClassVar, Literal, Self

from simkit.core.compilation import compilations, covered
from simkit.jobs.reporting import attached_to

BAR = 28
# Seconds between plain lines, which are written to logs; and of a wait before the first step that is worth a line.
PLAIN_INTERVAL, LONG_WAIT = 5.0, 10.0
# Seconds between two displays of the time that has passed before the first step.
TICK = 1.0
# Variable of the environment: with the value ``json``, progress is a line of JSON each, for other programs.
AS_JSON = "SIMKIT_PROGRESS"
# Seconds of work that a notebook shows no progress of, and between two displays of it in a notebook.
SHORT, NOTEBOOK_INTERVAL = 0.5, 0.1
SPENT: dict[str, float] = {}
"""Seconds of this command by phase, ``compiled``, ``ran`` and ``drew``; empty for one that has computed nothing."""
DEVICES: list[str] = []
"""`simkit.storage.manifest.devices` on which this command ran."""


def spent_in_words() -> str:
    """Return the seconds of this command by phase, such as ``"compiled 41 s, ran 3 s on gpu NVIDIA L4, drew 9 s"``."""
    from simkit.storage.manifest import without_numbers

    places = {"ran": f" on {', '.join(without_numbers(DEVICES))}"} if DEVICES else {}
    return ", ".join(f"{phase} {_seconds(seconds)}{places.get(phase, '')}" for phase, seconds in SPENT.items())


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"


class Cell:
    """A line with a bar below the cell of a notebook that is running, which vanishes when it is closed."""

    def __init__(self) -> None:
        self._began = self._shown = time.monotonic()
        self._handle: Any = None

    def show(self, line: str, fraction: float | None = None) -> None:
        """Show a line, of work that has taken longer than `SHORT`, at most every `NOTEBOOK_INTERVAL`.

        Args:
            line: its text.
            fraction: fraction done, from 0 to 1; ``None`` if it is not known yet.
        """
        now = time.monotonic()
        if now - self._began < SHORT or (self._handle and now - self._shown < NOTEBOOK_INTERVAL):
            return
        value = "" if fraction is None else f' value="{fraction:.4f}"'
        text = (
            f"<progress{value} style='width:12em;vertical-align:middle'></progress> <small>{html.escape(line)}</small>"
        )
        self._shown = now
        self._publish({"text/plain": line, "text/html": text})

    def close(self) -> None:
        """Remove the line."""
        if self._handle:
            self._publish({"text/plain": "", "text/html": ""})

    def _publish(self, shown: dict[str, str]) -> None:
        from IPython.display import DisplayHandle

        is_new, self._handle = self._handle is None, self._handle or DisplayHandle()
        (self._handle.display if is_new else self._handle.update)(shown, raw=True)


class Progress:
    """Context manager that shows the progress of long work on standard error, or below the cell of a notebook.

    Args:
        name: name of the work.
        steps: total number of steps, for the rate; ``None`` shows no rate.
        unit: name of a step, in the plural.
        doing: activity before the first step, shown with the seconds that it takes.
        may_end_early: whether the work may end before its last step, so that the time left is an upper bound.
        place: where lines are shown; ``None`` tests it, see `simkit.jobs.reporting.attached_to`.
        phase: how its seconds are counted in `SPENT`: ``"ran"`` without those of compiling, which are counted apart;
            ``None`` if not at all.
    """

    is_quiet: ClassVar[bool] = False
    """Whether no progress is shown, as by ``--quiet``."""

    def __init__(
        self,
        name: str,
        steps: int | None = None,
        unit: str = "steps",
        *,
        doing: str = "compiling (first time only)",
        may_end_early: bool = False,
        place: Literal["notebook", "terminal", "log"] | None = None,
        phase: Literal["ran", "drew"] | None = None,
    ) -> None:
        self._name, self._steps, self._unit, self._doing = name, steps, unit, doing
        self._longest = "at most " if may_end_early else ""
        self._is_machine = os.environ.get(AS_JSON) == "json"
        place = "log" if self._is_machine else place or attached_to()
        self._terminal, self._cell = place == "terminal", Cell() if place == "notebook" else None
        self._shown = 0.0
        self._has_lines = False
        self._skipped: tuple[float, float, str] | None = None
        self._phase = phase
        # Of the wait before the first step: whether it is over, a lock of the display, and whether a log tells of it.
        self._waited, self._display, self._told = threading.Event(), threading.Lock(), False

    def __enter__(self) -> Self:
        self._start: tuple[float, float] | None = None
        self._shown = self._began = time.monotonic()
        self._first: float | None = None  # time of the first update
        if self._phase:
            self._compiled = len(compilations())
        if self._terminal:
            self._draw(f"\r{_cut(f'{self._name}  {self._doing}')}")
        if self._is_machine:
            self._tell(0.0, self._doing)
        else:
            threading.Thread(target=self._wait, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *unused: object) -> None:
        self._end_wait(is_told=kind is None)  # an error is told in one line of its own
        self._count()
        if self._cell:
            self._cell.close()
        elif self._terminal:
            self._draw("\r\033[K")
        elif self._has_lines and self._skipped is not None:
            # The last line would else be that of an earlier time.
            now, fraction, words = self._skipped
            self._draw(self._line(now, fraction, words, is_last=True) + "\n")

    def update(self, fraction: float, words: str = "") -> None:
        """Show the progress.

        Args:
            fraction: fraction done, from 0 to 1.
            words: further text at the end of the line.
        """
        now = time.monotonic()
        if self._first is None:
            self._first = now
            self._end_wait()
        if self._start is None and fraction > 0:
            # Rate and time left are measured from the first update, to exclude compilation.
            self._start = (now, fraction)
        if self._is_machine:
            if now - self._shown >= TICK:
                self._tell(fraction, words or self._unit)
                self._shown = now
            return
        if self._cell:
            self._cell.show(self._line(now, fraction, words), fraction)
            return
        if not self._terminal and now - self._shown < PLAIN_INTERVAL:
            self._skipped = now, fraction, words
            return
        line = self._line(now, fraction, words)
        if self._terminal:
            # The bar shrinks to make room for the text; a line that wraps could not be overwritten.
            room = min(BAR, _columns() - len(line) - 4)
            filled = int(room * fraction)
            bar = f"[{'#' * filled}{'.' * (room - filled)}] " if room >= BAR // 4 else ""
            self._draw(f"\r\033[K{_cut(bar + line)}")
        else:
            self._draw(line + "\n")
            self._has_lines, self._skipped = True, None
        self._shown = now

    def _tell(self, fraction: float, words: str) -> None:
        self._draw(json.dumps({"name": self._name, "fraction": fraction, "words": words}) + "\n")

    def _wait(self) -> None:
        """Show, in a thread, how long the first step takes: every second on a terminal, at the begin in a log."""
        with contextlib.suppress(OSError, ValueError):  # standard error is closed
            tick = SHORT if self._cell else TICK if self._terminal else LONG_WAIT
            while not self._waited.wait(tick):
                with self._display:
                    if self._waited.is_set():
                        return
                    text = f"{self._name}  {self._doing}"
                    if self._cell:
                        self._cell.show(f"{text}  {clock(time.monotonic() - self._began)}")
                        continue
                    if not self._terminal:
                        self._draw(f"{text}\n")
                        self._told = True
                        return
                    self._draw(f"\r\033[K{_cut(f'{text}  {clock(time.monotonic() - self._began)}')}")

    def _end_wait(self, *, is_told: bool = True) -> None:
        with self._display:
            self._waited.set()
        if self._told and is_told:
            self._draw(f"{self._name}  {self._doing}: {_seconds(time.monotonic() - self._began)}\n")
            self._told = False

    def _count(self) -> None:
        """Add the seconds since the begin to `SPENT`; what is prepared before the first step counts as compiling."""
        if self._phase is None:
            return
        now = time.monotonic()
        seconds = now - self._began
        if self._phase == "ran":
            from simkit.storage.manifest import devices

            compiling = compilations()[self._compiled :]
            ready = self._first or min((first for first, _ in compiling), default=self._began)
            compiled = covered([(self._began, ready), *compiling], now)
            DEVICES[:] = devices()
            SPENT["compiled"], seconds = SPENT.get("compiled", 0.0) + compiled, seconds - compiled
        SPENT[self._phase] = SPENT.get(self._phase, 0.0) + seconds

    def _line(self, now: float, fraction: float, words: str, is_last: bool = False) -> str:
        done = f"{100 * fraction:3.0f} %"
        if self._longest and self._steps:
            done = f"{round(self._steps * fraction)} of at most {self._steps} {self._unit}"
        return f"{self._name}  {done}{self._speed(now, fraction, is_last)}{'  ' + words if words else ''}"

    def _speed(self, now: float, fraction: float, is_last: bool) -> str:
        if self._start is None:
            return ""
        began, first = self._start
        elapsed, done = now - began, fraction - first
        if elapsed <= 0 or done <= 0:
            return ""
        left = elapsed * (1 - fraction) / done
        rate = f"  {_rate(self._steps * done / elapsed, self._unit)}" if self._steps else ""
        return rate if is_last else f"{rate}  {self._longest}{clock(left)} left"

    @classmethod
    def _draw(cls, text: str) -> None:
        if cls.is_quiet:
            return
        sys.stderr.write(text)
        sys.stderr.flush()


def _rate(rate: float, unit: str) -> str:
    """Return a rate with at least two digits; below one step per second as the time per step."""
    if rate < 1:
        return f"{1 / rate:,.1f} s/{unit.removesuffix('s')}"
    return f"{rate:,.0f} {unit}/s" if rate >= 10 else f"{rate:.1f} {unit}/s"


def _columns() -> int:
    return shutil.get_terminal_size().columns


def _cut(line: str) -> str:
    """Return a line cut to one column less than the terminal, since a full line wraps on some."""
    room = _columns() - 1
    return line if len(line) <= room else f"{line[: max(room - 3, 0)]}..."


def clock(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds, such as ``"1:05:09"``.

    Args:
        seconds: duration, at least 0.
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
