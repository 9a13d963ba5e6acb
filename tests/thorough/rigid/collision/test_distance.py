"""Gaps and normals against shortest distances by bounded least squares."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from simkit.rigid.collision.capsules import CROSSING, FACE_SINE
from simkit.rigid.collision.separation import PREFERENCE
from tests.rigid.collision.shapes import ROUNDED, array, near_boxes, nearest_of_all, random_shapes, touching
from tests.rigid.collision.test_distance import least
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


@every("pair", ROUNDED, ids="-".join)
def test_least_gap_is_the_distance_and_the_normal_its_direction(pair):
    a, b = (random_shapes(kind, seed, 0.7) for seed, kind in enumerate(pair))
    distance, core, direction = nearest_of_all(a, b)
    _, normal, gap = least(touching(*pair)(a.placed(), b.placed()))
    # Where cores overlap there is no shortest connection.
    apart = core > 1e-6
    assert apart.sum() > 100 and (distance[apart] < 0).sum() > 30
    error, turned = np.abs(gap - distance)[apart], np.linalg.norm(normal - direction, axis=1)[apart]
    # Bounded least squares is good to 1e-12; directions of short connections (1e-6 at least) lose six digits.
    exact = (error < 1e-10) & (turned < 1e-6)
    if "capsule" in pair and pair[0] != "sphere":
        # Capsules nearly parallel to others or to faces have their ends instead, within what the constants derive.
        size = (a.radius + b.radius)[apart]
        tilted = FACE_SINE**2 * core[apart]
        assert exact.mean() > 0.85
        assert np.all(error < 0.074 * CROSSING * size + tilted)
    else:
        assert exact.all()


@every("distance", [0.2, 0.01])
def test_closing_the_gap_of_separated_boxes_does_not_make_them_overlap(distance):
    a, b = near_boxes(distance, seed=3)
    _, normal, gap = least(touching("box", "box")(a.placed(), b.placed()))
    # Bodies that approach along the normal by no more than the gap must not overlap: the separation along an axis is at
    # least the distance over sqrt(3), and the preference of 1 % of the least half length may hide twice that.
    smallest = np.minimum(a.halves.min(axis=1), b.halves.min(axis=1))
    assert np.all(gap > distance / np.sqrt(3) - 2 * PREFERENCE * smallest)
    assert np.all(gap < distance + 2 * PREFERENCE * smallest + 1e-9)
    exact = np.abs(gap - distance) < 1e-9
    assert exact.mean() > 0.6
    direction = nearest_of_all(a, b)[2]
    assert np.linalg.norm(normal - direction, axis=1)[exact].max() < 1e-6


@every("pair", [*ROUNDED, ("box", "box")], ids="-".join)
def test_points_move_with_the_bodies(pair):
    a, b = (random_shapes(kind, seed + 20, 0.9) for seed, kind in enumerate(pair))
    turning, shift = Rotation.from_rotvec([0.3, -1.1, 0.7]).as_matrix(), np.array([0.5, -2.0, 1.0])
    touch = touching(*pair)
    position, normal, gap = array(touch(a.placed(), b.placed()))
    moved = array(touch(a.moved(turning, shift).placed(), b.moved(turning, shift).placed()))
    used = gap < 1e5
    assert np.abs(moved[2] - gap).max() < 1e-9
    # Round-off 1e-15, divided by the smallest sine of edges (1e-2) or by short connections.
    assert np.abs(moved[0] - (position @ turning.T + shift))[used].max() < 1e-9
    assert np.abs(moved[1] - normal @ turning.T)[used].max() < 1e-9


@every("pair", ROUNDED, ids="-".join)
def test_points_lie_midway_between_the_surfaces(pair):
    a, b = (random_shapes(kind, seed + 30, 0.9) for seed, kind in enumerate(pair))
    for position, normal, gap in zip(*array(touching(*pair)(a.placed(), b.placed())), strict=True):
        half = gap[:, None] / 2 * normal
        # A capsule's axis may lie beside a face by FACE_SINE of its distance and its gap still be that from the face.
        tolerance = 1e-10 + FACE_SINE * (np.abs(gap) + a.radius) * (pair == ("capsule", "box"))
        assert np.all(a.beyond(position + half) < tolerance)
        assert np.all(b.beyond(position - half) < tolerance)
