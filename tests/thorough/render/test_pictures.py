"""Pictures and videos: every view, format and number of names, shadows, long texts."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from simkit.render import chart
from simkit.render.animate import render
from simkit.render.bodies.light import covered, lamp, shadow_of
from simkit.render.style import fit
from simkit.render.video import write_gif
from simkit.render.views import Pictures, new_painter
from tests.render.scenes import ball, box, capsule
from tests.render.test_animate import check_bytes
from tests.render.test_solids import TURNED, gap
from tests.render.test_sweep_charts import check_long_names, grid
from tests.tables import every


def test_a_long_title_is_measured_a_few_times_only(field_run, settings, monkeypatch):
    painter = new_painter(*field_run(2), "title", settings("field", "speed"), (320, 180))
    heading = painter.sheet.figure.texts[-1]
    heading.set_text("word " * 4000)
    measured = itertools.count()
    original = type(heading).get_window_extent
    monkeypatch.setattr(
        type(heading), "get_window_extent", lambda self, *a, **k: (next(measured), original(self, *a, **k))[1]
    )
    fit(heading, 150)
    # Halving 20,000 letters takes 15 steps.
    assert next(measured) <= 20
    assert heading.get_text().startswith("word") and heading.get_text().endswith("\N{HORIZONTAL ELLIPSIS}")
    assert original(heading).width <= 150


def test_one_hundred_frames_of_a_field_stay_below_two_megabytes(field_run, settings, tmp_path):
    painter = new_painter(*field_run(100), "Channel", settings("field", "speed"), (640, 360))
    write_gif(tmp_path / "a.gif", Pictures(painter, range(100)), 20.0)
    assert (tmp_path / "a.gif").stat().st_size < 2e6
    with Image.open(tmp_path / "a.gif") as file:
        file.seek(99)
        shown = np.asarray(file.convert("RGB"))
    error = np.abs(shown.astype(int) - painter.image(99))
    # Some forty colors for the 256 of the map: steps of six colors, three from the middle, 1 to 2 levels each.
    assert error.mean() < 4
    assert (shown[:10] == 255).all()


def test_a_parameter_that_does_not_vary_and_a_result_without_values_are_drawn(drawn):
    points = {"a": np.arange(4.0), "b": np.ones(4), "c": np.geomspace(1, 1000, 4)}
    for values in (np.full((4, 1), np.nan), np.full((4, 1), 2.0)):
        drawn(points, {"x": values})
        drawn(grid([1.0], [2.0, 3.0, 4.0, 5.0]), {"x": values})


@pytest.mark.parametrize("parameters", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [1, 5, 13])
def test_any_number_of_long_names_is_drawn_without_overlap(count, parameters, drawn):
    check_long_names(count, parameters, drawn)


@every("body", [ball(), capsule(orientation=TURNED), box(half=(0.3, 0.9, 0.6), orientation=TURNED)])
def test_the_middle_of_the_edge_of_a_shadow_is_the_outline_of_the_body(body):
    light, generator = lamp(-90), np.random.default_rng(0)
    shadow = shadow_of(body, light)
    far = -6.0
    middle = covered(shadow, shadow.place[:, None], np.array([far]))[0]
    for angle in generator.uniform(0, 2 * np.pi, 20):
        direction = np.array([np.cos(angle), np.sin(angle)])
        step = np.linspace(0, 2.5, 2001)
        rays = light.across.T @ (direction[:, None] * step)
        # A ray along the light meets the body if any of its points does.
        nearest = np.min([gap(body, rays + along * light.toward[:, None]) for along in np.linspace(-2, 2, 201)], axis=0)
        edge = step[np.flatnonzero(nearest < 0).max()]
        found = covered(shadow, direction[:, None] * step, np.full(len(step), far))
        # Points along a ray are 0.02 apart, which matters by its square over the size of the body.
        at_edge = np.interp(edge, step, found)
        strength = 1 / (1 + ((0.24 * 6 + 0.12 * shadow.narrow) / (3 * shadow.narrow)) ** 2)
        assert at_edge == pytest.approx(0.5 * strength, abs=0.02 * strength)
        assert found[-1] == 0
        assert middle >= found.max() - 1e-12


def test_wide_pictures_are_stacked(field_run, settings, tmp_path):
    frames, diagnostics, coordinates = field_run(2)
    run = {"frames": frames, "diagnostics": diagnostics, "coordinates": coordinates}
    shapes = []
    for size in ((320, 180), (480, 120)):
        chart.comparison(tmp_path / "a.png", run, run, settings("field", "speed"), "Title", ("a", "b"), size)
        with Image.open(tmp_path / "a.png") as picture:
            shapes.append(picture.size)
    assert shapes[0][0] > 640 and shapes[0][1] < 360
    assert shapes[1][0] == 480 and shapes[1][1] > 240


def test_long_runs_are_thinned(field_run, settings, tmp_path):
    render(*field_run(9), "Title", settings("field", "speed"), tmp_path / "a.gif", "gif", (96, 64), maximum_frames=4)
    with Image.open(tmp_path / "a.gif") as file:
        assert file.n_frames == 4


def test_rendering_imports_neither_jax_nor_pyplot():
    code = (
        "import sys, numpy as np, simkit.render.chart, simkit.render.views as views\n"
        "from simkit.scenario.scenario import RenderSettings\n"
        "settings = RenderSettings('field', 'u', 'u')\n"
        "x = np.arange(4.0)\n"
        "views.new_painter({'u': np.ones((1, 4, 4))}, {'time': [0]}, {'x': x, 'y': x}, 't', settings).image(0)\n"
        "print([name for name in ('jax', 'matplotlib.pyplot', 'xarray', 'scipy') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("view", ["field", "particles", "bodies", "chart"])
@pytest.mark.parametrize("kind", ["gif", "mp4", "png"])
def test_every_view_renders_to_every_format_with_the_same_bytes(
    view, kind, field_run, particle_run, body_run, settings, tmp_path
):
    check_bytes(view, kind, field_run, particle_run, body_run, settings, tmp_path)
