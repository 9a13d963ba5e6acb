"""Quaternions rotate as matrices do, and turning by an angular velocity is exact and smooth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.algebra.quaternion import (
    axes_of,
    conjugate,
    exponential,
    multiply,
    rotate,
    unit,
    unrotate,
)
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

# A few dozen operations on numbers of order 1 lose at most some tens of rounding units of 1.1e-16.
ROUNDING = 1e-14


def vec(*values):
    return vector.vector(jnp.array(values))


def numbers(q):
    return quaternion.stacked(q)


def turned_by(u):
    """Return the four numbers of the rotation by a rotation vector, (3,) -> (4,)."""
    return numbers(exponential(vector.vector(u)))


def rodrigues(u: np.ndarray) -> np.ndarray:
    """Rotation matrix about u by the angle |u|."""
    angle = np.linalg.norm(u)
    x, y, z = u / angle
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


@every("angle", [1e-9, 1e-3, 0.0316, 0.0317, 1.0, 3.0, 20.0])
def test_the_exponential_is_the_rotation_by_its_angle(angle):
    u = angle * np.array([2.0, -1.0, 2.0]) / 3
    a = np.array([0.3, -0.7, 1.1])
    q = exponential(vec(*u))
    np.testing.assert_allclose(vector.stacked(rotate(q, vec(*a))), rodrigues(u) @ a, atol=ROUNDING)
    np.testing.assert_allclose(vector.stacked(unrotate(q, vec(*a))), rodrigues(u).T @ a, atol=ROUNDING)
    columns = np.stack([vector.stacked(axis) for axis in axes_of(q)], axis=1)
    np.testing.assert_allclose(columns, rodrigues(u), atol=ROUNDING)


def test_multiplication_composes_rotations():
    a, b = exponential(vec(0.3, 1.0, -0.4)), exponential(vec(-1.2, 0.1, 0.8))
    some = vec(0.5, 2.0, -1.0)
    composed, one_by_one = rotate(multiply(a, b), some), rotate(a, rotate(b, some))
    np.testing.assert_allclose(vector.stacked(composed), vector.stacked(one_by_one), atol=ROUNDING)
    np.testing.assert_allclose(numbers(multiply(a, conjugate(a))), [1, 0, 0, 0], atol=ROUNDING)


def test_the_exponential_has_its_derivatives_at_zero():
    # exp(u/2) = 1 + u/2 - |u|^2/8 + ...: slope 1/2 of the vector part, curvature -1/4 of the scalar part.
    at = jnp.zeros(3)
    np.testing.assert_array_equal(turned_by(at), [1, 0, 0, 0])
    derivatives = (jax.jacfwd(turned_by), jax.jacrev(turned_by), jax.hessian(lambda u: turned_by(u)[0]))
    *slopes, curvature = jax.jit(lambda u: [derivative(u) for derivative in derivatives])(at)
    for slope in slopes:
        np.testing.assert_array_equal(slope, np.vstack([np.zeros(3), np.eye(3) / 2]))
    np.testing.assert_array_equal(curvature, -np.eye(3) / 4)


@every("angle", [0.0316, 0.0317])  # either side of the change at |u|^2 = 1e-3
def test_the_exponential_has_its_derivative_where_the_series_ends(angle):
    u, step = angle * jnp.array([2.0, -1.0, 2.0]) / 3, 1e-4
    difference = jnp.stack(
        [(turned_by(u + step * e) - turned_by(u - step * e)) / (2 * step) for e in jnp.eye(3)], axis=1
    )
    # Central differences err by step^2 / 6 times a third derivative of at most 1/8.
    np.testing.assert_allclose(jax.jacrev(turned_by)(u), difference, atol=1e-9)


def test_the_scale_of_a_quaternion_has_no_effect_on_the_rotation_it_stands_for():
    q = quaternion.quaternion(jnp.array([0.5, -1.0, 2.0, 0.3]))
    np.testing.assert_allclose(numbers(unit(quaternion.Quaternion(3 * q.w, 3 * q.v))), numbers(unit(q)), atol=ROUNDING)
