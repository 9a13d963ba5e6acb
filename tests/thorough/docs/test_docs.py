"""What tests/docs claims of a few pages, simulations and systems, of all of them."""

import re
import subprocess
import sys

import pytest

from simkit.scenario.registry import FACTORIES
from tests.docs.generated import check_section
from tests.docs.pages import PAGES, QUICK, REPOSITORY, blocks, run_alone
from tests.docs.systems import SYSTEMS, check_program

CODED = [page for page in PAGES if any(block.language in ("python", "console") for block in blocks(page))]


@pytest.mark.parametrize("page", [page for page in CODED if page.stem not in QUICK], ids=lambda page: page.stem)
def test_every_example_runs_and_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    run_alone(page, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", sorted(FACTORIES))
def test_the_page_of_simulations_equals_their_declarations(name):
    check_section(name)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_of_the_page_is_the_program_of_its_file(name):
    check_program(name)


def test_the_site_has_no_warning_and_loads_nothing_from_elsewhere(tmp_path):
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "-q", "-d", str(tmp_path / "trees")]
    command += ["-D", "nb_execution_mode=off"]  # test_notebooks.py runs them
    made = subprocess.run([*command, "docs", str(tmp_path / "site")], cwd=REPOSITORY, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert {"index.html", "how_do_i.html", "simkit.run.html", "simkit.molecular.langevin.html"} < {
        p.name for p in pages
    }
    loaded = r"""<(?:script|img|link|source|iframe)[^>]+(?:src|href)=["']?(?:https?:)?//[^\s"'>]+"""
    assert [(p.name, found) for p in pages for found in re.findall(loaded, p.read_text())] == []
