"""Points of contact of shapes, and bodies that overlap at the start."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from simkit.errors import UserError
from simkit.rigid.algebra.vector import vector
from simkit.rigid.bodies.bodies import gather
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.collision.against_plane import SLOTS, against_plane
from simkit.rigid.collision.boxes import WIDER
from simkit.rigid.collision.pairs import check_apart
from simkit.rigid.planes import floor
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.sphere import sphere
from tests.rigid.collision.shapes import COUNT, Shapes, array, random_shapes, touching
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


def stacked_boxes(seed, gap):
    """Return boxes lying flat on others, turned about the vertical and shifted, and the polygons they share."""
    random = np.random.default_rng(seed)
    a, b = random_shapes("box", seed, 0.0), random_shapes("box", seed + 1, 0.0)
    yaw = random.uniform(0, 2 * np.pi, COUNT)
    flat = np.broadcast_to(np.eye(3), (COUNT, 3, 3))
    turned = Rotation.from_euler("z", yaw[:, None]).as_matrix()
    center = np.column_stack([random.uniform(-0.3, 0.3, (COUNT, 2)), a.halves[:, 2] + b.halves[:, 2] + gap])
    lower, upper = Shapes(0 * center, flat, b.halves, b.radius), Shapes(center, turned, a.halves, a.radius)
    return upper, lower, [_common(upper[k], lower[k]) for k in range(COUNT)]


def _common(upper, lower):
    """Return the corners of the upper box's base cut to the lower box's top, after Sutherland and Hodgman."""
    signs = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    polygon = upper.center[:2] + (signs * upper.halves[:2]) @ upper.turning[:2, :2].T
    for axis in (0, 1):
        for side in (1, -1):
            inside = side * polygon[:, axis] - lower.halves[axis]
            kept = []
            for k in range(len(polygon)):
                here, there = inside[k - 1], inside[k]
                if here * there < 0:
                    kept.append(polygon[k - 1] + here / (here - there) * (polygon[k] - polygon[k - 1]))
                if there <= 0:
                    kept.append(polygon[k])
            polygon = np.array(kept)
    return polygon


def test_faces_touch_in_corners_of_their_common_polygon():
    gap = 0.003
    upper, lower, polygons = stacked_boxes(11, gap)
    position, normal, found = array(touching("box", "box")(upper.placed(), lower.placed()))
    assert np.abs(found - gap).max() < 1e-12
    assert np.abs(normal - [0, 0, 1]).max() < 1e-12
    shares = []
    for k, polygon in enumerate(polygons):
        points = position[:, k, :2]
        nearest = np.linalg.norm(points[:, None] - polygon, axis=-1).min(axis=1)
        # Widening by 1e-4 of a half length moves a corner by that over the sine of the edges' angle; a corner that the
        # widened face lacks or has besides lies about as near.
        assert nearest.max() < 100 * WIDER
        shares.append(ConvexHull(points, qhull_options="QJ").volume / ConvexHull(polygon).volume)
    # Four of up to eight corners: an octagon's square has 0.707 of its area, and where several slots have one corner of
    # a triangle or a pentagon, less is left.
    assert np.median(shares) > 0.9
    assert np.quantile(shares, 0.05) > 0.65


NORMAL, OFFSET = np.array([0.48, -0.6, 0.64]), 0.3


@functools.cache
def touching_plane(kind):
    return jax.jit(lambda placed: against_plane(kind, placed, vector(jnp.asarray(NORMAL[None])), jnp.asarray([OFFSET])))


@every("kind", ["sphere", "capsule", "box"])
def test_least_gap_is_that_of_the_lowest_point(kind):
    shapes = random_shapes(kind, 0, 1.0)
    position, normal, gap = array(touching_plane(kind)(shapes.placed()))
    lowest = np.array([(shapes[k].corners() @ NORMAL).min() for k in range(COUNT)]) - shapes.radius - OFFSET
    assert gap.shape == (SLOTS[kind], COUNT)
    assert np.abs(gap.min(axis=0) - lowest).max() < 1e-14
    assert np.abs(normal - NORMAL).max() < 1e-15
    # The point of the plane and that of the surface are half a gap away.
    assert np.abs((position - gap[..., None] / 2 * normal) @ NORMAL - OFFSET).max() < 1e-14
    for slot in range(SLOTS[kind]):
        assert shapes.beyond(position[slot] + gap[slot, :, None] / 2 * normal[slot]).max() < 1e-14


def test_a_box_has_the_four_corners_of_the_face_nearest_to_the_plane():
    shapes = random_shapes("box", 1, 1.0)
    position, normal, gap = array(touching_plane("box")(shapes.placed()))
    for k in range(COUNT):
        inside = (position[:, k] + gap[:, k, None] / 2 * normal[:, k] - shapes.center[k]) @ shapes.turning[k]
        signs = inside / shapes.halves[k]
        assert np.abs(np.abs(signs) - 1).max() < 1e-13
        axis = np.abs(NORMAL @ shapes.turning[k]).argmax()
        assert np.all(np.sign(signs[:, axis]) == -np.sign(NORMAL @ shapes.turning[k][:, axis]))
        assert len(np.unique(np.sign(signs), axis=0)) == 4


# A cube of 0.2 m and two balls of 0.1 m radius on a floor: all of size 0.1 m.
HEIGHTS, PLACES = (0.1, 0.1, 0.1), (0.0, 0.2, 0.4)


def check(places=PLACES, heights=HEIGHTS):
    bodies = gather([box(1.0, (0.2, 0.2, 0.2)), sphere(1.0, 0.1), sphere(1.0, 0.1)])
    center = np.column_stack([places, (0.0, 0.0, 0.0), heights])
    check_apart(bodies, motion_of(bodies, vector(center)), floor())


def test_overlaps_within_a_thousandth_of_the_size_are_accepted():
    check()
    check(places=(0.0, 0.2 - 0.9e-4, 0.4), heights=(0.1 - 0.9e-4, 0.1, 0.1))


@every(
    ("changes", "message"),
    [
        ({"places": (0.0, 0.2 - 1.2e-4, 0.4)}, r"bodies 0 \(box\) and 1 \(sphere\) overlap by 0.00012 m at the start"),
        ({"places": (0.0, 0.2, 0.35)}, r"bodies 1 \(sphere\) and 2 \(sphere\) overlap by 0.05 m at the start"),
        ({"places": (0.4, 0.2, 0.4)}, r"bodies 0 \(box\) and 2 \(sphere\) overlap by 0.2 m at the start"),
        ({"heights": (0.05, 0.1, 0.1)}, r"body 0 \(box\) and plane 0 overlap by 0.05 m at the start; move them apart"),
    ],
)
def test_bodies_that_overlap_are_refused(changes, message):
    with pytest.raises(UserError, match=message):
        check(**changes)
