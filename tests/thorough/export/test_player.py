"""Players in headless Chromium: each domain drawn, turned and stepped through, without error or request."""

import time

import matplotlib.image
import numpy as np
import pytest

pytest.importorskip("websockets", reason="websockets is not installed: it drives the browser")

import simkit
from simkit.errors import UserError
from simkit.export.npm import THREE
from simkit.export.pictures import play
from simkit.export.player import playing
from simkit.render.views import Clip
from simkit.scenario.sections import RenderSettings
from tests.thorough.export.page import browser

# Widths and heights of a window and of a phone.
SIZES = {"window": (1400, 860), "phone": (390, 780)}
# What each run is made with; that of "space" is a field without a simulation.
RUNS = {
    "bouncing_ball": {},
    "falling_pile": {"steps": 100},
    "lennard_jones_fluid": {"steps": 200},
    "soft_sphere_packing": {"config.particles.small.count": 60, "config.particles.large.count": 60, "steps": 200},
    "cylinder_in_channel": {"steps": 216},
    "space": None,
}
# Part of a picture whose colors are not those of the paper, at least; and part that differs after a change.
DRAWN, CHANGED = 0.004, 0.0004


def field_in_space():
    """Return a wave in a box, whose slices and surfaces move."""
    x, y, z = np.linspace(0, 2, 24), np.linspace(0, 1, 12), np.linspace(-1, 1, 16)
    waves = [np.sin(3 * x[:, None, None] + t) * np.cos(2 * y[:, None] + z) for t in np.linspace(0, 3, 8)]
    settings = RenderSettings("field", "speed", unit="U")
    ball = np.sqrt((x[:, None, None] - 1) ** 2 + (y[:, None] - 0.5) ** 2 + z**2) - 0.4
    arrays = {"speed": np.array(waves), "body_distance": np.array(8 * [ball])}
    return Clip(arrays, {"time": np.arange(8.0)}, {"x": x, "y": y, "z": z}, "Wave", settings)


@pytest.fixture(scope="module", params=list(RUNS))
def tab(request, tmp_path_factory):
    """The player of a run in a browser."""
    if browser.found() is None:
        pytest.skip("there is no Chromium to open players with")
    try:
        THREE.files()
    except UserError as error:
        pytest.skip(f"there is no three.js to put into players: {error}")
    file = tmp_path_factory.mktemp("players") / f"{request.param}.html"
    if request.param == "space":
        file.write_bytes(playing.player(field_in_space()).page)
    else:
        play(simkit.run(request.param, **RUNS[request.param]))[0].save(file)
    assert file.stat().st_size < 5e6
    with browser.opened() as tab:
        tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
        tab.open(file)
        yield tab


def sized(tab, size):
    width, height = SIZES[size]
    tab.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
    tab.run(
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => { player.resize(); done(); })))"
    )


def pixels(tab):
    """Return the picture (height, width, 3), at a quarter of its size."""
    width, height, values = tab.run("""(() => {
        const page = player.picture();
        const small = document.createElement("canvas");
        [small.width, small.height] = [Math.round(page.width / 2), Math.round(page.height / 2)];
        const context = small.getContext("2d");
        context.drawImage(page, 0, 0, small.width, small.height);
        const { data } = context.getImageData(0, 0, small.width, small.height);
        return [small.width, small.height, Array.from(data)];
    })()""")
    return np.reshape(values, (height, width, 4))[..., :3].astype(int)


def difference(one, other):
    """Return the part of the pixels that differ visibly."""
    return float((np.abs(one - other).max(axis=-1) > 24).mean())


@pytest.mark.parametrize("size", list(SIZES))
def test_every_domain_is_drawn_and_changes_when_it_is_scrubbed_turned_and_zoomed(tab, size):
    sized(tab, size)
    tab.run("player.stage.fit(); player.show(1)")
    first = pixels(tab)
    paper = first[first.shape[0] // 2, 2]
    assert float((np.abs(first - paper).max(axis=-1) > 24).mean()) > DRAWN
    assert len(np.unique(first.reshape(-1, 3), axis=0)) > 50
    tab.run("player.show(player.count - 1)")
    last = pixels(tab)
    assert difference(first, last) > CHANGED
    tab.run("player.stage.turn(35, 12)")
    turned = pixels(tab)
    assert difference(last, turned) > CHANGED
    tab.run("player.stage.turn(0, 0, 0.6)")
    assert difference(turned, pixels(tab)) > CHANGED
    tab.run("player.stage.fit()")
    assert difference(last, pixels(tab)) == 0
    assert tab.run("document.documentElement.scrollWidth <= innerWidth && document.body.scrollHeight <= innerHeight")
    assert tab.errors == []
    outside = [address for address in tab.requests if not address.startswith(("blob:", "data:", "file:"))]
    assert outside == []


def test_buttons_and_keys_play_step_and_scrub(tab):
    sized(tab, "window")

    def press(key, shift=False):
        tab.run(
            f"document.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', shiftKey: {str(shift).lower()}}}))"
        )
        return tab.run("[player.index, player.isPlaying]")

    assert press("Home") == [0, False]
    assert press("ArrowRight") == [1, False]
    assert press("ArrowLeft") == [0, False]
    last = tab.run("player.count - 1")
    assert press("End") == [last, False]
    assert press(" ") == [0, True]
    assert press(" ")[1] is False
    tab.run("document.getElementById('scrub').value = 2")
    tab.run("document.getElementById('scrub').dispatchEvent(new Event('input'))")
    assert tab.run("player.index") == 2
    assert tab.run("document.getElementById('stamp').textContent") == tab.run(
        "player.frames && document.getElementById('scrub').getAttribute('aria-valuetext')"
    )
    # Everything that acts is reached by the keyboard, and has a name.
    names = tab.run("""[...document.querySelectorAll("button, input, select, canvas[tabindex]")]
        .filter((each) => !each.closest("[hidden]"))
        .map((each) => each.ariaLabel || each.textContent || each.closest("label")?.textContent || "")""")
    assert all(names) and len(names) >= 8
    assert tab.errors == []


def test_a_drag_turns_or_moves_the_picture(tab):
    sized(tab, "window")
    tab.run("player.stage.fit(); player.show(1)")
    before = pixels(tab)
    for kind, x in (("mousePressed", 500), ("mouseMoved", 560), ("mouseMoved", 640), ("mouseReleased", 640)):
        tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=400, button="left", buttons=1, clickCount=1)
    tab.run("new Promise(requestAnimationFrame)")
    assert difference(before, pixels(tab)) > CHANGED
    tab.run("player.stage.fit()")


def test_without_webgl_the_last_frame_and_a_message_are_shown(tmp_path):
    if browser.found() is None:
        pytest.skip("there is no Chromium to open players with")
    file = play(simkit.run("bouncing_ball", steps=60, every=3))[0].save(tmp_path / "ball.html")
    with browser.opened(webgl=False) as tab:
        tab.call("Page.navigate", url=file.resolve().as_uri())
        for _ in range(100):
            if tab.run("document.body?.classList.contains('failed')"):
                break
            tab.run("new Promise((done) => setTimeout(done, 100))")
        assert "cannot draw in space" in tab.run("document.getElementById('message').textContent")
        assert (
            tab.run(
                "document.getElementById('poster').decode().then(() => document.getElementById('poster').naturalWidth)"
            )
            > 300
        )


def test_a_report_holds_a_player_that_works(tmp_path):
    if browser.found() is None:
        pytest.skip("there is no Chromium to open players with")
    simkit.run("bouncing_ball", steps=60, every=3, output=tmp_path / "run")
    file = simkit.report(tmp_path / "run", player=True)
    with browser.opened() as tab:
        tab.call("Page.navigate", url=file.resolve().as_uri())
        end, colors = time.monotonic() + 90, 0
        while colors < 300 and time.monotonic() < end:
            time.sleep(0.5)
            tab.picture(tmp_path / "report.png")
            # Below the heading, the frame fills the page; a page alone has the few grays of its letters.
            picture = (matplotlib.image.imread(tmp_path / "report.png")[300:700, 100:900, :3] * 255).astype(int)
            colors = len(np.unique(picture.reshape(-1, 3), axis=0))
        assert colors >= 300
        assert tab.errors == []
        assert [each for each in tab.requests if not each.startswith(("blob:", "data:", "file:", "about:"))] == []
