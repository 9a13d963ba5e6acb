"""Pages that differentiate, in headless Chromium: gradients of JAX, optima within seconds, a dragged target."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("websockets", reason="websockets is not installed: it drives the browser")

import simkit
import simkit.export
from tests.thorough.export.page import browser
from tests.thorough.export.page.test_in_browser import carried  # noqa: F401

LESSONS = Path(__file__).parents[4] / "docs" / "lessons"
# Of each: the scenario, what differs, the objective, the parameters, and the value that improving must reach.
PAGES = {
    "packing": (
        "bubble_raft",
        {"config.repeats": [6, 4], "target_shear_modulus": 0.16},
        "miss",
        ["packing_fraction"],
        1e-12,
    ),
    # Least effort from rest to rest by way of the cushion.
    # The forces between knots are exact at any number of steps.
    "puck": (
        "steered_puck",
        {"config.steps_between": 4, "steps": 16, "time_step": 0.125},
        "cost",
        ["force_x", "force_z"],
        2.47,
    ),
    "ball": ("bouncing_ball", {}, "miss", ["launch_speed", "launch_angle"], 1e-12),
    "channel": (LESSONS / "channel_from_rest.toml", {}, "miss", ["viscosity"], 1e-12),
    # At resonance the pendulum swings more than twice as wide as beside it.
    "pendulum": (LESSONS / "driven_pendulum.toml", {}, "swing", ["driver_length"], None),
}
SECONDS = 60


@pytest.fixture(scope="module", params=list(PAGES))
def page(request, carried, tmp_path_factory):
    """The name of a page, and the page in a browser."""
    name = request.param
    source, values, objective, wrt, _ = PAGES[name]
    file = tmp_path_factory.mktemp("pages") / f"{name}.html"
    report = simkit.export.web_page(source, file, objective=objective, wrt=wrt, runtime=carried, **values)
    assert report.passed, report.misses
    with browser.opened(1400, 1000) as tab:
        tab.open(file)
        # The arrows are the last of what a page computes by itself.
        tab.run("(async () => { while (!player.derivative.overlay.before) await new Promise(setTimeout); })()", 120)
        yield name, tab


def evaluated(tab, script):
    return json.loads(tab.run(f"({script}).then(JSON.stringify)", 300))


def test_gradient_in_the_browser_is_that_of_jax(page):
    name, tab = page
    source, values, objective, wrt, _ = PAGES[name]
    found = evaluated(tab, "player.derivative.at()")
    expected, slopes = simkit.value_and_grad(source, wrt=wrt, objective=objective, **values)
    numbers = np.concatenate([np.ravel(slopes[each]) for each in sorted(wrt)])
    assert found["value"] == pytest.approx(float(expected), rel=1e-10)
    np.testing.assert_allclose(found["gradient"], numbers, rtol=1e-10, atol=1e-10 * np.abs(numbers).max())


def test_arrow_points_along_the_better_velocity(page):
    name, tab = page
    if name != "ball":
        pytest.skip("its parameters set no velocity")
    (arrow,) = tab.run("player.derivative.overlay.arrows")
    slopes = tab.run("player.derivative.gradient")
    # Of the launch angle in degrees and the launch speed: 4 m/s at 60 degrees.
    turn, faster = slopes[0] / (4 * np.pi / 180), slopes[1]
    way = -np.array([faster / 2 - turn * np.sqrt(0.75), faster * np.sqrt(0.75) + turn / 2])
    np.testing.assert_allclose([arrow["way"][0], arrow["way"][2]], way / np.hypot(*way), atol=1e-5)
    assert tab.run("document.querySelectorAll('.overlaid path').length") == 1


def test_improving_reaches_the_optimum_within_seconds(page):
    name, tab = page
    aim = PAGES[name][-1]
    before = tab.run("player.derivative.value")
    seconds = tab.run(
        "(() => { const began = performance.now(); return player.derivative.improve().then(() => {"
        " player.play(false); return (performance.now() - began) / 1000; }); })()",
        300,
    )
    path, value = evaluated(tab, "Promise.resolve([player.derivative.path, player.derivative.value])")
    print(f"{name}: {before:.4g} to {value:.4g} in {len(path) - 1} iterations, {seconds:.1f} s")
    assert seconds < SECONDS
    assert value <= aim if aim is not None else value > 2 * before
    ends = "player.derivative.entries.map(({label, low, high}) => [low, player.sliders[label].value, high])"
    assert all(low <= number <= high for low, number, high in evaluated(tab, f"Promise.resolve({ends})"))


def test_scan_shows_values_with_their_slopes(page):
    _, tab = page
    tab.run("player.derivative.scan()", 300)
    points = np.array(evaluated(tab, "Promise.resolve(player.derivative.scanned.points)"))
    assert len(points) > 20 and np.isfinite(points).all()
    assert tab.run("!document.getElementById('scanned').parentElement.hidden")


def test_page_has_no_error_and_asks_for_nothing_on_wide_and_narrow_screens(page):
    _, tab = page
    for width in (1400, 390):
        tab.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
        tab.run("new Promise((resolve) => setTimeout(resolve, 300))")
        assert tab.run("document.documentElement.scrollWidth") <= width
        drawn = tab.run(
            "(() => { const { width, height } = document.getElementById('picture'); return new Set(document"
            ".getElementById('picture').getContext('2d').getImageData(0, 0, width, height).data).size; })()"
        )
        assert drawn > 10
    assert tab.errors == []
    assert [address for address in tab.requests if not address.startswith(("blob:", "data:", "file:"))] == []


def test_target_is_dragged_by_pointer_and_keys(page):
    name, tab = page
    if name != "ball":
        pytest.skip("its objective has no target in the picture")
    tab.run("player.derivative.overlay.measure()")
    before = tab.run("player.sliders.target.value")
    x, y = tab.run("player.derivative.overlay.target")
    tab.run(f"player.derivative.overlay.drag([{x - 100}, {y}])")
    tab.run("player.last")
    moved = tab.run("player.sliders.target.value")
    assert moved < before - 0.1
    press = "new KeyboardEvent('keydown', {key: 'ArrowRight'})"
    tab.run(f"document.querySelector('.handle').dispatchEvent({press}); player.last")
    assert tab.run("player.sliders.target.value") > moved
