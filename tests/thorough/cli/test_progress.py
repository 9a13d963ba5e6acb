"""Progress display of whole commands, in processes with a terminal."""

import os
import pty
import re
import subprocess
import sys

from simkit.export.pictures import draw
from simkit.jobs.job import begin
from simkit.jobs.runs import Run
from simkit.scenario.made_in_python import load


def test_drawing_shows_its_progress(tmp_path):
    told = []
    outcome = begin(Run(load("bouncing_ball", {"steps": 8, "every": 1})), None)
    draw(outcome, tmp_path / "a.gif", "gif", (128, 72), report=told.append)
    assert told == sorted(told) and len(set(told)) > 4 and told[-1] == 1


def run_on_terminal(*words):
    """Run ``simkit`` with standard error on a pseudo-terminal and standard output in a pipe."""
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "simkit.cli.main", *words], stdout=subprocess.PIPE, stderr=inner, text=True
    )
    os.close(inner)
    told = b""
    while True:
        try:
            block = os.read(outer, 4096)
        except OSError:  # Linux raises it when the other end is closed
            break
        if not block:
            break
        told += block
    out = process.communicate()[0]
    os.close(outer)
    return process.returncode, out, told.decode()


def test_command_draws_its_bar_on_the_terminal_and_its_result_elsewhere(tmp_path):
    code, out, told = run_on_terminal(
        "run", "bouncing_ball", "--set", "steps=40", "--set", "every=2", "--no-render", "--output", str(tmp_path / "r")
    )
    assert code == 0
    assert "compiling" in told and re.search(r"\[#+\.*\] bouncing_ball  +\d+ %", told)
    # The bar is wiped, and the seconds stand in its place.
    assert re.search(r"\r\x1b\[Kcompiled [\d.]+ s, ran [\d.]+ s[^\r]*\r\n$", told)
    assert "ran all its steps" in out and "\033" not in out and "%" not in out


def test_mistake_on_a_terminal_is_one_line():
    code, out, told = run_on_terminal("run", "bouncing_bal")
    assert (code, out) == (2, "")
    assert told.count("\n") == 1 and "did you mean 'bouncing_ball'" in told
