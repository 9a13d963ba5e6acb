"""Ray intersections, shading and shadows of balls, capsules, boxes and disks."""

import numpy as np
import pytest

from simkit.render.bodies.light import Casters, Ground, Plane, covered, lamp, shadow_of, stripes
from simkit.render.bodies.motion import rotation
from simkit.render.bodies.raster import Line, draw_lines, edges, shaded, visible
from simkit.render.bodies.solids import DISK, depths, surface
from tests.render.scenes import STILL, ball, box, capsule, disk, looking
from tests.tables import every

FLOOR = Plane(np.array([0.0, 0.0, 1.0]), 0.0, np.zeros(3), 50.0, 1.0)
TURNED = np.array([0.5, -0.3, 0.7, 0.2])


def test_coincident_surfaces_show_the_first_body():
    """A ball that is the end of a capsule, as the foot of a leg: rounding of the frames must not mix their colors."""
    camera = looking(9.0, -60, 30)
    leg = capsule((0.1, 0, 0.2), orientation=TURNED)
    end = np.float32(leg.center + 1.0 * leg.axes[:, 2])
    for shift in (0.0, 2e-7, -2e-7):
        foot = ball(end + shift, radius=np.float32(0.3))
        assert (np.isfinite(depths(foot, camera, *camera.slopes(1)))).sum() > 100
        assert not (visible([leg, foot], camera).owner == 1).any()
        # What is nearer by more is seen.
        assert (visible([leg, ball(end, radius=0.301)], camera).owner == 1).any()


def gap(body, points):
    """Distance of points (3, n) to a body, negative inside."""
    place, half = np.abs(body.axes.T @ (points - body.center[:, None])), body.half_lengths[:, None]
    if body.kind == DISK:
        place, half = np.stack([np.hypot(place[0], place[1]), place[2]]), half[1:]
    away = place - half
    return np.linalg.norm(np.maximum(away, 0), axis=0) + np.minimum(away.max(axis=0), 0) - body.radius


@every(
    "body",
    [
        ball((0.2, 0.4, -0.3)),
        capsule((0.1, 0, 0.2), orientation=TURNED),
        box(half=(0.3, 0.8, 1.1), orientation=TURNED),
        disk(TURNED),
    ],
    ids=lambda body: body.kind,
)
def test_lines_of_sight_end_on_the_near_side_of_the_surface(body):
    camera = looking(9.0, -60, 30, size=(60, 45), focal=100.0)
    across, upward = camera.slopes(1)
    depth = depths(body, camera, across, upward)
    r, c = np.nonzero(np.isfinite(depth))
    assert len(r) > 150
    points, normal, _ = surface(body, camera, across[c], upward[r], depth[r, c], 0.01)
    # Seven digits are lost to the subtraction of squares at grazing lines, of sixteen.
    np.testing.assert_allclose(gap(body, points), 0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=0), 1, atol=1e-6)
    # A step along the normal leaves the body by as much: it is the direction in which the distance grows.
    np.testing.assert_allclose(gap(body, points + 1e-3 * normal), 1e-3, atol=2e-6)
    assert ((normal * (camera.eye[:, None] - points)).sum(axis=0) > -1e-5).all()
    # Lines that miss the body stay outside of it at a thousand points.
    r, c = (part[::7] for part in np.nonzero(np.isinf(depth)))
    lines = camera.forward[:, None] + np.outer(camera.right, across[c]) + np.outer(camera.up, upward[r])
    for far in np.linspace(6, 12, 1000):
        assert (gap(body, camera.eye[:, None] + far * lines) > 0).all()


def test_silhouettes_have_the_areas_of_perspective():
    camera = looking(10.0)

    def area(body):
        seen = visible([body], camera)
        return shaded([body], [shadow_of(body, lamp(-90))], camera, lamp(-90), seen)[1].sum()

    # A ball is seen under sin(angle) = r / d, hence as a disk of radius f tan(angle); a face at the distance d - h.
    # 9 samples per pixel miss the border of n pixels by about sqrt(n) / 9 of one: 0.2 % of these areas.
    assert area(ball()) == pytest.approx(np.pi * 200**2 / (10**2 - 1), rel=4e-3)
    assert area(box(half=(0.7, 1, 0.5))) == pytest.approx(4 * 0.7 * 0.5 * (200 / 9) ** 2, rel=1e-2)
    # Along its axis the near face of a disk at 9.8; from aside a rectangle, whose nearest edge, at 9 to 10, is largest.
    half = np.sqrt(0.5)
    assert area(disk([half, half, 0, 0])) == pytest.approx(np.pi * (200 / 9.8) ** 2, rel=1e-2)
    assert area(disk()) == pytest.approx(2 * 0.4 * (200 / 9.95) * (200 / 9.1), rel=3e-2)


def test_a_long_capsule_is_seen_whole():
    # It is drawn in pieces along its length: none may be missing.
    camera, body = looking(10.0), capsule(half=1.5, radius=0.05, orientation=rotated((0, 1, 0), 0.7))
    cover = np.isfinite(visible([body], camera).depth)
    across, upward = camera.slopes(3)
    np.testing.assert_array_equal(cover, np.isfinite(depths(body, camera, across, upward)))
    assert cover.sum() > 1000


def rotated(axis, angle):
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * np.array(axis)])


def test_a_turned_box_has_its_corners_where_they_project():
    camera = looking(12.0, -70, 25)
    for orientation in (STILL, TURNED, rotated((0, 0, 1), np.pi / 4)):
        body = box(half=(0.5, 1.0, 1.4), orientation=orientation)
        corners = (np.array(list(np.ndindex(2, 2, 2))) * 2 - 1) * body.half_lengths @ rotation(orientation).T
        column, row, _ = camera.project(corners)
        rows, columns = np.nonzero(np.isfinite(visible([body], camera).depth))
        # Samples are a third of a pixel apart, and a sharp corner may end between two of them.
        np.testing.assert_allclose([columns.min() / 3, columns.max() / 3], [column.min(), column.max()], atol=1.5)
        np.testing.assert_allclose([rows.min() / 3, rows.max() / 3], [row.min(), row.max()], atol=1.5)


def test_the_nearer_body_is_visible_in_any_order():
    camera, near, far = looking(10.0), ball((0, -2, 0), 0.5), ball((0, 2, 0), 1.0)
    for bodies, index in (([near, far], 0), ([far, near], 1)):
        seen = visible(bodies, camera)
        assert seen.owner[135, 180] == index
        assert set(np.unique(seen.owner)) == {-1, 0, 1}


def picture(bodies, camera, light):
    return shaded(bodies, [shadow_of(body, light) for body in bodies], camera, light, visible(bodies, camera))[0]


def test_the_side_that_faces_the_lamp_is_brighter():
    camera, light = looking(10.0), lamp(-90)
    image = picture([ball()], camera, light).sum(axis=-1)
    place = 0.7 * light.across.T @ [0, 0] + 0.8 * (light.toward - (light.toward @ camera.forward) * camera.forward)
    column, row, _ = camera.project(np.stack([place, -place]) + 0.5 * -camera.forward)
    bright, dark = image[row.astype(int), column.astype(int)]
    assert bright > 1.8 * dark


def test_a_body_between_another_and_the_lamp_shades_it():
    light, lower = lamp(-90), ball()
    upper = ball(2.5 * light.toward, 0.5)
    points = np.stack([light.toward, -light.toward, light.toward + 0.9 * light.across[0]], axis=1)
    hidden = Casters([shadow_of(lower, light), shadow_of(upper, light)], light).hidden(0, points)
    assert hidden[0] > 0.5
    assert hidden[2] == 0
    # Bodies on the far side hide nothing.
    assert Casters([shadow_of(upper, light), shadow_of(lower, light)], light).hidden(0, 3 * points[:, :1])[0] == 0


def test_a_shadow_falls_where_the_light_through_a_body_meets_the_floor():
    camera, light = looking(12.0, -70, 30, size=(160, 120)), lamp(-70)
    ground = Ground([FLOOR], camera, light, 1.0)
    for body in (ball((0.3, 0.2, 1.5), 0.4), box((-0.5, 0.6, 1.2), (0.4, 0.3, 0.2), TURNED)):
        darker = ground.color.sum(axis=-1) / ground.shadowed([shadow_of(body, light)]).sum(axis=-1)
        fall = body.center - body.center[2] / light.toward[2] * light.toward
        column, row, _ = camera.project(fall)
        place = np.unravel_index(darker.argmax(), darker.shape)
        # The umbra of the ball is a plateau; of the box it is less wide than its smallest half length, 5 pixels.
        assert np.hypot(place[1] + 0.5 - column, place[0] + 0.5 - row) < 5
        assert darker.max() > 1.4
        # Far from it the floor keeps its color.
        assert darker[110, 150] == 1


def test_a_plane_seen_from_behind_is_not_there():
    camera, light = looking(12.0, -70, -20, size=(60, 45)), lamp(-70)
    assert (Ground([FLOOR], camera, light, 1.0).color == 1).all()
    assert (Ground([FLOOR], looking(12.0, -70, 20, size=(60, 45)), light, 1.0).color < 1).any()


def test_squares_of_the_floor_are_averaged_over_a_pixel():
    generator = np.random.default_rng(0)
    for place, width in zip(generator.uniform(-9, 9, 20), generator.uniform(0.1, 5, 20), strict=True):
        points = place + width * (np.arange(100000) + 0.5) / 100000 - width / 2
        # Each of up to six borders is met to within one of the points.
        exact = np.where(np.floor(points) % 2 == 0, 1, -1).mean()
        assert stripes(np.array(place), np.array(width)) == pytest.approx(exact, abs=2 * 6 / 100000)


def test_a_line_passes_behind_nearer_bodies_only():
    camera, body = looking(10.0), ball(radius=0.5)
    seen = visible([body], camera)
    paper, ink = np.ones((90, 120, 3)), np.zeros((2, 3))
    for y, hidden in ((2.0, True), (-2.0, False)):
        line = Line(np.array([[-2.0, y, 0.0], [2.0, y, 0.0]]), ink, np.ones(2))
        image = draw_lines(paper, [line], camera, 2.0, seen)
        assert (image[44:46, 60] == 1).all() == hidden
        assert (image[44:46, 30] < 0.1).all()


def test_edges_of_a_box_are_drawn_on_its_near_faces():
    # Face on, the four edges of one face; seen from a corner, all but the three at the far one.
    assert len(edges(box(), 0, looking(10.0))) == 4
    assert len(edges(box(), 0, looking(10.0, -45, 35))) == 9


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
