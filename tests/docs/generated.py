"""Programs that generate pages of the documentation."""

import functools
import importlib.util

from tests.docs.pages import REPOSITORY

DOCS = REPOSITORY / "docs"


@functools.cache
def program(name):
    """Return the module of a program in docs/."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_section(name):
    """Assert that docs/reference/simulations.md has the declarations of a simulation."""
    section = program("make_simulations").section(name)
    assert section in (DOCS / "reference" / "simulations.md").read_text(encoding="utf-8"), "write it again: make api"
