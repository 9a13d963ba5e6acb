"""Errors name Python arguments, which the command line replaces by its options."""

import pytest

import simkit
from simkit.cli.main import main
from simkit.cli.output import _FLAGS, with_flags
from tests.every import every


@every("argument", _FLAGS)
def test_arguments_become_options_and_nothing_else_does(argument):
    assert with_flags(f"a; pass {argument} to go on") == f"a; pass {_FLAGS[argument]} to go on"
    assert with_flags(f"({argument})") == f"({_FLAGS[argument]})"
    for kept in (f"no_{argument} there", f"./{argument}s/run", f"x.{argument}1"):
        assert with_flags(kept) == kept


def test_a_mistake_is_reported_for_python_and_for_the_command_line(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(simkit.UserError, match=r"is not a run directory; choose another with output=$"):
        simkit.run("projectile", output=tmp_path / "run")
    assert main(["run", "projectile", "--output", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err.endswith("is not a run directory; choose another with --output\n")
