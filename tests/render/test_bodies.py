"""Side view of bodies: true size, spin, path, apexes, target."""

import numpy as np
import pytest

from simkit.errors import UserError
from simkit.render.bodies.motion import seam
from simkit.render.bodies.side import apexes
from simkit.render.style import ACCENT, BODIES, FAINT
from simkit.render.views import new_painter


def test_the_ball_is_round_and_of_true_size(body_run, settings, window_of, rgb):
    frames, diagnostics, coordinates = body_run(radius=0.3)
    painter = new_painter(frames, diagnostics, coordinates, "ball", settings("bodies", "position"))
    shown = window_of(painter, painter.image(0)).astype(int)
    ball = (np.abs(shown - rgb(BODIES[0])) <= 60).all(axis=-1)
    pixels = 0.6 * painter.sheet.box.width / painter.sheet.window.width
    for axis in (0, 1):
        length = np.ptp(np.flatnonzero(ball.any(axis=axis))) + 1
        # The dark edge, 0.8 points wide, lies inside the disk and is not of the ball's color.
        assert pixels - 2 * 0.8 * 100 / 72 - 2 <= length <= pixels + 1


def test_the_window_contains_the_whole_motion(body_run, settings):
    frames, diagnostics, coordinates = body_run()
    window = new_painter(frames, diagnostics, coordinates, "ball", settings("bodies", "position")).sheet.window
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


def test_a_ghost_at_an_apex_appears_after_the_apex(body_run, settings):
    frames, diagnostics, coordinates = body_run()
    painter = new_painter(frames, diagnostics, coordinates, "ball", settings("bodies", "position"))
    frame = apexes(frames["position"][..., 2])[1, 0]
    x, z = frames["position"][frame, 0, [0, 2]]
    sheet = painter.sheet
    scale = sheet.box.width / sheet.window.width
    # Below the middle of the ghost, where no path runs.
    column = round(sheet.box.left + (x - sheet.window.x_low) * scale)
    row = round(sheet.size[1] - sheet.box.bottom - (z - 0.06 - sheet.window.y_low) * scale)
    before, after = painter.image(frame - 12)[row, column], painter.image(len(painter) - 1)[row, column]
    assert before.tolist() == [255, 255, 255]
    assert after.tolist() != before.tolist()


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


def test_the_target_is_marked(body_run, settings, rgb):
    frames, diagnostics, coordinates = body_run()
    with_target = new_painter(frames, diagnostics, coordinates, "ball", settings("bodies", "position"))
    sheet = with_target.sheet
    scale = sheet.box.width / sheet.window.width
    column = round(sheet.box.left + (1.5 - sheet.window.x_low) * scale)
    row = round(sheet.size[1] - sheet.box.bottom + sheet.window.y_low * scale)
    np.testing.assert_array_equal(with_target.image(0)[row, column], rgb(ACCENT))
    del frames["target"]
    without = new_painter(frames, diagnostics, coordinates, "ball", settings("bodies", "position"))
    assert not (without.image(0) == rgb(ACCENT)).all(axis=-1).any()


def test_a_floor_is_drawn_unless_bodies_hang_below_it(body_run, settings, rgb):
    frames, diagnostics, coordinates = body_run()
    for lift, floor in ((0.0, True), (-0.5, False)):
        moved = frames | {"position": frames["position"] + [0, 0, lift]}
        painter = new_painter(moved, diagnostics, coordinates, "ball", settings("bodies", "position"))
        image, box = painter.image(0), painter.sheet.box
        bottom = image[len(image) - box.bottom - 3, box.left + 2 : box.left + box.width - 2]
        assert (bottom == rgb(FAINT)).all() == floor


def test_a_vector_colors_by_its_magnitude(body_run, settings):
    frames, diagnostics, coordinates = body_run()
    frames["velocity"] = np.zeros_like(frames["position"])
    frames["velocity"][:, 0, 0] = np.linspace(-3, 1, len(frames["velocity"]))
    painter = new_painter(frames, diagnostics, coordinates, "ball", settings("bodies", "velocity", "speed", "m/s"))
    assert painter.sheet.bar.axes.get_ylabel() == "speed (m/s)"
    assert painter.sheet.bar.axes.get_ylim()[1] == pytest.approx(3.0)
    with pytest.raises(UserError, match="one number or vector for each of 1 bodies"):
        new_painter(frames, diagnostics, coordinates, "ball", settings("bodies", "target"))


def test_a_point_at_rest_still_has_a_window(settings):
    frames = {
        "position": np.zeros((1, 1, 3)),
        "orientation": np.array([[[1.0, 0.0, 0.0, 0.0]]]),
        "radius": np.zeros((1, 1)),
    }
    painter = new_painter(frames, {"time": np.zeros(1)}, {}, "point", settings("bodies", "position"))
    assert painter.image(0).shape == (*painter.sheet.size[::-1], 3)
    assert painter.sheet.window.height > 0
