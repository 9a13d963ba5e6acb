"""What tests/docs claims of a few pages, simulations and systems, of all of them."""

import re
import subprocess
import sys
import time

import pytest

from simkit.scenario.registry import FACTORIES
from tests.docs.generated import check_section
from tests.docs.pages import PAGES, QUICK, REPOSITORY, blocks, run_alone
from tests.docs.systems import SYSTEMS, check_program
from tests.thorough.export.page import browser

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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "-q", "-d", str(folder / "trees")]
    command += ["-D", "nb_execution_mode=off"]  # test_notebooks.py runs them
    made = subprocess.run([*command, "docs", str(folder / "site")], cwd=REPOSITORY, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return folder / "site"


def test_the_site_has_no_warning_and_loads_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    wanted = {
        "index.html",
        "how_do_i.html",
        "robotics.html",
        "simkit.run.html",
        "simkit.molecular.dynamics.langevin.html",
    }
    assert wanted < {page.name for page in pages}
    loaded = r"""<(?:script|img|link|source|iframe)[^>]+(?:src|href)=["']?(?:https?:)?//[^\s"'>]+"""
    assert [(p.name, found) for p in pages for found in re.findall(loaded, p.read_text())] == []


@pytest.mark.skipif(browser.found() is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [1400, 390])
def test_the_site_is_read_and_searched_without_network_errors_or_a_scroll_to_the_side(site, width):
    with browser.opened(width, 900) as tab:
        tab.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
        for name in ("index", "start", "concepts", "tutorials/flow", "reference/api", "search"):
            query = "?q=restitution" if name == "search" else ""
            tab.call("Page.navigate", url=(site / f"{name}.html").as_uri() + query)
            time.sleep(2)
            assert tab.run("document.documentElement.scrollWidth") <= width, name
            bare = "[...document.images].filter(each => !each.alt || !each.naturalWidth).map(each => each.src)"
            assert tab.run(bare) == [], name
        assert "Rigid bodies" in tab.run("document.querySelector('#search-results').innerText")
        assert tab.errors == []
        assert {address.split(":")[0] for address in tab.requests} <= {"file", "data"}
