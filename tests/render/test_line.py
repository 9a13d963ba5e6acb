"""View of one diagnostic over time."""

import numpy as np
import pytest

from simkit.errors import UserError
from simkit.render.animate import render
from simkit.render.views import new_painter
from tests.tables import every


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


def test_page_has_the_requested_pixels(settings):
    chosen = settings("chart", "energy")
    assert new_painter(*run_of([1, 2]), "Title", chosen, (322, 200)).image(0).shape == (200, 322, 3)
    height, width, _ = new_painter(*run_of([1, 2]), "Title", chosen, 640 * 360).image(0).shape
    assert (width, height) == (640, 360)


def test_quantities_that_are_not_one_number_per_frame_are_refused(settings, tmp_path):
    with pytest.raises(UserError, match="no diagnostic is 'enrgy'; did you mean 'energy'"):
        new_painter(*run_of([1, 2]), "Title", settings("chart", "enrgy"), (320, 180))
    with pytest.raises(UserError, match="'energy' has 1 axes per frame"):
        new_painter({}, {"energy": np.zeros((2, 3))}, {}, "Title", settings("chart", "energy"), (320, 180))
    with pytest.raises(UserError, match="there is nothing to draw: no number is diagnosed"):
        render({}, {}, {}, "Title", settings("chart", "energy"), tmp_path / "a.gif")
    with pytest.raises(UserError, match="no frames to draw"):
        render({}, {"energy": np.zeros(0)}, {}, "Title", settings("chart", "energy"), tmp_path / "a.gif")


def test_the_axis_of_time_has_its_unit(settings):
    painter = new_painter(*run_of([1, 2]), "Title", settings("chart", "energy", "energy", "J"), units={"time": "s"})
    assert (painter._axes.get_xlabel(), painter._axes.get_ylabel()) == ("time (s)", "energy (J)")


@every("values", [1e5 + np.sin(np.arange(9.0)), 1e-7 * np.arange(9.0) - 1])
def test_long_labels_and_numbers_stay_on_the_page(values, settings):
    label = "mean kinetic energy of the particles in the upper half of the channel"
    painter = new_painter(*run_of(values), "Title", settings("chart", "energy", label), (640, 360))
    box, page = painter._axes.yaxis.get_tightbbox(), painter._figure.bbox
    assert box.x0 >= 0 and box.y0 >= 0 and box.y1 <= page.height
