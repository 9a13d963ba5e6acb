"""Notebooks of the documentation: each installs simkit first, runs to its end, and shows no more than results."""

import pytest
from myst_nb.core.read import read_myst_markdown_notebook
from nbclient import NotebookClient

from tests.docs.pages import REPOSITORY

NOTEBOOKS = [page for page in sorted((REPOSITORY / "docs" / "notebooks").glob("*.md")) if page.stem != "index"]
LARGEST = 4_000_000  # bytes of all outputs of a notebook


@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
def test_a_notebook_runs_and_shows_no_warning_and_no_progress(page, tmp_path):
    book = read_myst_markdown_notebook(page.read_text(encoding="utf-8"))
    first = next(cell for cell in book.cells if cell.cell_type == "code")
    assert first.source == "%pip install -q simkit-physics" and first.metadata.tags == ["skip-execution"]
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", ())]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    shown = [output.data for output in outputs if "data" in output]
    # A progress display is left behind empty.
    assert not [data for data in shown if "<progress" in data.get("text/html", "")]
    assert any("data:image/" in data.get("text/html", "") for data in shown)
    assert sum(len(str(data)) for data in shown) < LARGEST


def test_the_index_names_every_notebook():
    index = (REPOSITORY / "docs" / "notebooks" / "index.md").read_text(encoding="utf-8")
    assert NOTEBOOKS and not [page.stem for page in NOTEBOOKS if f"]({page.name})" not in index]
