"""Disks, pivots and traced points, as of spinning tops and linkages."""

import dataclasses

import numpy as np
import pytest

from simkit.render.bodies.light import covered, lamp, shadow_of
from simkit.render.bodies.raster import shaded, visible
from simkit.render.bodies.solids import depths, solid, surface
from simkit.render.views import new_painter
from tests.render.scenes import GREEN, STILL, looking, run
from tests.tables import every

TURNED = np.array([0.5, -0.3, 0.7, 0.2])
SMALL = (200, 150)


def disk(orientation=STILL, radius=1.0, half=0.2):
    return solid(np.zeros(3), np.array(orientation), np.array([radius, radius, half]), 0.0, GREEN, disk=True)


@pytest.fixture
def perspective(settings):
    return dataclasses.replace(
        settings("bodies", "position"), options={"camera": "perspective", "azimuth": -90.0, "elevation": 0.0}
    )


@every("elevation", [0.0, 35.0, 90.0])
def test_lines_of_sight_end_on_the_disk(elevation):
    body, camera = disk(TURNED), looking(9.0, -60, elevation, size=(60, 45), focal=100.0)
    across, upward = camera.slopes(1)
    depth = depths(body, camera, across, upward)
    r, c = np.nonzero(np.isfinite(depth))
    assert len(r) > 50
    points, normal, _ = surface(body, camera, across[c], upward[r], depth[r, c], 0.01)
    own = body.axes.T @ points
    side, height = np.hypot(own[0], own[1]), np.abs(own[2])
    # On the rim or on a face, and outside of neither.
    np.testing.assert_allclose(np.maximum(side - 1, 5 * (height - 0.2) / 5), 0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=0), 1, atol=1e-9)
    assert ((normal * (camera.eye[:, None] - points)).sum(axis=0) > -1e-6).all()


def test_a_disk_seen_along_its_axis_is_a_circle_and_from_aside_a_rectangle():
    camera, light = looking(10.0, elevation=0.0), lamp(-90)

    def area(body):
        return shaded([body], [shadow_of(body, light)], camera, light, visible([body], camera))[1].sum()

    half = np.sqrt(0.5)
    # The near face at 9.8; of the rectangle the nearest edge, at 9 to 10, is seen largest.
    assert area(disk([half, half, 0, 0])) == pytest.approx(np.pi * (200 / 9.8) ** 2, rel=1e-2)
    assert area(disk()) == pytest.approx(2 * 0.4 * (200 / 9.95) * (200 / 9.1), rel=3e-2)


def test_the_shadow_of_a_disk_is_as_wide_as_the_disk_in_every_direction():
    body, light = disk(TURNED), lamp(-90)
    shadow = shadow_of(body, light)
    angle = np.linspace(0, 2 * np.pi, 721)
    rim = np.stack([np.cos(angle), np.sin(angle), 0 * angle + 0.2])
    points = light.across @ body.axes @ np.concatenate([rim, rim * [[1], [1], [-1]]], axis=1)
    # Points half a degree apart miss the farthest one by 1e-5 of the radius.
    np.testing.assert_allclose((shadow.sides @ points).max(axis=1), shadow.widths, atol=2e-5)
    below = -3 * light.toward
    for place, dark in (((0.0, 0.0), True), ((2.5, 0.0), False), ((0.0, 2.5), False)):
        point = below + np.array(place) @ light.across
        hides = covered(shadow, light.across @ point, light.toward @ point)
        assert hides > 0.1 if dark else hides == 0


def test_a_disk_that_spins_about_its_axis_shows_it(perspective):
    angle = np.array([0.0, 0.4])
    turns = np.stack([np.cos(angle), 0 * angle, 0 * angle, np.sin(angle)], axis=-1)[:, None]
    frames = run(np.tile([0.0, 0.0, 2.0], (2, 1, 1)), turns, [[0.5, 0.5, 0.1]], disk=[1.0])
    chosen = dataclasses.replace(perspective, options=perspective.options | {"elevation": 50.0})
    painter = new_painter(*frames, "t", chosen, SMALL)
    assert (painter.image(0) != painter.image(1)).sum() > 200
    frames[0]["disk"][:] = 0
    box = new_painter(*frames, "t", chosen, SMALL)
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
    painter = new_painter(frames, diagnostics, coordinates, "t", perspective, SMALL)
    assert red(painter.image(19)).sum() > 20 and not red(painter.image(0)).any()
    assert len(painter._paths(19)) == 1
    del frames["trace"]
    assert not red(new_painter(frames, diagnostics, coordinates, "t", perspective, SMALL).image(19)).any()


def test_pivots_are_drawn_larger_than_the_rods_they_hold(perspective):
    frames = run([[0, 0, 1.0]], half_lengths=[[0, 0, 0.5]], radius=0.05, pivots=[[0.0, 0, 1.5]])
    painter = new_painter(*frames, "t", perspective, SMALL)
    rod, pin = painter._solids(0)
    assert pin.radius > rod.radius and pin.center.tolist() == [0, 0, 1.5]
    lost = run([[0, 0, 1.0]], half_lengths=[[0, 0, 0.5]], radius=0.05, pivots=[[np.nan, 0, 1.5]])
    assert len(new_painter(*lost, "t", perspective, SMALL)._solids(0)) == 1


def test_a_plate_drawn_by_its_orientation_has_two_faces(perspective):
    over = np.array([[[1.0, 0, 0, 0]], [[0, 1.0, 0, 0]]])
    frames = run(np.tile([0.0, 0.0, 2.0], (2, 1, 1)), over, [[1.0, 0.7, 0.1]])
    above = dataclasses.replace(perspective, options=perspective.options | {"elevation": 80.0})
    for quantity, differ in (("orientation", True), ("position", False)):
        painter = new_painter(*frames, "t", dataclasses.replace(above, quantity=quantity), SMALL)
        first, second = (painter.image(k)[90, 100].astype(int) for k in range(2))
        assert (np.abs(first - second).max() > 40) == differ
