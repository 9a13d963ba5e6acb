"""The code of the pages that takes longer than a few seconds runs and prints the shown output."""

import pytest

from tests.docs.pages import PAGES, QUICK, run_alone


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in QUICK], ids=lambda page: page.stem)
def test_every_example_runs_and_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    run_alone(page, tmp_path, monkeypatch)
