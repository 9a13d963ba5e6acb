"""Output at a terminal and elsewhere: lists, parts of a scenario, colors, quiet commands, pages after the work."""

import json
import re
import sys

import pytest

from simkit.cli.main import VERBS, main, verb_of
from simkit.scenario.catalog import list_scenarios

COLOR = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Run the command with a terminal of some columns as standard output and error, and return both."""

    def run(columns, *words):
        with monkeypatch.context() as patched:
            patched.delenv("NO_COLOR", raising=False)
            patched.setenv("TERM", "xterm")
            patched.setenv("COLUMNS", str(columns))
            for name in ("stdout", "stderr"):
                patched.setattr(getattr(sys, name), "isatty", lambda: True, raising=False)
            code = main(list(words))
        return code, *capsys.readouterr()

    return run


def test_scenarios_are_listed_by_domain_in_lines_that_fit_any_terminal(terminal):
    scenarios = list_scenarios()[0]
    for columns in (30, 60, 100):
        out = COLOR.sub("", terminal(columns, "list")[1])
        assert max(map(len, out.splitlines())) <= columns
        assert [line for line in out.splitlines() if line in ("flow", "molecular", "rigid")] == [
            "flow",
            "molecular",
            "rigid",
        ]
        names = [line.split()[0] for line in out.splitlines() if re.match(r"  \w", line)]
        assert names == [scenario.name for scenario in scenarios]


def test_elsewhere_each_scenario_is_one_line_with_its_whole_summary(simkit):
    lines = simkit("list").out.splitlines()[2:]
    assert len(lines) == len(list_scenarios()[0])
    for line, scenario in zip(lines, list_scenarios()[0], strict=True):
        assert line.split()[:2] == [scenario.name, scenario.domain] and line.endswith(scenario.summary)


def test_show_wraps_at_a_terminal(terminal):
    out = COLOR.sub("", terminal(72, "show", "bouncing_ball")[1])
    assert max(len(line) for line in out.splitlines() if not line.startswith("file: ")) <= 72


def test_a_part_of_a_scenario_is_shown_with_what_is_declared_below_it(simkit):
    start = simkit("show", "lennard_jones_fluid", "config.start").out
    assert re.search(r"config\.start\.lattice +face_centered_cubic\n", start)
    assert re.search(r"config\.start\.separation +a number +0\.8 +random: least distance", start)
    shown = json.loads(simkit("show", "channel_flow", "config.axes.y.upper", "--json").out)
    assert shown["part"] == "config.axes.y.upper" and shown["value"]["kind"] == "wall"
    assert "6.5" in simkit("show", "bouncing_ball", "params.target.default").out
    assert simkit("show", "bouncing_ball", "target").out == simkit("show", "bouncing_ball", "params.target").out
    ran = simkit("show", "channel_flow", "config.axs")
    assert ran.code == 2 and ran.line.endswith("config has no part 'axs'; did you mean 'axes'?")


def test_colors_are_for_terminals_without_no_color(terminal, simkit, monkeypatch):
    assert COLOR.search(terminal(80, "list")[1]) and COLOR.search(terminal(80, "show", "nothing")[2])
    assert not COLOR.search(simkit("list").out) and not COLOR.search(simkit("show", "nothing").err)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not COLOR.search(simkit("list").out)


def test_every_verb_has_examples_that_its_help_shows(capsys):
    for name in VERBS:
        examples = verb_of(name).EXAMPLES
        assert len(examples) >= 2 and all(line.startswith(f"simkit {name}") for line in examples)
        with pytest.raises(SystemExit):
            main([name, "--help"])
        out = capsys.readouterr().out
        assert all(f"  {line}\n" in out for line in examples), name
    main([])
    assert verb_of("run").EXAMPLES[0] == "simkit run bouncing_ball" in capsys.readouterr().out


def test_a_part_that_ends_in_a_value_or_has_no_name_is_told(simkit):
    shown = simkit("show", "cartpole", "params.mass").out
    assert "params.mass.cart.default" in shown and "params.mass.pole.default" in shown and "gravity" not in shown
    assert "params.mass.cart.default = 1 has no parts" in simkit("show", "cartpole", "params.mass.cart.default.x").err
    assert "the name of a part is empty" in simkit("show", "cartpole", "").err
