"""What a command tells: of the wait for its first step, the seconds that it took, and mistakes found before it."""

import io
import json
import re
import subprocess
import sys
import time

import pytest

from simkit.cli import progress
from simkit.cli.main import main
from simkit.cli.progress import Progress
from simkit.core.compilation import covered
from simkit.scenario.catalog import find_scenario


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def short_waits(monkeypatch):
    monkeypatch.setattr(progress, "TICK", 0.01)
    monkeypatch.setattr(progress, "LONG_WAIT", 0.01)


def waited_for(told, words):
    """Wait until a stream holds words, for at most ten seconds."""
    end = time.perf_counter() + 10
    while words not in told.getvalue() and time.perf_counter() < end:
        time.sleep(0.005)
    return words in told.getvalue()


def test_a_terminal_shows_the_running_seconds_of_the_first_wait(monkeypatch, short_waits):
    monkeypatch.setattr(sys, "stderr", told := Terminal())
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with Progress("flow") as shown:
        now[0] = 64.0
        assert waited_for(told, "flow  compiling (first time only)  1:04")
        shown.update(0.1)
        time.sleep(0.05)
        assert told.getvalue().rpartition("\r")[2].endswith(" 10 %")


def test_a_log_tells_of_a_long_first_wait_once_at_its_begin_and_once_at_its_end(monkeypatch, short_waits):
    monkeypatch.setattr(sys, "stderr", told := io.StringIO())
    with Progress("flow") as shown:
        assert waited_for(told, "flow  compiling (first time only)\n")
        time.sleep(0.05)
        shown.update(0.0)
        shown.update(0.1)
    begin, end = told.getvalue().splitlines()
    assert begin == "flow  compiling (first time only)"
    assert end.startswith("flow  compiling (first time only): 0.") and end.endswith(" s")


def test_seconds_of_nested_and_overlapping_compilations_count_once():
    assert covered([(0.0, 4.0), (1.0, 2.0), (3.0, 5.0), (7.0, 9.0)], end=8.0) == 6.0


def test_the_end_of_a_run_tells_the_seconds_of_compiling_running_and_drawing(tmp_path, capsys):
    words = ["run", "bouncing_ball", "--set", "steps=60", "--format", "png", "-o", str(tmp_path / "run")]
    began = time.monotonic()
    assert main(words) == 0
    took, line = time.monotonic() - began, capsys.readouterr().err.splitlines()[-1]
    seconds = {part.split()[0]: float(part.split()[1]) for part in line.split(", ")}
    assert [*seconds] == ["compiled", "ran", "drew"] and 0 < sum(seconds.values()) < took + 0.2
    assert re.search(r"ran \S+ s on cpu \S.*, drew", line)
    assert main([*words, "--overwrite", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    told = report["seconds"]
    assert [*told] == ["compiled", "ran", "drew"] and min(told.values()) > 0
    assert report["devices"] == json.loads((tmp_path / "run" / "manifest.json").read_text())["devices"]


def test_a_derivative_tells_the_seconds_of_compiling_and_running(capsys):
    assert main(["grad", "bouncing_ball", "--set", "steps=60", "--wrt", "gravity", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["seconds"]
    assert [*told] == ["compiled", "ran"] and told["compiled"] > told["ran"]


def test_a_command_that_computes_nothing_tells_no_seconds(capsys):
    assert main(["list", "--json"]) == 0
    assert "seconds" not in json.loads(capsys.readouterr().out)


def test_further_mistakes_in_an_option_are_told_beside_the_first(capsys):
    options = "--method", "adam:learning_rate=x,speed=2"
    assert main(["optimize", "bouncing_ball", "--wrt", "gravity", *options]) == 2
    line = capsys.readouterr().err
    assert "learning_rate" in line and "speed" in line and "simkit check" not in line and line.count("\n") == 1


def test_a_suggestion_is_data_exactly_where_the_message_has_one(capsys):
    assert main(["grad", "bouncing_ball", "--wrt", "gravty", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["did_you_mean"] == "gravity"
    assert main(["optimize", "bouncing_ball", "--wrt", "gravity", "--method", "adam:learning_rate=x", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["did_you_mean"] is None and error["remedy"] is None and "did you mean" not in error["message"]


def test_settings_of_pictures_that_cannot_be_drawn_are_refused_before_the_run(tmp_path, capsys):
    for name, option, words in (
        ("channel_flow", "render.window={ x = [0, 99] }", "is not within the field; choose from 0 to"),
        ("bouncing_ball", "render.frames_per_second=1e9", "render.frames_per_second"),
    ):
        assert main(["run", written_with(tmp_path, name, option), "-o", str(tmp_path / "run")]) == 2
        line = capsys.readouterr().err
        assert words in line and line.count("\n") == 1 and not (tmp_path / "run").exists()


def written_with(folder, name, option):
    """Return the path of a shipped scenario with another key of its table ``[render]``."""
    key, _, value = option.removeprefix("render.").partition("=")
    text = find_scenario(name).source.read_text()
    lines = [line for line in text.splitlines() if not line.startswith(f"{key} =")]
    lines.insert(lines.index("[render]") + 1, f"{key} = {value}")
    (folder / f"{name}.toml").write_text("\n".join(lines))
    return str(folder / f"{name}.toml")


def test_an_output_that_cannot_be_written_ends_with_one_line_and_exit_code_1():
    command = [sys.executable, "-m", "simkit", "list"]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "simkit: cannot write the output: No space left on device\n"
