"""The page of the public surface is what the docstrings say."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_made_from_the_docstrings():
    spec = importlib.util.spec_from_file_location("make_api", DOCS / "make_api.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.page() == (DOCS / "api.md").read_text(), "write it again: make api"
    assert made._sentence(made.page) == "Return the text of docs/api.md."
