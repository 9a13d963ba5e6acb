"""`simkit check`: all mistakes of a scenario file at once, without running it."""

import json

import pytest

from simkit.cli.main import main

FILE = """
name = "throw"
title = "A throw"
summary = "A ball is thrown."
simulation = "rigid.projectile"

[params]
gravity = 9.8

[run]
steps = 10
every = 2

[objectives.end]
doc = "height at the end"
quantity = "height"

[render]
view = "bodies"
quantity = "velocity"
"""


@pytest.fixture
def check(tmp_path, capsys):
    def checked(*changes, words=()):
        text = FILE
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "throw.toml"
        path.write_text(text)
        code = main(["check", str(path), *words])
        return code, capsys.readouterr()

    return checked


def test_a_valid_file_is_reported_as_valid(check):
    code, told = check()
    assert code == 0 and told.err == "" and told.out.startswith("throw: no mistake found; run it with: simkit run ")


def test_mistakes_of_every_part_are_reported_together(check):
    code, told = check(
        ('title = "A throw"', "colour = 3"),
        ("gravity = 9.8", "gravty = 9.8\ntime_step = { bounds = [2.0, 1.0] }"),
        ("every = 2", "every = 3"),
        ('quantity = "height"', 'quantity = "hight"\ngoal = "maximise"'),
        ('quantity = "velocity"', 'quantity = "velocty"\nframes_per_second = -1'),
    )
    assert code == 2 and told.out == ""
    begins = [line.removeprefix("simkit: throw.toml: ").split(" ")[0] for line in told.err.splitlines()]
    assert begins == [
        *("colour", "title", "params.time_step.bounds", "run.steps"),
        *("objectives.end.goal", "render.frames_per_second"),
        *("params.gravty", "objectives.end.quantity", "render.quantity"),
    ]


def test_mistakes_are_printed_as_json(check):
    code, told = check(
        ("gravity = 9.8", "gravity = -9.8"), ("[objectives", "[config]\nmass = 1\n\n[objectives"), words=["--json"]
    )
    assert code == 2
    (mistake,) = json.loads(told.out)["mistakes"]
    assert mistake["part"] == "config" and mistake["key"] == "config.mass"
    assert mistake["message"].endswith(mistake["remedy"])


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (("[run]", "[run"), "not valid TOML"),
        (("rigid.projectile", "rigid.projectle"), "did you mean 'rigid.projectile'?"),
        (("gravity = 9.8", "time_step = -1.0"), "params.time_step"),
    ],
)
def test_a_mistake_that_hides_others_is_reported_alone(check, change, phrase):
    code, told = check(change)
    assert code == 2 and len(told.err.splitlines()) == 1 and phrase in told.err


def test_other_verbs_report_the_first_mistake_and_the_number_of_others(check, tmp_path, capsys):
    check(("every = 2", "every = 3"), ('view = "bodies"', 'view = "body"'))
    assert main(["run", str(tmp_path / "throw.toml")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "run.steps = 10" in line and line.endswith("(and 1 more; simkit check FILE lists all)")


def test_a_shipped_scenario_is_checked_by_its_name(capsys):
    assert main(["check", "projectile"]) == 0
    assert main(["check", "projectle"]) == 2
    assert "did you mean 'projectile'?" in capsys.readouterr().err


def test_an_unknown_color_map_is_reported_before_a_run(check, tmp_path, capsys):
    mistake = ('quantity = "velocity"', 'quantity = "velocity"\ncolormap = "infernno"')
    code, (_, told) = check(mistake)
    assert code == 2 and "throw.toml: render.colormap = 'infernno' is unknown; did you mean 'inferno'" in told
    assert main(["run", str(tmp_path / "throw.toml"), "--output", str(tmp_path / "run")]) == 2
    assert "render.colormap" in capsys.readouterr().err and not (tmp_path / "run").exists()
