"""The generated pages, docs/api.md and docs/simulations.md, equal docstrings and declarations."""

import importlib.util
from pathlib import Path

import pytest

from simkit.scenario.registry import FACTORIES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def made():
    """Return a function that loads a program that generates a page."""

    def load(name):
        spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
        assert spec and spec.loader
        program = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(program)
        return program

    return load


def test_the_page_of_the_public_surface_equals_the_docstrings(made):
    program = made("make_api")
    assert program.page() == (DOCS / "api.md").read_text(), "write it again: make api"
    assert program._sentence(program.page) == "Return the text of docs/api.md."


@pytest.mark.parametrize("name", sorted(FACTORIES))
def test_the_page_of_simulations_equals_their_declarations(name, made):
    assert made("make_simulations").section(name) in (DOCS / "simulations.md").read_text(), "write it again: make api"


def test_the_page_of_simulations_has_no_other_section():
    lines = (DOCS / "simulations.md").read_text().splitlines()
    assert [line[3:] for line in lines if line.startswith("## ")] == [*sorted(FACTORIES), "Functions of expressions"]


def test_the_functions_of_expressions_equal_their_declarations(made):
    assert made("make_simulations").functions() in (DOCS / "simulations.md").read_text(), "write it again: make api"
