"""The pages of the public surface and of the simulations are what docstrings and declarations say."""

import importlib.util
from pathlib import Path

import pytest

from simkit.scenario.registry import FACTORIES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def made():
    """Return a function that loads a program which makes a page."""

    def load(name):
        spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
        assert spec and spec.loader
        program = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(program)
        return program

    return load


def test_the_page_is_made_from_the_docstrings(made):
    program = made("make_api")
    assert program.page() == (DOCS / "api.md").read_text(), "write it again: make api"
    assert program._sentence(program.page) == "Return the text of docs/api.md."


@pytest.mark.parametrize("name", sorted(FACTORIES))
def test_the_page_of_simulations_is_made_from_their_declarations(name, made):
    assert made("make_simulations").section(name) in (DOCS / "simulations.md").read_text(), "write it again: make api"


def test_the_page_of_simulations_has_no_other():
    lines = (DOCS / "simulations.md").read_text().splitlines()
    assert [line[3:] for line in lines if line.startswith("## ")] == [*sorted(FACTORIES), "Functions of expressions"]


def test_the_functions_of_expressions_are_made_from_their_declarations(made):
    assert made("make_simulations").functions() in (DOCS / "simulations.md").read_text(), "write it again: make api"
