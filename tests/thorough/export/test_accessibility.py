"""Every kind of page in headless Chromium: names, contrast, headings and order of focus, in light and dark."""

from pathlib import Path

import pytest

pytest.importorskip("websockets", reason="websockets is not installed: it drives the browser")

import simkit
import simkit.export
from simkit.errors import UserError
from simkit.export.pictures import play
from tests.thorough.export.page import browser

GALLERY = Path(__file__).parents[3] / "gallery"
AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")
# Roles of what a reader is told by its name alone.
NAMED = {"button", "link", "slider", "textbox", "searchbox", "combobox", "spinbutton", "checkbox", "image", "img"}
NAMED |= {"Video", "Iframe"}
# One page after the other takes the focus by the tabulator; a page of sliders has many.
STOPS = 60


def report_of(kind, folder):
    output = folder / kind
    if kind == "run":
        simkit.run("projectile", output=output)
    elif kind == "sweep":
        simkit.sweep("projectile", over={"launch_speed": [8.0, 10.0]}, seeds=1, output=output)
    elif kind == "optimization":
        simkit.optimize("bouncing_ball", wrt="launch_speed", objective="miss", output=output)
    else:
        simkit.value_and_grad("bouncing_ball", wrt="launch_speed", objective="miss", output=output)
    return simkit.report(output)


def page_of(folder):
    return simkit.export.web_page(
        "bouncing_ball", folder / "page.html", objective="miss", wrt=["launch_speed", "launch_angle"]
    ).file


PAGES = {
    "index": lambda folder: GALLERY / "index.html",
    "scenario": lambda folder: GALLERY / "bouncing_ball" / "index.html",
    **{
        f"report of a {kind}": lambda folder, kind=kind: report_of(kind, folder)
        for kind in ("run", "sweep", "optimization", "derivative")
    },
    "player": lambda folder: (
        play(simkit.run("bouncing_ball"))[0].save(folder / "player.html") or folder / "player.html"
    ),
    "page": page_of,
}


@pytest.fixture(scope="module", params=list(PAGES))
def tab(request, tmp_path_factory):
    """A page in a browser."""
    if browser.found() is None:
        pytest.skip("there is no Chromium to open pages with")
    try:
        file = PAGES[request.param](tmp_path_factory.mktemp("pages"))
    except UserError as error:
        if "npm" not in str(error):
            raise
        pytest.skip(f"a library of the page is missing: {error}")
    with browser.opened(1280, 900) as tab:
        tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
        if request.param in ("player", "page"):
            tab.open(file, 120)
        else:
            tab.call("Page.navigate", url=file.resolve().as_uri())
        tab.run("new Promise((done) => setTimeout(done, 800))")
        yield tab


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast_pictures_have_words_and_headings_descend(tab, scheme):
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    tab.run("new Promise((done) => setTimeout(done, 300))")
    assert tab.run(AUDIT) == []


def test_everything_to_press_has_a_name(tab):
    tab.call("Accessibility.enable")
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    named = [node for node in nodes if not node["ignored"] and node["role"]["value"] in NAMED]
    nameless = [node for node in named if not node.get("name", {}).get("value", "").strip()]
    assert [node["role"]["value"] for node in nameless] == []


def test_focus_goes_through_the_page_in_its_order_and_is_seen(tab):
    expected = tab.run("""(() => {
        const every = "a[href], button, input, select, textarea, video[controls], iframe, [tabindex='0']";
        window.stops = [...document.querySelectorAll(every)].filter((node) => !node.disabled && node.checkVisibility());
        document.activeElement?.blur();
        return stops.length;
    })()""")
    # A browser marks the parts of films and frames itself.
    visited = []
    while len(visited) < STOPS and (not visited or visited[-1][0] != expected - 1):
        for kind in ("keyDown", "keyUp"):
            tab.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        visited.append(
            tab.run("""(() => {
                const node = document.activeElement;
                const { outlineStyle, boxShadow } = getComputedStyle(node);
                const marked = ["IFRAME", "VIDEO"].includes(node.tagName);
                const isSeen = marked || outlineStyle !== "none" || boxShadow !== "none";
                return [stops.indexOf(node), isSeen, node.outerHTML.slice(0, 80)];
            })()""")
        )
    assert [words for _, is_seen, words in visited if not is_seen] == []
    # Parts within a video or a number field are stops of their own.
    assert sorted({place for place, *_ in visited}) == sorted(dict.fromkeys(place for place, *_ in visited))
    assert [place for place, *_ in visited] == sorted(place for place, *_ in visited)
    assert len(visited) == STOPS or len({place for place, *_ in visited}) == expected
