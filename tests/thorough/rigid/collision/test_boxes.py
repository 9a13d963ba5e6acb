"""Boxes that overlap, rest on each other and cross edges."""

import jax
import numpy as np
import pytest

from simkit.rigid.collision.overlay import WIDER
from simkit.rigid.collision.separation import PREFERENCE
from tests.rigid.collision.shapes import COUNT, Shapes, array, separation, touching
from tests.rigid.collision.test_boxes import overlapping

pytestmark = pytest.mark.usefixtures("x64")


def test_depth_is_the_least_overlap_along_the_fifteen_axes():
    a, b, depth = overlapping(5)
    _, normal, gap = array(touching("box", "box")(a.placed(), b.placed()))
    overlap = depth < 0
    assert 50 < overlap.sum() < 150
    error = (gap.min(axis=0) - depth)[overlap]
    smallest = np.minimum(a.halves.min(axis=1), b.halves.min(axis=1))[overlap]
    # A face is preferred to an axis that is better by at most twice 1 % of the smallest half length.
    assert np.all((error < 1e-12) & (error > -2 * PREFERENCE * smallest))
    assert np.mean(np.abs(error) < 1e-12) > 0.8
    assert np.abs(np.linalg.norm(normal, axis=-1) - 1).max() < 1e-12


def test_flush_cubes_touch_at_their_corners_in_either_precision():
    # A stack as exact as numbers allow, where every edge of one face lies on an edge of the other.
    flat = np.broadcast_to(np.eye(3), (COUNT, 3, 3))
    random = np.random.default_rng(17)
    place = random.uniform(-5, 5, (COUNT, 3))
    halves, radius = np.full((COUNT, 3), 0.1), np.zeros(COUNT)
    lower, upper = Shapes(place, flat, halves, radius), Shapes(place + np.array([0, 0, 0.2]), flat, halves, radius)
    for dtype, rounding in ((np.float64, 1e-15), (np.float32, 6e-8)):
        pairs = jax.tree.map(lambda x, dtype=dtype: x.astype(dtype), (upper.placed(), lower.placed()))
        position, normal, gap = array(touching("box", "box")(*pairs))
        # Places up to 5 m away are rounded, and so are differences.
        assert np.abs(gap).max() < 40 * rounding
        assert np.abs(normal - [0, 0, 1]).max() == 0
        signs = np.sign(position - place)[..., :2]
        expected = place + np.concatenate([0.1 * signs, np.full((4, COUNT, 1), 0.1)], axis=-1)
        assert np.abs(position - expected).max() < 40 * rounding + 0.1 * WIDER
        assert all(len({tuple(row) for row in signs[:, k]}) == 4 for k in range(COUNT))


def test_moving_a_box_by_its_depth_along_the_normal_ends_the_overlap():
    a, b, depth = overlapping(7)
    _, normal, gap = array(touching("box", "box")(a.placed(), b.placed()))
    slot, overlap = gap.argmin(axis=0), np.flatnonzero(depth < 0)
    shift = -gap.min(axis=0)[:, None] * normal[slot, np.arange(COUNT)]
    moved = a.at(a.center + shift)
    after = np.array([separation(moved[k], b[k]) for k in overlap])
    # Then they touch, so their separation is zero to rounding; more than zero where a face was preferred.
    smallest = np.minimum(a.halves.min(axis=1), b.halves.min(axis=1))[overlap]
    assert np.all((after > -1e-12) & (after < 2 * PREFERENCE * smallest))
