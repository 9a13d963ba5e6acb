"""Pages of the aspect ratio of their content, and the sides of a flow around it."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from simkit.errors import UserError
from simkit.render.page import DEFAULT_PIXELS
from simkit.render.style import COLD, HOT, PAPER, WALL
from simkit.render.views import new_painter
from tests.tables import every


def field(width, height, **coordinates):
    across, up = (max(round(12 * side / max(width, height)), 4) for side in (width, height))
    x, y = (np.arange(across) + 0.5) * width / across, (np.arange(up) + 0.5) * height / up
    frames = {"speed": np.random.default_rng(0).uniform(0, 1, (1, across, up))}
    return frames, {"time": np.zeros(1)}, {"x": x, "y": y, **coordinates}


@every(("width", "height", "share"), [(1, 1, 0.55), (2, 1, 0.55), (6, 2, 0.5), (20, 4, 0.45), (1, 2, 0.42)])
def test_a_field_fills_most_of_its_page(width, height, share, settings):
    sheet = new_painter(*field(width, height), "Field", settings("field", "speed")).sheet
    assert sheet.box.width * sheet.box.height / np.prod(sheet.size) > share
    assert sheet.box.width / sheet.box.height == pytest.approx(width / height, rel=0.02)
    assert np.prod(sheet.size) == pytest.approx(DEFAULT_PIXELS, rel=0.3) and not np.any(np.mod(sheet.size, 2))


def test_a_smaller_picture_has_the_same_shape(settings):
    large, small = (
        new_painter(*field(3, 2), "Field", settings("field", "speed"), DEFAULT_PIXELS // k).sheet for k in (1, 4)
    )
    assert large.size[0] / large.size[1] == pytest.approx(small.size[0] / small.size[1], rel=0.04)


def strip(painter, side):
    """Return the colors of the line of pixels just outside one side of the window."""
    image, box = painter.image(0), painter.sheet.box
    top = len(image) - box.bottom - box.height
    rows, columns = slice(top, top + box.height), slice(box.left, box.left + box.width)
    return {
        "left": image[rows, box.left - 3],
        "right": image[rows, box.left + box.width + 2],
        "below": image[top + box.height + 2, columns],
        "above": image[top - 3, columns],
    }[side]


def is_color(pixels, name):
    return (pixels == np.rint(np.array(to_rgb(name)) * 255)).all(axis=-1)


def test_each_side_is_drawn_by_its_kind(settings):
    sides = np.array(["hot", "cold", "wall", "free_slip"])
    painter = new_painter(*field(1, 1, sides=sides), "Field", settings("field", "speed"))
    for side, color in (("left", HOT), ("right", COLD), ("below", WALL)):
        assert is_color(strip(painter, side), color).all()
    dashes = is_color(strip(painter, "above"), PAPER)
    assert 0.2 < dashes.mean() < 0.8
    for kind in ("inflow", "outflow", "periodic"):
        painter = new_painter(*field(1, 1, sides=np.array([kind] * 4)), "Field", settings("field", "speed"))
        assert all(is_color(strip(painter, side), PAPER).mean() > 0.9 for side in ("right", "above"))


def test_chevrons_of_a_moving_wall_point_along_its_velocity(settings):
    frames, diagnostics, coordinates = field(1, 1, sides=np.array(["wall"] * 4))
    images = []
    for velocity in (1.0, -1.0, 0.0):
        moving = {**frames, "side_velocity": np.array([[0.0, 0.0, 0.0, velocity]])}
        painter = new_painter(moving, diagnostics, coordinates, "Field", settings("field", "speed"))
        assert is_color(strip(painter, "below"), WALL).all()
        assert is_color(strip(painter, "above"), WALL).all() == (velocity == 0)
        images.append(painter.image(0).astype(int))
    assert (images[0] != images[1]).any()


def test_older_runs_have_walls_below_and_above(settings):
    painter = new_painter(*field(1, 1, walls=np.array([0.0, 1.0])), "Field", settings("field", "speed"))
    assert is_color(strip(painter, "below"), WALL).all() and is_color(strip(painter, "above"), WALL).all()
    assert is_color(strip(painter, "right"), PAPER).all()


def test_unknown_sides_are_refused(settings):
    with pytest.raises(UserError, match="side 'wal' is unknown; did you mean 'wall'"):
        new_painter(*field(1, 1, sides=np.array(["wal"] * 4)), "Field", settings("field", "speed"))
    with pytest.raises(UserError, match="'sides' has 2 entries"):
        new_painter(*field(1, 1, sides=np.array(["wall"] * 2)), "Field", settings("field", "speed"))
    frames, diagnostics, coordinates = field(1, 1)
    frames["side_velocity"] = np.zeros((1, 3))
    with pytest.raises(UserError, match="'side_velocity' has shape"):
        new_painter(frames, diagnostics, coordinates, "Field", settings("field", "speed"))


def test_two_planes_beside_one_another_have_a_blank_gap_and_their_own_ticks(settings):
    frames, diagnostics, coordinates = field(3, 2)
    coordinates["x_gap"], coordinates["x_ticks"] = np.array([1.5, 1.75]), np.array([[0.0, 0.0], [2.0, 7.0]])
    coordinates["axis_labels"] = np.array(["$x$ and $z$", "$y$"])
    sheet = (painter := new_painter(frames, diagnostics, coordinates, "Field", settings("field", "speed"))).sheet
    image, box = painter.image(0), sheet.box
    row = image[len(image) - box.bottom - box.height // 2, box.left : box.left + box.width]
    blank = np.flatnonzero(is_color(row, PAPER)) / box.width * 3
    assert blank.min() == pytest.approx(1.5, abs=0.02) and blank.max() == pytest.approx(1.75, abs=0.02)
    assert [text.get_text() for text in sheet.axes.get_xticklabels()] == ["0", "7"]
    assert sheet.axes.get_xlabel() == "$x$ and $z$"
    del coordinates["x_gap"]
    coordinates["y_gap"], coordinates["y_ticks"] = np.array([0.5, 1.0]), np.array([[0.5, 1.0], [1.0, -1.0]])
    painter = new_painter(frames, diagnostics, coordinates, "Field", settings("field", "speed"))
    image, box = painter.image(0), painter.sheet.box
    column = image[len(image) - box.bottom - box.height : len(image) - box.bottom, box.left + box.width // 2]
    assert is_color(column, PAPER).mean() == pytest.approx(0.25, abs=0.02)
    assert [text.get_text() for text in painter.sheet.axes.get_yticklabels()] == ["1", "\N{MINUS SIGN}1"]
    with pytest.raises(UserError, match="'x_ticks' has shape"):
        new_painter(frames, diagnostics, coordinates | {"x_ticks": np.ones(3)}, "t", settings("field", "speed"))
