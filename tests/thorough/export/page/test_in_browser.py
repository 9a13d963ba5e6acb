"""Pages in headless Chromium: no error, no request, a picture, sliders that act, and the numbers of JAX."""

import json
import time

import jax
import numpy as np
import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("websockets", reason="websockets is not installed: it drives the browser")

import simkit.export
from simkit.core.precision import precision
from simkit.core.rollout import segment
from simkit.errors import UserError
from simkit.export.page import runtime
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.thorough.export.page import browser

DISKS = {f"config.particles.{name}.count": 250 for name in ("small", "large")}
# What each is made with, and a parameter that changes what is seen after a few steps.
PAGES = {
    "bouncing_ball": ({}, "gravity", 3.0),
    "channel_flow": ({"config.axes.x.cells": 64, "config.axes.y.cells": 48, "steps": 400}, "forcing", 5.0),
    "double_pendulum": ({"steps": 200}, "gravity", 3.0),
    "kolmogorov_turbulence": ({"steps": 100}, "viscosity", 0.1),
    "soft_sphere_packing": (
        DISKS | {"steps": 200},
        "packing_fraction",
        1.1,
    ),
}
STEPS = 100
# Frames per second that a page must reach, with one step each, by the processor time of the browser's page.
WANTED = 15.0


@pytest.fixture(scope="module")
def carried(tmp_path_factory):
    """The folder of onnxruntime-web, or a reason why there is none."""
    if browser.found() is None:
        pytest.skip("there is no Chromium to open pages with")
    try:
        found = runtime.runtime_files()
    except UserError as error:
        pytest.skip(f"there is no onnxruntime-web to put into pages: {error}")
    folder = tmp_path_factory.mktemp("runtime")
    (folder / runtime.SCRIPT).write_bytes(found[runtime.SCRIPT])
    (folder / runtime.MACHINE).write_bytes(found[runtime.MACHINE])
    return folder


@pytest.fixture(scope="module", params=list(PAGES))
def page(request, carried, tmp_path_factory):
    """The name of a scenario, and its page in a browser."""
    name = request.param
    file = tmp_path_factory.mktemp("pages") / f"{name}.html"
    report = simkit.export.web_page(name, file, runtime=carried, **PAGES[name][0])
    assert report.passed, report.misses
    with browser.opened() as tab:
        tab.open(file)
        yield name, tab


def look(tab):
    """Return what the page shows: arrays by name, and diagnostics."""
    answer = json.loads(
        tab.run(
            "player.inTurn(() => player.simulation.look()).then(({arrays, diagnostics}) => JSON.stringify([diagnostics,"
            " Object.fromEntries(Object.entries(arrays).map(([n, a]) => [n, [a.shape, Array.from(a.data)]]))]))"
        )
    )
    return {name: np.reshape(data, shape) for name, (shape, data) in answer[1].items()}, answer[0]


def restart(tab, steps):
    """Begin again, take steps and draw."""
    tab.run(f"""(() => {{
        player.play(false);
        return player.inTurn(async () => {{
            await player.restart();
            await player.simulation.take({steps});
            await player.show();
        }});
    }})()""")


def test_page_computes_the_numbers_of_jax(page):
    name, tab = page
    restart(tab, STEPS)
    found, diagnosed = look(tab)
    scenario = load(name, PAGES[name][0])
    with precision(scenario.run.precision):
        simulation = build(scenario)
        state = simulation.init(simulation.params, jax.random.key(scenario.run.seed))
        state = segment(simulation, STEPS)(state, simulation.params)
        expected = simulation.observe(state, simulation.params)
        numbers = simulation.diagnose(state, simulation.params)
    errors = {}
    for key, array in found.items():
        reference = np.asarray(expected[key], float)
        scale = float(np.max(np.abs(reference), initial=0.0)) or 1.0
        errors[key] = float(np.max(np.abs(array - reference), initial=0.0)) / scale
    print(f"{name}: {max(errors.values()):.1e} after {STEPS} steps")
    assert max(errors.values()) < 1e-4, errors
    clock = "time" if "time" in numbers else "iteration"
    assert diagnosed[clock] == pytest.approx(float(numbers[clock]), rel=1e-5)


def test_page_is_drawn_without_error_or_request(page):
    name, tab = page
    restart(tab, 5)
    colors = tab.run("""(() => {
        const { width, height } = document.getElementById("picture");
        const { data } = document.getElementById("picture").getContext("2d").getImageData(0, 0, width, height);
        const seen = new Set();
        for (let k = 0; k < data.length; k += 4)
            if (data[k + 3] > 200) seen.add(data.slice(k, k + 3).join());
        return seen.size;
    })()""")
    assert colors > 20
    assert tab.errors == []
    own = [address for address in tab.requests if not address.startswith(("blob:", "data:"))]
    assert len(own) == 1 and own[0].startswith("file://") and own[0].endswith(f"{name}.html")


def test_policy_refuses_requests_of_the_page(page):
    _, tab = page
    refused = tab.run("fetch('http://127.0.0.1:9/').then(() => 'answered', (error) => error.name)")
    assert refused == "TypeError"
    # The policy refuses it before a connection is tried.
    assert any("Content Security Policy" in line for line in tab.errors)
    tab.errors.clear()


def test_slider_changes_the_result(page):
    name, tab = page
    _, parameter, value = PAGES[name]
    restart(tab, 10)
    before, _ = look(tab)
    default = tab.run(f"player.sliders.{parameter}.value")
    tab.run(f"player.sliders.{parameter}.take({value})")
    restart(tab, 10)
    after, _ = look(tab)
    tab.run(f"player.sliders.{parameter}.take({default})")
    restart(tab, 10)
    again, _ = look(tab)
    change = max(float(np.max(np.abs(after[key] - before[key]), initial=0.0)) for key in before)
    assert change > 1e-6
    for key in before:
        np.testing.assert_array_equal(again[key], before[key])


def test_play_pause_step_and_reset(page):
    _, tab = page

    def steps():
        return tab.run("player.simulation.steps")

    def click(name):
        tab.run(f"document.getElementById('{name}').click(); player.last")

    restart(tab, 0)
    click("step")
    assert steps() == 1
    click("play")
    end = time.monotonic() + 30
    while steps() < 3 and time.monotonic() < end:
        time.sleep(0.05)
    click("play")
    tab.run("player.last")
    paused = steps()
    assert paused >= 3
    time.sleep(0.3)
    assert steps() == paused
    click("reset")
    assert steps() == 0


def test_page_reaches_the_required_frame_rate(page):
    """By processor time, so that what else runs on the machine does not matter much."""
    _, tab = page
    restart(tab, 2)
    tab.call("Performance.enable", timeDomain="threadTicks")

    def spent():
        metrics = tab.call("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in metrics if one["name"] == "TaskDuration")

    frames, before = 20, spent()
    tab.run(f"""(async () => {{
        for (let k = 0; k < {frames}; k++) {{
            await player.simulation.take(1);
            await player.show();
        }}
    }})()""")
    rate = frames / (spent() - before)
    print(f"{page[0]}: {rate:.0f} frames/s")
    assert rate > WANTED
