"""`simkit check`: all mistakes of a scenario file at once, without running it."""

import json

import pytest

from simkit.cli.main import main
from tests.tables import every

FILE = """
name = "throw"
title = "A throw"
summary = "A ball is thrown."
simulation = "rigid.bouncing_ball"

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


def test_changed_values_are_checked_like_those_of_the_file(check):
    assert check(words=["--set", "gravity=3", "--set", "steps=4"])[0] == 0
    code, told = check(words=["--set", "gravty=3"])
    assert code == 2 and "--set gravty is not a key of throw; did you mean 'gravity'?" in told.err
    code, told = check(words=["--set", "steps=11"])
    assert code == 2 and "steps = 11 is not a multiple of every = 2" in told.err


def test_mistakes_of_every_part_are_reported_together(check):
    code, told = check(
        ('title = "A throw"', "colour = 3\ntitle = 3"),
        ("gravity = 9.8", "gravty = 9.8\ntime_step = { bounds = [2.0, 1.0] }"),
        ("every = 2", "every = 3"),
        ('quantity = "height"', 'quantity = "hight"\ngoal = "maximise"'),
        ('quantity = "velocity"', 'quantity = "velocty"\nframes_per_second = -1'),
    )
    assert code == 2 and told.out == ""
    begins = [line.removeprefix("simkit: throw.toml: ").split(" ")[0].rstrip(":") for line in told.err.splitlines()]
    assert begins == [
        *("colour", "title", "params.time_step.bounds", "run.steps"),
        *("objectives.end.goal", "render.frames_per_second"),
        *("params.gravty", "objectives.end.quantity", "render.quantity"),
    ]


def test_a_mistake_of_the_run_is_not_one_of_a_validation(check):
    validation = """
[[validation]]
quantity = "height"
expected = 1.0
tolerance = 9.0
source = "none"
set = { gravity = 1.0 }
"""
    code, told = check(('quantity = "velocity"', f'quantity = "velocity"\n{validation}'), ("every = 2", "every = 3"))
    assert code == 2 and len(told.err.splitlines()) == 1 and "run.steps" in told.err


def test_an_objective_with_the_name_of_another_diagnostic_is_refused(check):
    code, told = check(("[objectives.end]", "[objectives.time]"))
    assert code == 2
    assert "objectives.time has the name of a diagnostic, and is of another, 'height'; choose another name" in told.err


FOLLOWED = {
    "a wrong expression of an objective": (
        ('quantity = "height"', 'expression = "time_mean(height, aftr=2)"'),
        "objectives.end.expression: column 1",
    ),
    "a wrong quantity in an objective": (
        ('quantity = "height"', 'expression = "time_mean(rise)"\n\n[quantities.rise]\ndoc = "r"\nexpression = "hight"'),
        "quantities.rise.expression: column 1 of '>>>hight': 'hight' is not known here; did you mean 'height'?",
    ),
    "a wrong quantity in another, a condition and a picture": (
        (
            'quantity = "velocity"',
            'quantity = "twice"\n\n[quantities]\nrise = { doc = "r", expression = "hight" }\n'
            'twice = { doc = "t", expression = "2*rise" }',
        ),
        "quantities.rise.expression: column 1 of '>>>hight'",
    ),
}


@every("case", list(FOLLOWED))
def test_a_mistake_adds_no_line_about_what_follows_from_it(check, case):
    change, message = FOLLOWED[case]
    stop = [("every = 2", 'every = 2\nstop = "rise > 3"')] if "condition" in case else []
    code, told = check(change, *stop)
    assert code == 2 and len(told.err.splitlines()) == 1, told.err
    assert message in told.err


def test_mistakes_are_printed_as_json(check):
    code, told = check(
        ("gravity = 9.8", "gravity = -9.8"), ("[objectives", "[config]\nmass = 1\n\n[objectives"), words=["--json"]
    )
    assert code == 2
    first, second = json.loads(told.out)["mistakes"]
    assert first["part"] == "config" and first["key"] == "config.mass"
    assert first["remedy"] == {"action": "remove", "value": None} and "time_step" not in first["allowed"]
    assert second["part"] == "params" and "gravity.default = -9.8 is not positive" in second["message"]


@every(
    "change, phrase",
    [
        (("[run]", "[run"), "not valid TOML"),
        (("rigid.bouncing_ball", "rigid.bouncin_ball"), "did you mean 'rigid.bouncing_ball'?"),
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
    assert "run.steps: steps = 10 is" in line
    assert line.endswith(f"(and 1 more; simkit check {tmp_path}/throw.toml lists all)")


def test_a_mistake_in_a_key_of_any_length_is_a_short_line(check):
    _, told = check(("[objectives", f"[config]\nmass = {{ {'x' * 100_000} = 1 }}\n\n[objectives"))
    assert len(told.err) < 300 and "xxx...xxx is not a name; use up to 64 letters" in told.err


def test_the_parameter_of_a_validated_derivative_is_checked(check):
    validation = """
[[validation]]
derivative = "{}"
objective = "end"
expected = 1.0
tolerance = 0.1
source = "none"
"""
    assert check(("[render]", validation.format("gravity") + "\n[render]"))[0] == 0
    code, told = check(("[render]", validation.format("gravty") + "\n[render]"))
    assert code == 2 and "validation[0].derivative = 'gravty' is not a parameter" in told.err
    assert "did you mean 'gravity'?" in told.err and told.err.count("\n") == 1
