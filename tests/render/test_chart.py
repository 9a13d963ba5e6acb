"""Charts of histories and of one diagnostic over time, and pictures before and after."""

import numpy as np
import pytest
from PIL import Image

from simkit.errors import UserError
from simkit.render import chart
from simkit.render.animate import render
from simkit.render.views import new_painter
from tests.tables import every


@pytest.fixture
def panels(monkeypatch):
    """Collect the axes of the chart that is drawn."""
    drawn = []
    write = chart.write

    def keep(path, figure):
        drawn.extend(figure.axes)
        return write(path, figure)

    monkeypatch.setattr(chart, "write", keep)
    return drawn


def test_a_loss_over_decades_gets_a_logarithmic_axis(panels, tmp_path):
    iterations = np.arange(50)
    series = {"loss": np.exp(-iterations / 3.0), "speed": 1.0 + iterations}
    chart.history_chart(tmp_path / "a.png", "iteration", iterations, series)
    assert [axes.get_yscale() for axes in panels] == ["log", "linear"]
    assert [axes.get_xlabel() for axes in panels] == ["iteration", "iteration"]


def test_round_off_around_a_constant_is_drawn_flat(panels, tmp_path):
    energy = 5 + 1e-9 * np.random.default_rng(0).normal(size=20)
    chart.history_chart(tmp_path / "a.png", "t", np.arange(20), {"energy": energy})
    low, high = panels[0].get_ylim()
    assert high - low > 0.1


def test_a_quantity_without_finite_values_says_so(panels, tmp_path):
    chart.history_chart(tmp_path / "a.png", "t", np.arange(3), {"energy": np.full(3, np.nan)})
    assert [text.get_text() for text in panels[0].texts] == ["no finite values"]


def test_wrong_shapes_are_named(tmp_path):
    with pytest.raises(UserError, match=r"'drag' has shape \(4,\); the chart needs \(3,\)"):
        chart.history_chart(tmp_path / "a.png", "t", np.arange(3.0), {"drag": np.arange(4.0)})
    with pytest.raises(UserError, match="nothing to chart"):
        chart.history_chart(tmp_path / "a.png", "t", np.arange(3.0), {})


def test_before_and_after_share_colors_and_window(field_run, body_run, settings, tmp_path):
    frames, diagnostics, coordinates = field_run(2)
    weak = {"frames": frames, "diagnostics": diagnostics, "coordinates": coordinates}
    strong = weak | {"frames": {"speed": 3 * frames["speed"]}}
    chosen = settings("field", "speed")
    chart.comparison(tmp_path / "a.png", weak, strong, chosen, "Channel", ("before", "after"), (320, 180))
    picture = np.asarray(Image.open(tmp_path / "a.png")).astype(int)
    left, right = picture[:, :320], picture[:, -320:]
    # Three times the speed on a common scale is brighter; on a scale of its own it would look the same.
    assert right.sum() > left.sum()

    runs = []
    for stretch in (1.0, 3.0):
        moved, time, _ = body_run(5)
        moved["position"][..., 0] *= stretch
        del moved["target"]
        runs.append({"frames": moved, "diagnostics": time, "coordinates": {}})
    chart.comparison(tmp_path / "b.png", *runs, settings("bodies", "position"), "Ball", ("before", "after"), (320, 180))
    picture = np.asarray(Image.open(tmp_path / "b.png"))
    # The lowest rows hold the axis: its numbers agree where the windows do.
    np.testing.assert_array_equal(picture[-30:, :320], picture[-30:, -320:])


def run_of(values):
    return {}, {"time": np.linspace(0, 2, len(values)), "energy": np.asarray(values)}, {}


def blue(image):
    """Return how many pixels are of the line's color."""
    return int(((image[..., 2].astype(int) - image[..., 0]) > 80).sum())


def test_line_grows_with_the_run(settings):
    painter = new_painter(*run_of(np.sin(np.linspace(0, 6, 50))), "Title", settings("chart", "energy"), (320, 180))
    drawn = [blue(painter.image(index)) for index in (0, 10, 25, 49)]
    assert len(painter) == 50 and drawn == sorted(drawn) and drawn[-1] > 3 * drawn[0]
    np.testing.assert_array_equal(painter.image(10), painter.image(10))


@every("values", [[1.0, np.nan, np.inf, 2.0], [np.nan] * 3, [5.0] * 4, [0.0, 1e300], [3.0]])
def test_any_numbers_are_drawn(values, settings):
    painter = new_painter(*run_of(values), "Title", settings("chart", "energy"), 160 * 90)
    assert painter.image(len(values) - 1).shape[2] == 3


def test_quantities_that_are_not_one_number_per_frame_are_refused(settings, tmp_path):
    with pytest.raises(UserError, match="the frames hold no 'enrgy'; did you mean 'energy'"):
        new_painter(*run_of([1, 2]), "Title", settings("chart", "enrgy"), (320, 180))
    with pytest.raises(UserError, match="'energy' has 1 axes per frame"):
        new_painter({}, {"energy": np.zeros((2, 3))}, {}, "Title", settings("chart", "energy"), (320, 180))
    with pytest.raises(UserError, match="there is nothing to draw: no number is diagnosed"):
        render({}, {}, {}, "Title", settings("chart", "energy"), tmp_path / "a.gif")
    with pytest.raises(UserError, match="no frames to draw"):
        render({}, {"energy": np.zeros(0)}, {}, "Title", settings("chart", "energy"), tmp_path / "a.gif")


def test_the_axis_of_time_has_its_unit(settings):
    painter = new_painter(*run_of([1, 2]), "Title", settings("chart", "energy", "energy", "J"), units={"time": "s"})
    assert (painter.axes.get_xlabel(), painter.axes.get_ylabel()) == ("time (s)", "energy (J)")


@every("values", [1e5 + np.sin(np.arange(9.0)), 1e-7 * np.arange(9.0) - 1])
def test_long_labels_and_numbers_stay_on_the_page(values, settings):
    label = "mean kinetic energy of the particles in the upper half of the channel"
    painter = new_painter(*run_of(values), "Title", settings("chart", "energy", label), (640, 360))
    box, page = painter.axes.yaxis.get_tightbbox(), painter.figure.bbox
    assert box.x0 >= 0 and box.y0 >= 0 and box.y1 <= page.height
