"""Scalar fields: colors, equal scales in x and y, gray for cells that are not finite, pages and the sides of a flow."""

import dataclasses

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from simkit.errors import UserError
from simkit.export.page.drawing import drawing_of
from simkit.render.color import color_scale
from simkit.render.field import cell_edges, resample, samples
from simkit.render.page import DEFAULT_PIXELS
from simkit.render.style import COLD, HOT, LUMINANCE, MISSING, PAPER, WALL
from simkit.render.views import Clip, new_painter
from tests.tables import every


def in_window(**ends):
    return {"options": {"window": ends}}


def cells(values):
    """Return a run of one frame of a square field, one value for each of its unit cells."""
    centers = np.arange(np.shape(values)[-1]) + 0.5
    return {"u": np.asarray(values)}, {"time": np.zeros(1)}, {"x": centers, "y": centers}


def test_a_circle_is_round_and_of_true_size(settings, window_of):
    x, y = (np.arange(400) + 0.5) / 100, (np.arange(200) + 0.5) / 100
    inside = np.hypot(x[:, None] - 2, y - 1) < 0.7
    painter = new_painter(
        {"u": inside[None].astype(float)}, {"time": np.zeros(1)}, {"x": x, "y": y}, "disk", settings("field", "u")
    )
    bright = window_of(painter, painter.image(0)) @ LUMINANCE > 128
    across, up = np.ptp(np.flatnonzero(bright.any(axis=0))) + 1, np.ptp(np.flatnonzero(bright.any(axis=1))) + 1
    pixels = 1.4 / 4 * painter.sheet.box.width
    # A pixel of rounding on each side.
    assert abs(across - pixels) <= 2
    assert abs(up - pixels) <= 2


def test_y_points_up(settings, window_of):
    rows = np.broadcast_to(np.arange(8.0), (1, 8, 8))
    painter = new_painter(*cells(rows), "rows", settings("field", "u"))
    brightness = (window_of(painter, painter.image(0)) @ LUMINANCE).mean(axis=1)
    assert brightness[0] > brightness[-1]


def test_cells_that_are_not_finite_are_gray_and_do_not_set_the_limits(settings, window_of, rgb):
    values = np.linspace(0, 1, 64).reshape(1, 8, 8).copy()
    values[0, 2, 2], values[0, 5, 5] = np.nan, np.inf
    painter = new_painter(*cells(values), "holes", settings("field", "u"))
    shown = window_of(painter, painter.image(0))
    cell = len(shown) / 8
    for i, j in ((2, 2), (5, 5)):
        pixel = shown[int((7 - j + 0.5) * cell), int((i + 0.5) * cell)]
        np.testing.assert_array_equal(pixel, rgb(MISSING))
    gray = (shown == rgb(MISSING)).all(axis=-1).mean()
    # Two of 64 cells; their outline lies within a pixel of the cells' edges.
    assert abs(gray - 2 / 64) < 2 * 4 / (64 * cell)
    low, high = painter.sheet.bar.axes.get_ylim()
    assert (low, high) == (0.0, 1.0)


def test_walls_are_drawn_where_the_domain_has_them(field_run, settings, rgb):
    frames, diagnostics, coordinates = field_run(1)
    walls = {**coordinates, "walls": np.array([-1.0, 1.0])}
    for given, expected in ((coordinates, 0), (walls, 2)):
        painter = new_painter(frames, diagnostics, given, "channel", settings("field", "speed"))
        box = painter.sheet.box
        column = painter.image(0)[:, box.left + box.width // 2]
        solid = (column == rgb(WALL)).all(axis=-1)
        bands = np.flatnonzero(np.diff(np.concatenate([[False], solid, [False]]).astype(int)) == 1)
        assert len(bands) == expected


def test_a_side_of_parts_is_a_wall_where_its_parts_are(field_run, settings, rgb):
    frames, diagnostics, coordinates = field_run(1)
    sides = np.array(["wall to -0.5, inflow to 0.5, wall", "outflow", "wall", "wall"])
    painter = new_painter(frames, diagnostics, {**coordinates, "sides": sides}, "jet", settings("field", "speed"))
    box, image = painter.sheet.box, painter.image(0)[::-1]
    solid = (image[box.bottom : box.bottom + box.height, box.left - 2] == rgb(WALL)).all(axis=-1)
    heights = -1 + 2 * (np.arange(box.height) + 0.5) / box.height
    # The ends of parts are rounded to pixels.
    assert (solid != (np.abs(heights) > 0.5)).sum() <= 2


def test_walls_of_two_planes_are_drawn_in_the_gap_between_them(settings, rgb):
    rows = np.concatenate([np.arange(8.0), np.arange(10.0, 18.0)]) + 0.5
    places = {
        "x": np.arange(16) + 0.5,
        "y": np.arange(5) + 0.5,
        "y_drawn": rows,
        "y_gap_drawn": np.array([8.0, 10.0]),
        "y_gap_sides": np.array(["periodic", "wall"]),
        "sides_drawn": np.array(["periodic", "periodic", "periodic", "wall"]),
        "axis_labels_drawn": np.array(["$x$", "$z$, plan | $y$, section"]),
    }
    painter = new_painter({"u": np.zeros((1, 16, 16))}, {"time": np.zeros(1)}, places, "planes", settings("field", "u"))
    box = painter.sheet.box
    column = painter.image(0)[::-1][:, box.left + box.width // 2]
    solid = np.flatnonzero((column == rgb(WALL)).all(axis=-1))
    edge = box.bottom + round(10 / 18 * box.height)
    assert solid.min() == edge - painter.sheet.band and edge - 1 in solid and box.bottom + box.height in solid
    words = [text.get_text() for text in painter.sheet.axes.yaxis.get_minorticklabels()]
    assert words == ["$z$, plan", "$y$, section"]


def test_tracers_follow_a_uniform_flow_around_a_body(field_run, settings):
    frames, _, coordinates = field_run(5)
    x, y = np.meshgrid(coordinates["x"], coordinates["y"], indexing="ij")
    body = np.broadcast_to(np.hypot(x - 2, y) - 0.5, frames["speed"].shape)
    flow = {**frames, "u": np.ones_like(frames["speed"]), "v": np.zeros_like(frames["speed"]), "body_distance": body}
    chosen = dataclasses.replace(settings("field", "speed"), options={"tracers": 50})
    painter = new_painter(flow, {"time": np.arange(5) / 10}, coordinates, "stream", chosen)
    places = painter._tracers.positions
    steps = np.diff(places, axis=0)
    kept = np.abs(steps[..., 1]) < 1e-12
    # Tracers advance by velocity times time, but for those that begin anew: at the end of the window or of their life.
    assert kept.mean() > 0.8 and np.allclose(steps[kept][:, 0], 0.1, atol=1e-6)
    assert (np.hypot(places[..., 0] - 2, places[..., 1]) > 0.4).mean() > 0.95
    plain = new_painter(flow, {"time": np.arange(5) / 10}, coordinates, "stream", settings("field", "speed"))
    assert (painter.image(2) != plain.image(2)).any()
    with pytest.raises(UserError, match="needs the velocity"):
        new_painter(frames, {"time": np.arange(5) / 10}, coordinates, "stream", chosen)


def test_a_body_is_drawn_where_its_distance_is_negative(field_run, settings, window_of, rgb):
    frames, diagnostics, coordinates = field_run(1)
    x, y = np.meshgrid(coordinates["x"], coordinates["y"], indexing="ij")
    distance = np.hypot(x - 2, y) - 0.5
    painter = new_painter(
        {**frames, "body_distance": distance[None]}, diagnostics, coordinates, "body", settings("field", "speed")
    )
    shown = window_of(painter, painter.image(0))
    solid = (shown == rgb(WALL)).all(axis=-1)
    # A circle of radius 1/2 in a window of 4 x 2; pixels that its edge crosses, a few along 3.1 of length, are mixed.
    assert solid.mean() == pytest.approx(np.pi / 4 / 8, rel=0.03)
    assert solid[solid.shape[0] // 2, solid.shape[1] // 2] and not solid[0].any()


def test_values_inside_a_body_do_not_set_the_limits(field_run, settings):
    frames, diagnostics, coordinates = field_run(2)
    x, y = np.meshgrid(coordinates["x"], coordinates["y"], indexing="ij")
    # The body moves: each frame has its own inside.
    distance = np.stack([np.hypot(x - at, y) - 0.5 for at in (1, 3)])
    speed = np.where(distance < 0, 100, frames["speed"])
    drawn = {"speed": speed, "body_distance": distance}
    painter = new_painter(drawn, diagnostics, coordinates, "body", settings("field", "speed"))
    high = frames["speed"][distance >= 0].max()
    assert painter.sheet.bar.axes.get_ylim() == pytest.approx((0, high))
    drawing, _ = drawing_of(Clip(drawn, diagnostics, coordinates, "body", settings("field", "speed")))
    assert drawing["scale"]["high"] == pytest.approx(high)


def test_round_off_around_a_constant_is_not_colored(settings, window_of):
    noise = 1 + 1e-8 * np.random.default_rng(0).normal(size=(1, 8, 8))
    painter = new_painter(*cells(noise), "constant", settings("field", "u"))
    shown = window_of(painter, painter.image(0)).reshape(-1, 3)
    # The constant lies between two of the 256 colors.
    assert len(np.unique(shown, axis=0)) <= 2


def test_interpolation_is_exact_for_linear_fields_on_stretched_grids():
    edges = np.tanh(np.linspace(-1.5, 1.5, 33)) / np.tanh(1.5)
    centers = (edges[1:] + edges[:-1]) / 2
    line = samples(centers, 50, *cell_edges(centers)[[0, -1]])
    pixels = resample(np.broadcast_to(3 * centers, (4, 32)), samples(np.arange(4.0), 4, -0.5, 3.5), line)[0]
    # The outer edges are mirrored from the last two centers, so the pixels span slightly other ends than the cells.
    points = np.linspace(1.5 * centers[0] - 0.5 * centers[1], 1.5 * centers[-1] - 0.5 * centers[-2], 51)
    middle = (points[1:] + points[:-1]) / 2
    within = (points[:-1] > centers[0]) & (points[1:] < centers[-1])
    assert within.sum() > 40
    # Weights are held in single precision.
    np.testing.assert_allclose(pixels[within], 3 * middle[within], atol=3e-6)


def test_no_cell_is_skipped_where_cells_are_smaller_than_pixels():
    cells = np.zeros((2, 400), np.float32)
    cells[:, 133] = 1.0
    pixels = resample(cells, samples(np.arange(2.0), 2, -0.5, 1.5), samples(np.arange(400.0), 100, -0.5, 399.5))
    # Four cells to a pixel: the bright one gives a quarter, however the samples fall on it.
    assert pixels[0].sum() == pytest.approx(0.25, rel=1e-6)


@every(
    ("coordinates", "shown", "message"),
    [
        ("xy", {"quantity": "speeed"}, r"'speeed' is unknown; did you mean 'speed'"),
        ("x", {}, "coordinate y"),
        ("xy", {"options": {"colormap": "infernno"}}, "colormap = 'infernno' is unknown; did you mean 'inferno'"),
        ("xy", {"limits": (2.0, 1.0)}, "limits"),
        ("xy", {"view": "fields"}, "unknown view 'fields'; did you mean 'field'"),
        ("xy", in_window(x=(-1.0, 2.0)), r"render.window.x = \[-1, 2\] is not within the field; choose from 0 to 4"),
        ("xy", in_window(y=(0.0, 1.5)), r"render.window.y = \[0, 1.5\] is not within the field; choose from -1 to 1"),
    ],
)
def test_what_a_field_lacks_is_named(coordinates, shown, message, field_run, settings):
    frames, diagnostics, centers = field_run(2)
    chosen = dataclasses.replace(settings("field", "speed"), **shown)
    with pytest.raises(UserError, match=message):
        new_painter(frames, diagnostics, {axis: centers[axis] for axis in coordinates}, "channel", chosen)


@every("size", [(640, 361), (64, 700), (700, 64)])
def test_every_size_is_met_exactly(field_run, settings, size):
    painter = new_painter(*field_run(2), "A title that is longer than the page", settings("field", "speed"), size)
    image = painter.image(1)
    assert image.shape == (size[1], size[0], 3)
    assert image.dtype == np.uint8


def test_a_window_shows_its_part_of_the_field(field_run, settings, window_of):
    frames, diagnostics, coordinates = field_run(1)
    walls = coordinates | {"walls": np.array(True)}
    part = dataclasses.replace(settings("field", "speed", limits=(0.0, 1.2)), **in_window(x=(1.0, 2.0), y=(0.0, 1.0)))
    painter = new_painter(frames, diagnostics, walls, "part", part)
    assert tuple(painter.sheet.window) == (1, 2, 0, 1)
    # The same cells alone; only those at the ends of the window have other neighbors.
    alone = {"speed": frames["speed"][:, 32:64, 32:]}
    near = {"x": coordinates["x"][32:64], "y": coordinates["y"][32:]}
    whole = dataclasses.replace(part, options={})
    other = new_painter(
        alone, diagnostics, near | {"sides": ["periodic", "periodic", "periodic", "wall"]}, "part", whole
    )
    inside = (slice(20, -20), slice(20, -20))
    np.testing.assert_array_equal(
        window_of(painter, painter.image(0))[inside], window_of(other, other.image(0))[inside]
    )
    # The upper wall is in the window, and the lower one is not.
    assert painter.sheet.box == other.sheet.box


def scale(values, colormap=None, limits=None, signed=True):
    return color_scale(np.array(values), colormap, limits, default="inferno", signed=signed)


def test_zero_is_in_the_middle_of_a_signed_color_scale():
    found = scale([-1.0, 0.0, 3.0])
    assert (found.colormap.name, found.low, found.high) == ("RdBu_r", -3.0, 3.0)


@every(
    ("values", "more", "name", "limits"),
    [
        ([0.0, 3.0], {}, "inferno", (0.0, 3.0)),
        ([-3.0, -1.0], {}, "inferno", (-3.0, -1.0)),
        # An undershoot of 1 % is none of the physics.
        ([-0.03, 3.0], {}, "inferno", (-0.03, 3.0)),
        ([-1.0, 3.0], {"colormap": "viridis"}, "viridis", (-1.0, 3.0)),
        ([-1.0, 3.0], {"limits": (-2.0, 2.0)}, "RdBu_r", (-2.0, 2.0)),
        ([-1.0, 3.0], {"limits": (0.0, 2.0)}, "inferno", (0.0, 2.0)),
        ([-1.0, 3.0], {"signed": False}, "inferno", (-1.0, 3.0)),
        ([0.0, 0.0], {}, "inferno", (0.0, 1.0)),
    ],
)
def test_all_else_keeps_its_map_and_its_range(values, more, name, limits):
    found = scale(values, **more)
    assert (found.colormap.name, found.low, found.high) == (name, *limits)


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
    with pytest.raises(UserError, match="coordinate 'sides' = 'wal' is unknown; did you mean 'wall'"):
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
