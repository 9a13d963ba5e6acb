"""Gaps and normals against shortest distances by bounded least squares."""

import numpy as np
import pytest

from simkit.rigid.collision.capsules import CROSSING, FACE_SINE
from simkit.rigid.collision.separation import PREFERENCE
from tests.rigid.collision.shapes import ROUNDED, near_boxes, nearest_of_all, random_shapes, touching
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
