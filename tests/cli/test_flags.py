"""Errors name Python arguments, which the command line replaces by its options."""

import ast
import re
from pathlib import Path

import pytest

import simkit
from simkit.cli.flags import _FLAGS, with_flags
from simkit.cli.main import main

HOME = Path(simkit.__file__).parent
# These parse the command line, or write programs with their own command line.
OF_THE_COMMAND_LINE = ("cli/", "scenario/overrides.py", "scenario/over.py", "export/programs/stand_alone.py")


def texts(tree):
    """Return the string literals of a module except docstrings, each with its line."""
    bodies = [node for node in ast.walk(tree) if hasattr(node, "body") and isinstance(node.body, list)]
    documents = {
        id(part.value) for node in bodies for part in node.body if isinstance(part, ast.Expr)
    }  # docstrings, and those of attributes
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents
    ]


def test_no_layer_below_the_command_line_names_its_options():
    found = []
    for file in sorted(HOME.rglob("*.py")):
        name = file.relative_to(HOME).as_posix()
        if not name.startswith(OF_THE_COMMAND_LINE):
            lines = texts(ast.parse(file.read_text()))
            found += [f"{name}:{line}: {text}" for line, text in lines if re.search(r"(^|[\s(])--[a-z]", text)]
    assert not found


@pytest.mark.parametrize("argument", _FLAGS)
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
