"""Shapes against a plane."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.algebra.vector import vector
from simkit.rigid.collision.against_plane import SLOTS, against_plane
from tests.rigid.collision.shapes import COUNT, array, random_shapes
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")
NORMAL, OFFSET = np.array([0.48, -0.6, 0.64]), 0.3


@functools.cache
def touching(kind):
    return jax.jit(lambda placed: against_plane(kind, placed, vector(jnp.asarray(NORMAL[None])), jnp.asarray([OFFSET])))


@every("kind", ["sphere", "capsule", "box"])
def test_least_gap_is_that_of_the_lowest_point(kind):
    shapes = random_shapes(kind, 0, 1.0)
    position, normal, gap = array(touching(kind)(shapes.placed()))
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
    position, normal, gap = array(touching("box")(shapes.placed()))
    for k in range(COUNT):
        inside = (position[:, k] + gap[:, k, None] / 2 * normal[:, k] - shapes.center[k]) @ shapes.turning[k]
        signs = inside / shapes.halves[k]
        assert np.abs(np.abs(signs) - 1).max() < 1e-13
        axis = np.abs(NORMAL @ shapes.turning[k]).argmax()
        assert np.all(np.sign(signs[:, axis]) == -np.sign(NORMAL @ shapes.turning[k][:, axis]))
        assert len(np.unique(np.sign(signs), axis=0)) == 4
