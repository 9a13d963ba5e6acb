"""Views of bodies: from the side with spin, path, apexes and target; in perspective with floor and shadows."""

import dataclasses

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from simkit.errors import UserError
from simkit.render.bodies.motion import seam
from simkit.render.bodies.perspective import PerspectivePainter
from simkit.render.bodies.side import SidePainter, apexes
from simkit.render.bodies.solids import rod
from simkit.render.style import ACCENT, BODIES
from simkit.render.views import new_painter
from tests.render.scenes import STILL, run
from tests.tables import every


def place_of(painter, x, y):
    """Return row and column of a point of the plane in a picture."""
    sheet = painter.sheet
    scale = sheet.box.width / sheet.window.width
    row = sheet.size[1] - sheet.box.bottom - (y - sheet.window.y_low) * scale
    return round(row), round(sheet.box.left + (x - sheet.window.x_low) * scale)


def test_the_ball_is_round_and_of_true_size(body_run, settings, window_of, rgb):
    painter = new_painter(*body_run(radius=0.3), "ball", settings("bodies", "position"))
    shown = window_of(painter, painter.image(0)).astype(int)
    ball = (np.abs(shown - rgb(BODIES[0])) <= 60).all(axis=-1)
    pixels = 0.6 * painter.sheet.box.width / painter.sheet.window.width
    for axis in (0, 1):
        length = np.ptp(np.flatnonzero(ball.any(axis=axis))) + 1
        # The dark edge, 0.8 points wide, lies inside the disk and is not of the ball's color.
        assert pixels - 2 * 0.8 * 100 / 72 - 2 <= length <= pixels + 1


def test_the_window_contains_the_whole_motion(body_run, settings):
    frames, *_ = run = body_run()
    window = new_painter(*run, "ball", settings("bodies", "position")).sheet.window
    x, z = frames["position"][:, 0, 0], frames["position"][:, 0, 2]
    assert window.x_low < x.min() - 0.1 and x.max() + 0.1 < window.x_high
    assert window.y_low < 0 and z.max() + 0.1 < window.y_high


def test_apexes_are_the_tops_of_the_flights(body_run):
    frames, _, _ = body_run(161)
    height = frames["position"][..., 2]
    found = apexes(height)
    assert found[:, 1].tolist() == [0, 0]
    # Restitution 0.8: the second apex has 0.64 of the first height; frames are 10 ms apart, so it is met to within
    # g (5 ms)^2 / 2 = 0.12 mm.
    np.testing.assert_allclose(height[found[:, 0], 0] - 0.1, [1.0, 0.64], atol=1.3e-4)


def test_jitter_is_not_flight():
    height = 1 + 1e-3 * np.random.default_rng(0).normal(size=(200, 1))
    height[0] = 2.0
    assert apexes(height).tolist() == [[0, 0]]


def test_the_seam_turns_with_the_ball():
    half = np.sqrt(0.5)
    level = seam(np.array([1.0, 0.0, 0.0, 0.0]))
    upright = seam(np.array([half, 0.0, half, 0.0]))
    face_on = seam(np.array([half, half, 0.0, 0.0]))
    np.testing.assert_allclose(level.line[:, 1], 0, atol=1e-12)
    np.testing.assert_allclose([level.line[:, 0].min(), level.line[:, 0].max()], [-1, 1], atol=1e-12)
    # A quarter turn about y carries the body's x axis to -z.
    np.testing.assert_allclose(upright.line[:, 0], 0, atol=1e-12)
    np.testing.assert_allclose(level.dot, [half, 0], atol=1e-12)
    np.testing.assert_allclose(upright.dot, [0, -half], atol=1e-12)
    # About x it is turned face on: the whole rim.
    np.testing.assert_allclose(np.linalg.norm(face_on.line, axis=1), 1, atol=1e-12)
    assert len(face_on.line) == 73


def test_a_vector_colors_by_its_magnitude(body_run, settings):
    frames, diagnostics, coordinates = body_run()
    frames["velocity"] = np.zeros_like(frames["position"])
    frames["velocity"][:, 0, 0] = np.linspace(-3, 1, len(frames["velocity"]))
    painter = new_painter(frames, diagnostics, coordinates, "ball", settings("bodies", "velocity", "speed", "m/s"))
    assert painter.sheet.bar.axes.get_ylabel() == "speed (m/s)"
    assert painter.sheet.bar.axes.get_ylim()[1] == pytest.approx(3.0)
    with pytest.raises(UserError, match="one number or vector for each of 1 bodies"):
        new_painter(frames, diagnostics, coordinates, "ball", settings("bodies", "target"))


SMALL, WIDE = (160, 120), (200, 150)


@pytest.fixture
def perspective(settings):
    def make(quantity="position", **more):
        return dataclasses.replace(settings("bodies", quantity), options={"camera": "perspective", **more})

    return make


@pytest.fixture
def heap():
    """A ball, a box and a capsule that fall a little and turn."""

    def make(count=4):
        fall = np.linspace(0.3, 0, count)[:, None, None] * [0, 0, 1]
        angle = np.linspace(0, 1, count)[:, None, None]
        return run(
            np.array([[0, 0, 0.5], [1.5, 0.4, 0.5], [0.2, 1.6, 0.9]]) + fall,
            np.concatenate([np.cos(angle), 0 * angle, np.sin(angle), 0 * angle], axis=-1),
            [[0, 0, 0], [0.5, 0.3, 0.4], [0, 0, 0.4]],
            [0.5, 0.0, 0.3],
        )

    return make


def seen_at(painter, point):
    """Return row and column of a point of space in a picture."""
    (column, row, _), box = painter._camera.project(np.array(point)), painter.sheet.box
    return painter.sheet.size[1] - box.bottom - box.height + int(row), box.left + int(column)


def near(image, color, within=30):
    return (np.abs(image.astype(int) - color) <= within).all(axis=-1)


def test_the_default_camera_depends_on_the_bodies(body_run, heap, settings, perspective):
    plain = settings("bodies", "position")
    assert isinstance(new_painter(*body_run(3), "t", plain, SMALL), SidePainter)
    assert isinstance(new_painter(*body_run(3), "t", perspective(), SMALL), PerspectivePainter)
    assert isinstance(new_painter(*heap(), "t", plain, SMALL), PerspectivePainter)
    # Balls that leave their plane, or strings beside it, are not seen well from the side.
    aside = run([[0, 0, 1], [1, 0.5, 1]], radius=0.2)
    strung = run([[0, 0, 1], [1, 0, 1]], radius=0.2, links=[[[0, 0, 1], [0, 0.3, 2]]])
    level = run([[0, 0, 1], [1, 0, 1]], radius=0.2, links=[[[0, 0, 1], [0, 0, 2]]])
    for frames, painter in ((aside, PerspectivePainter), (strung, PerspectivePainter), (level, SidePainter)):
        assert isinstance(new_painter(*frames, "t", plain, SMALL), painter)
    # Pictures that are compared have one camera.
    other = aside[0]
    assert isinstance(new_painter(*level, "t", plain, SMALL, alongside=[other]), PerspectivePainter)


def test_invalid_bodies_are_refused_in_one_line(heap, settings, perspective):
    frames, times, _ = heap()
    side = dataclasses.replace(settings("bodies", "position"), options={"camera": "side"})
    with pytest.raises(UserError, match='shows balls only; use camera = "perspective" for boxes and capsules'):
        new_painter(frames, times, {}, "t", side)
    for name, array, expected in (
        ("half_lengths", np.zeros((4, 3)), r"has shape \(4, 3\); give"),
        ("half_lengths", np.zeros((4, 2, 3)), r"has shape \(4, 2, 3\); give \(4, 3, 3\)"),
        ("orientation", np.zeros((4, 3, 3)), r"has shape \(4, 3, 3\); give \(4, 3, 4\)"),
        ("links", np.zeros((4, 5, 2)), r"has shape \(4, 5, 2\); give"),
        ("links", np.zeros(4), r"has shape \(4,\); give"),
        ("planes", np.zeros((4, 2, 3)), r"has shape \(4, 2, 3\); give \(4, 2, 4\)"),
        ("target", np.zeros((4, 2)), r"has shape \(4, 2\); give \(4, 3\)"),
    ):
        with pytest.raises(UserError, match=f"'{name}' {expected}"):
            new_painter(frames | {name: array}, times, {}, "t", perspective())


@every("turn", [0.0, 200.0])
def test_everything_stays_in_the_picture(heap, perspective, turn):
    for azimuth, elevation in ((None, None), (30.0, 60.0), (-90.0, 0.0)):
        chosen = perspective(azimuth=azimuth, elevation=elevation, turn=turn)
        painter = new_painter(*heap(), "t", chosen, (320, 180))
        # The frame of the window is white, and bodies keep clear of it.
        box = painter.sheet.box
        for index in range(len(painter)):
            image = painter.image(index)[180 - box.bottom - box.height : 180 - box.bottom]
            colored = np.ptp(image[:, box.left : box.left + box.width].astype(int), axis=-1) > 50
            assert colored.any()
            assert not colored[[0, -1]].any()
            assert not colored[:, [0, -1]].any()


def test_a_turning_camera_sees_other_sides_and_a_resting_one_does_not(heap, perspective):
    frames = run([[0, 0, 0.5]], half_lengths=[[0.5, 0.2, 0.5]])
    first, last = (new_painter(*frames, "t", perspective(), SMALL).image(k) for k in (0, 2))
    window = np.s_[30:]
    np.testing.assert_array_equal(first[window], last[window])
    turning = new_painter(*frames, "t", perspective(turn=90.0), SMALL)
    assert (turning.image(0)[window] != turning.image(2)[window]).any()


def test_a_body_that_is_not_a_number_is_left_out(heap, perspective):
    frames, times, _ = heap()
    alone = {name: array[:, :2] for name, array in frames.items()}
    lost = {name: array.copy() for name, array in frames.items()}
    lost["orientation"][:, 2] = np.nan
    for index in (0, 3):
        expected = new_painter(alone, times, {}, "t", perspective(), SMALL).image(index)
        np.testing.assert_array_equal(new_painter(lost, times, {}, "t", perspective(), SMALL).image(index), expected)


def test_shapes_of_one_body_have_one_color(perspective):
    frames, times, _ = run([[0, 0, 0.5], [1.5, 0, 0.5], [3, 0, 0.5]], radius=0.5)
    coordinates = {"body_of_shape": np.array([0, 4, 4])}

    def hues(coordinates):
        image = new_painter(frames, times, coordinates, "t", perspective(), (320, 180)).image(0).astype(int)
        return [near(image, np.rint(np.array(to_rgb(color)) * 255), 45).sum() > 100 for color in BODIES[:3]]

    assert hues({}) == [True, True, True]
    assert hues(coordinates) == [True, True, False]
    with pytest.raises(UserError, match=r"coordinate 'body_of_shape' has shape \(2,\); give the body of each shape"):
        new_painter(frames, times, {"body_of_shape": np.zeros(2)}, "t", perspective(), SMALL)


def test_a_run_that_failed_altogether_still_has_a_picture(perspective):
    frames, times, _ = run([[np.nan] * 3], radius=0.1)
    assert new_painter(frames, times, {}, "t", perspective(), SMALL).image(1).shape == (120, 160, 3)
    point = run([[0, 0, 0]], radius=0.0)
    assert new_painter(*point, "t", perspective(), SMALL).image(1).shape == (120, 160, 3)


@every("axis", range(3))
def test_a_ball_that_turns_about_any_axis_shows_it(axis, perspective):
    orientation = np.tile(STILL, (2, 1, 1))
    orientation[1, 0, [0, 1 + axis]] = np.cos(0.3), np.sin(0.3)
    painter = new_painter(*run([[0, 0, 0.5]], orientation=orientation, radius=0.5, count=2), "t", perspective(), SMALL)
    changed = (np.abs(painter.image(0)[30:].astype(int) - painter.image(1)[30:]) > 20).any(axis=-1)
    assert changed.sum() > 10


def test_the_floor_is_drawn_unless_bodies_extend_below_it(heap, perspective):
    frames, times, _ = heap()
    for lift, floor in ((0.0, True), (-0.2, True), (-1.0, False)):
        moved = frames | {"position": frames["position"] + [0, 0, lift]}
        image = new_painter(moved, times, {}, "t", perspective(), (320, 180)).image(3)
        # Gray a little bluish that is no shade of black on white.
        ground = near(image, [233, 237, 241], 4) | near(image, [217, 223, 230], 4)
        assert (ground.sum() > 2000) == floor


def test_slopes_are_drawn_and_the_floor_only_once(perspective):
    slope = [np.sin(0.5), 0.0, np.cos(0.5), 0.0]
    down = np.array([[np.cos(0.5), 0, -np.sin(0.5)]])
    frames, times, _ = run(down + 0.2 * np.array(slope[:3]), half_lengths=[[0.2, 0.2, 0.2]], planes=[slope])
    without = {name: array for name, array in frames.items() if name != "planes"}
    images = [new_painter(some, times, {}, "t", perspective(), SMALL).image(0) for some in (frames, without)]
    assert (images[0] < 250).any(axis=-1).sum() > (images[1] < 250).any(axis=-1).sum() + 2000
    level = run([[0, 0, 0.5]], radius=0.5, planes=[[0, 0, 1, 0]])
    bare = run([[0, 0, 0.5]], radius=0.5)
    chosen = perspective()
    np.testing.assert_array_equal(*(new_painter(*some, "t", chosen, SMALL).image(0) for some in (level, bare)))


def test_links_join_their_ends(perspective):
    frames = run([[0, 0, 1], [2, 0, 1]], radius=0.2, links=[[[0, 0, 1], [2, 0, 1]]])
    painter = new_painter(*frames, "t", perspective(), (320, 180))
    place = seen_at(painter, [1.0, 0.0, 1.0])
    with_rod = painter.image(0)[place].astype(int)
    del frames[0]["links"]
    without = new_painter(*frames, "t", perspective(), (320, 180)).image(0)[place].astype(int)
    assert with_rod.sum() < without.sum() - 100
    ends = np.array([[0.0, 1.0, 2.0], [3.0, -1.0, 0.5]])
    np.testing.assert_allclose(rod(ends, 0.1, np.ones(3)).corners(), ends, atol=1e-12)


def test_the_target_is_marked_on_the_floor_and_in_the_air(perspective, rgb):
    chosen = perspective(elevation=40.0)
    for height in (0.0, 1.2):
        frames = run([[0, 0, 0.3]], radius=0.3, target=[1.5, 0.0, height])
        painter = new_painter(*frames, "t", chosen, (640, 360))
        color = painter.image(0)[seen_at(painter, [1.5, 0.0, height])].astype(int)
        assert color.argmax() == 0
        assert color[0] > 1.5 * color[1]
        del frames[0]["target"]
        assert not near(new_painter(*frames, "t", chosen, (640, 360)).image(0), rgb(ACCENT)).any()


def test_compared_pictures_have_one_camera_and_one_floor(heap, perspective):
    frames, times, _ = heap()
    below = frames | {"position": frames["position"] * 2 - [0, 0, 3]}
    first = new_painter(frames, times, {}, "t", perspective(), SMALL, alongside=[below])
    second = new_painter(below, times, {}, "t", perspective(), SMALL, alongside=[frames])
    np.testing.assert_allclose(first._camera.eye, second._camera.eye, rtol=1e-12)
    assert first._planes == second._planes == []


def test_a_disk_that_spins_about_its_axis_shows_it(perspective):
    angle = np.array([0.0, 0.4])
    turns = np.stack([np.cos(angle), 0 * angle, 0 * angle, np.sin(angle)], axis=-1)[:, None]
    frames = run(np.tile([0.0, 0.0, 2.0], (2, 1, 1)), turns, [[0.5, 0.5, 0.1]], disk=[1.0])
    chosen = perspective(azimuth=-90.0, elevation=50.0)
    painter = new_painter(*frames, "t", chosen, WIDE)
    assert (painter.image(0) != painter.image(1)).sum() > 200
    frames[0]["disk"][:] = 0
    box = new_painter(*frames, "t", chosen, WIDE)
    assert (box.image(0) != painter.image(0)).any()


def red(image):
    """Return which pixels are the color of a path, at least half of them."""
    red, green, blue = np.moveaxis(image.astype(int), -1, 0)
    return red - np.maximum(green, blue) > 30


def test_the_path_of_a_traced_point_is_drawn_instead_of_those_of_the_centers(perspective):
    turn = np.linspace(0, np.pi, 20)
    point = np.stack([np.cos(turn), 0 * turn, 2 + np.sin(turn)], axis=-1)
    frames, diagnostics, coordinates = run(0.3 * point[:, None] + [0, 0, 1.4], radius=0.05)
    frames["trace"] = point[:, None]
    level = perspective(azimuth=-90.0, elevation=0.0)
    painter = new_painter(frames, diagnostics, coordinates, "t", level, WIDE)
    assert red(painter.image(19)).sum() > 20 and not red(painter.image(0)).any()
    assert len(painter._paths(19)) == 1
    del frames["trace"]
    assert not red(new_painter(frames, diagnostics, coordinates, "t", level, WIDE).image(19)).any()
