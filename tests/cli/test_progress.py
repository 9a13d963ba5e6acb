"""Progress display: a bar on a terminal, a plain line every few seconds elsewhere, never on standard output."""

import io
import json
import re
import sys

import pytest

from simkit.cli import progress
from simkit.cli.progress import Progress
from tests.tables import every


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock set by the test."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_terminal_shows_a_bar_with_rate_and_time_left(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress("flow", 1000) as shown:
        for second, fraction in enumerate((0.0, 0.1, 0.3, 0.5)):
            clock[0] = 10.0 * second
            shown.update(fraction, "words")
        text = sys.stderr.getvalue()
        last = text.rpartition("\r")[2]
        # 40 % of 1000 steps in 20 s since the first were done; 50 % are left.
        assert "[##############..............]" in last
        assert " 50 %  20 steps/s  0:25 left  words" in last
        assert "\n" not in text
    assert sys.stderr.getvalue().endswith("\r\033[K")  # the line is erased


def test_plain_lines_are_printed_every_few_seconds(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress("flow", 1000) as shown:
        for second in range(21):
            clock[0] = float(second)
            shown.update(second / 20)
    lines = sys.stderr.getvalue().splitlines()
    assert len(lines) == 4  # one per five seconds
    assert lines[-1] == "flow  100 %  50 steps/s  0:00 left"
    assert not re.search(r"[\r\033]", sys.stderr.getvalue())


def test_other_programs_get_an_object_a_line_at_most_one_a_second(clock, monkeypatch):
    monkeypatch.setenv("SIMKIT_PROGRESS", "json")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress("flow", 1000) as shown:
        for step in range(9):
            clock[0] = step / 4
            shown.update(step / 8)
    lines = [json.loads(line) for line in sys.stderr.getvalue().splitlines()]
    assert [line["fraction"] for line in lines] == [0, 0.5, 1]
    assert lines[0] == {"name": "flow", "fraction": 0, "words": "compiling (first time only)"}


def test_nothing_is_shown_where_that_is_wanted(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(Progress, "is_quiet", True)
    with Progress("flow", 1000) as shown:
        shown.update(0.5)
    assert not sys.stderr.getvalue()


def test_the_last_plain_line_is_that_of_the_end(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress("fit", 50, "iterations", may_end_early=True) as shown:
        for second in range(9):
            clock[0] = float(second)
            shown.update(second / 50, f"loss {10 - second}")
    lines = sys.stderr.getvalue().splitlines()
    assert lines == [
        "fit  5 of at most 50 iterations  1.0 iterations/s  at most 0:45 left  loss 5",
        "fit  8 of at most 50 iterations  1.0 iterations/s  loss 2",
    ]


def test_short_work_is_quiet(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress("flow") as shown:
        shown.update(0.5)
        shown.update(1.0)
    assert sys.stderr.getvalue() == ""


def test_hours_are_shown(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress("flow") as shown:
        shown.update(0.1)
        clock[0] = 3600.0
        shown.update(0.2)
        assert "8:00:00 left" in sys.stderr.getvalue()


@every("columns", [20, 40, 80, 200])
def test_a_line_never_wraps(clock, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress("a_scenario_with_a_long_name", 22_000) as shown:
        for second in range(1, 4):
            clock[0] = float(second)
            shown.update(second / 10, "loss 0.000396755, and more that is worth knowing")
        lines = re.split(r"\r(?:\033\[K)?", sys.stderr.getvalue())
        assert max(map(len, lines)) < columns and "\n" not in sys.stderr.getvalue()
    assert columns < 200 or lines[-1].startswith("[####")


def test_slow_work_that_may_end_early_shows_the_time_of_a_step_and_the_longest_time_left(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress("flow", 50, "iterations", may_end_early=True) as shown:
        for iteration in (1, 2, 3):
            clock[0] += 30.0
            shown.update(iteration / 50)
    assert sys.stderr.getvalue().splitlines()[-1] == (
        "flow  3 of at most 50 iterations  30.0 s/iteration  at most 23:30 left"
    )
