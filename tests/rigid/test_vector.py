"""Vectors by components: the algebra is that of NumPy, and nothing is NaN where a length is zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.algebra.vector import (
    Vector,
    norm,
    normalize,
    perpendicular,
    stacked,
    vector,
)
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

# A dozen operations on numbers of order 1 lose at most some tens of rounding units of 1.1e-16.
ROUNDING = 1e-14
UP = Vector(jnp.zeros(()), jnp.zeros(()), jnp.ones(()))


def both_modes(function, at):
    """Return the Jacobian of a function in reverse and in forward mode, which must agree."""
    reverse, forward = jax.jacrev(function)(at), jax.jacfwd(function)(at)
    np.testing.assert_allclose(reverse, forward, atol=ROUNDING * (1 + np.abs(forward).max()))
    return reverse


def test_the_length_of_a_zero_vector_has_a_zero_derivative():
    at = jnp.zeros(3)
    assert norm(vector(at)) == 0
    np.testing.assert_array_equal(both_modes(lambda a: norm(vector(a)), at), 0)


def test_the_length_has_its_derivative_next_to_zero():
    # 1e-150 squared is the smallest normal number there is, but for a few digits.
    for size in (1e-150, 1e-8, 1.0):
        direction = np.array([2.0, -1.0, 2.0]) / 3
        slope = both_modes(lambda a: norm(vector(a)), jnp.asarray(size * direction))
        np.testing.assert_allclose(slope, direction, rtol=ROUNDING)


def test_the_direction_of_a_zero_vector_is_the_fallback():
    at = jnp.zeros(3)
    np.testing.assert_array_equal(stacked(normalize(vector(at), UP)), [0, 0, 1])
    np.testing.assert_array_equal(both_modes(lambda a: stacked(normalize(vector(a), UP)), at), 0)


@every("size", [1e-150, 1e-8, 1.0])
def test_a_direction_has_the_derivative_of_a_projection(size):
    direction = np.array([2.0, -1.0, 2.0]) / 3
    slope = both_modes(lambda a: stacked(normalize(vector(a), UP)), jnp.asarray(size * direction))
    np.testing.assert_allclose(size * slope, np.eye(3) - np.outer(direction, direction), atol=ROUNDING)


def directions():
    """Return random unit vectors, all axes and their opposites, and some a rounding unit away from those."""
    draws = np.random.default_rng(2).normal(size=(1000, 3))
    axes = np.concatenate([np.eye(3), -np.eye(3)])
    near = [axis + tiny * np.roll(axis, 1) for axis in axes for tiny in (1e-300, -1e-17, 1e-9, -1e-5)]
    # The sign of z decides between two formulas: either side of it, and both zeros.
    flat = [[np.cos(a), np.sin(a), z] for a in np.linspace(0, 6, 7) for z in (0.0, -0.0, 1e-12, -1e-12)]
    everything = np.concatenate([draws, axes, near, flat])
    return everything / np.linalg.norm(everything, axis=1, keepdims=True)


def test_perpendiculars_form_a_right_handed_frame_in_every_direction():
    n = directions()
    first, second = perpendicular(vector(jnp.asarray(n)))
    frame = np.stack([stacked(first), stacked(second), n], axis=1)
    np.testing.assert_allclose(frame @ np.moveaxis(frame, 1, 2), np.broadcast_to(np.eye(3), frame.shape), atol=ROUNDING)
    np.testing.assert_allclose(np.linalg.det(frame), 1, atol=ROUNDING)
