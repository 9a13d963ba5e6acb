"""Pictures and videos: every view, format and number of names, shadows, long texts."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from PIL import Image

from simkit.errors import UserError
from simkit.render.animate import render
from simkit.render.chart import SweepData, history_chart, sweep_chart
from simkit.render.video import write_gif
from simkit.render.views import Pictures, new_painter
from tests.render.test_chart import check_long_names, grid
from tests.tables import every


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


def blown_up(array, ends):
    """The array in double precision, whose last frames are huge, and at the end in part not finite."""
    array = np.array(array, float)
    array[-2:] *= 1e200
    if ends:
        flat = array[-1].reshape(-1)
        flat[::3], flat[1::3] = np.inf, np.nan
    return array


@every("limits, ends", [(None, True), ((0.0, 1.0), False)])
@every(
    ("view", "name", "quantity"),
    [
        ("field", "field_run", "speed"),
        ("particles", "particle_run", "contacts"),
        ("particles", "particle_run", "position"),
        ("bodies", "body_run", "velocity"),
        ("bodies", "body_run", "position"),
        ("chart", "field_run", "energy"),
    ],
)
def test_a_run_that_blows_up_is_drawn_without_warnings(view, name, quantity, limits, ends, settings, request):
    frames, diagnostics, coordinates = request.getfixturevalue(name)(3)
    if view == "bodies":
        frames = frames | {"velocity": frames["position"]}
    if quantity in frames:
        frames = frames | {quantity: blown_up(frames[quantity], ends)}
    else:
        diagnostics = diagnostics | {"energy": blown_up(diagnostics["time"], ends)}
    shown = "contacts" if quantity == "position" and view == "particles" else quantity
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        painter = new_painter(frames, diagnostics, coordinates, "run", settings(view, shown, limits=limits))
        for index in range(len(painter)):
            painter.image(index)


BROKEN = (r"$\frac{$", r"$x$ and $\nosuch{y}$", "$" + "{" * 300 + "}" * 300 + "$", r"$\hspace{1e9}$", "$a$$b$ $_$ $")


@every("text", BROKEN)
def test_mathematics_that_does_not_parse_is_shown_as_plain_text(text, field_run, settings, tmp_path):
    run, chosen = field_run(2), settings("field", "speed", label=text, unit=text)
    painter = new_painter(*run, text, chosen, (320, 180))
    assert painter.image(1).shape == (180, 320, 3)
    series = {"speed": np.arange(3.0)}
    history_chart(tmp_path / "history.png", text, np.arange(3.0), series, title=text)
    # Each kind of chart of a sweep with one text of the table.
    charts = ({}, {"b": np.arange(3.0)}, {"b": np.arange(3.0), "c": np.ones(3)})
    for more in [charts[BROKEN.index(text)]] if text in BROKEN[:3] else []:
        points, values = {text: np.arange(3.0), **more}, {text: np.zeros((3, 1))}
        data = SweepData(points, values, np.zeros((3, 1), bool), {text: text}, False, {text: {text: 0.5}}, text)
        sweep_chart(tmp_path / "sweep.png", data)


def test_a_png_shows_the_requested_frame(field_run, settings, tmp_path):
    run, chosen = field_run(5), settings("field", "speed")
    painter = new_painter(*run, "Title", chosen, (160, 120))
    for frame, index in ((-1, 4), (-5, 0), (2, 2)):
        render(*run, "Title", chosen, tmp_path / "a.png", "png", (160, 120), frame=frame)
        np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "a.png")), painter.image(index))
    for frame in (5, -6):
        with pytest.raises(UserError, match=f"frame = {frame} is not an integer from -5 to 4"):
            render(*run, "Title", chosen, tmp_path / "a.png", "png", (160, 120), frame=frame)


@pytest.mark.parametrize("view", ["field", "particles", "bodies", "chart"])
@pytest.mark.parametrize("kind", ["gif", "mp4", "png"])
def test_every_view_renders_to_every_format_with_the_same_bytes(
    view, kind, field_run, particle_run, body_run, settings, tmp_path
):
    run, quantity = {
        "field": (field_run(3), "speed"),
        "particles": (particle_run(3), "contacts"),
        "bodies": (body_run(3), "position"),
        "chart": (body_run(3), "time"),
    }[view]
    files = [tmp_path / f"{k}.{kind}" for k in range(2)]
    for file in files:
        assert render(*run, "Title", settings(view, quantity), file, kind, (160, 120)) == file
    assert files[0].read_bytes() == files[1].read_bytes()
