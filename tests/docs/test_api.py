"""The generated pages, docs/reference/api.md and docs/reference/simulations.md, equal docstrings and declarations."""

from simkit.scenario.registry import FACTORIES
from tests.docs.generated import DOCS, check_section, program
from tests.tables import every


def test_the_page_of_the_public_surface_equals_the_docstrings():
    page = program("make_api").page()
    assert page == (DOCS / "reference" / "api.md").read_text(), "write it again: make api"


@every("name", ("flow.kolmogorov_turbulence", "molecular.basin_hopping", "rigid.bouncing_ball"))
def test_the_page_of_simulations_equals_their_declarations(name):
    check_section(name)


def test_the_page_of_simulations_has_no_other_section():
    lines = (DOCS / "reference" / "simulations.md").read_text().splitlines()
    assert [line[3:] for line in lines if line.startswith("## ")] == [*sorted(FACTORIES), "Functions of expressions"]


def test_the_functions_of_expressions_equal_their_declarations():
    functions = program("make_simulations").functions()
    assert functions in (DOCS / "reference" / "simulations.md").read_text(), "write it again: make api"
