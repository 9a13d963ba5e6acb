"""Quaternions rotate as matrices do, and turning by an angular velocity is exact and smooth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.rotation import exponential, identity, multiply, rotate, turn

pytestmark = pytest.mark.usefixtures("x64")

# A few dozen operations on numbers of order 1 lose at most some tens of rounding units of 1.1e-16.
ROUNDING = 1e-14


def rodrigues(u: np.ndarray) -> np.ndarray:
    """Rotation matrix about u by the angle |u|."""
    angle = np.linalg.norm(u)
    x, y, z = u / angle
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


@pytest.mark.parametrize("angle", [1e-9, 1e-3, 0.0316, 0.0317, 1.0, 3.0, 20.0])
def test_the_exponential_is_the_rotation_by_its_angle(angle):
    u = angle * np.array([2.0, -1.0, 2.0]) / 3
    vector = np.array([0.3, -0.7, 1.1])
    np.testing.assert_allclose(rotate(exponential(jnp.asarray(u)), vector), rodrigues(u) @ vector, atol=ROUNDING)


def test_multiplication_composes_rotations():
    a, b = exponential(jnp.array([0.3, 1.0, -0.4])), exponential(jnp.array([-1.2, 0.1, 0.8]))
    vector = jnp.array([0.5, 2.0, -1.0])
    np.testing.assert_allclose(rotate(multiply(a, b), vector), rotate(a, rotate(b, vector)), atol=ROUNDING)


def test_turning_by_a_constant_angular_velocity_is_exact_in_any_number_of_steps():
    omega, time = jnp.array([3.0, -20.0, 7.0]), 2.0
    steps = 1000
    many = jax.lax.fori_loop(0, steps, lambda _, q: turn(q, omega * (time / steps)), identity())
    # Every step may add a rounding unit of 1.1e-16 or two to each component.
    np.testing.assert_allclose(many, turn(identity(), omega * time), atol=steps * 2.3e-16)


def test_orientations_stay_unit_quaternions():
    def twirl(_, q):
        return turn(q, jnp.array([0.1, -0.2, 0.3]))

    q = jax.lax.fori_loop(0, 10_000, twirl, identity())
    # Scaling to unit length at every turn leaves the rounding of one turn.
    assert abs(float(jnp.linalg.norm(q)) - 1) < 1e-15


def test_the_exponential_has_its_derivatives_at_zero():
    # exp(u/2) = 1 + u/2 - |u|^2/8 + ...: slope 1/2 of the vector part, curvature -1/4 of the scalar part.
    slope = jax.jacfwd(exponential)(jnp.zeros(3))
    curvature = jax.hessian(lambda u: exponential(u)[0])(jnp.zeros(3))
    np.testing.assert_array_equal(slope, np.vstack([np.zeros(3), np.eye(3) / 2]))
    np.testing.assert_array_equal(curvature, -np.eye(3) / 4)


def test_the_exponential_has_its_derivative_where_the_series_ends():
    for angle in (0.0316, 0.0317):  # either side of the change at |u|^2 = 1e-3
        u = angle * jnp.array([2.0, -1.0, 2.0]) / 3
        step = 1e-4
        difference = jnp.stack(
            [(exponential(u + step * e) - exponential(u - step * e)) / (2 * step) for e in jnp.eye(3)], axis=1
        )
        # Central differences err by step^2 / 6 times a third derivative of at most 1/8.
        np.testing.assert_allclose(jax.jacrev(exponential)(u), difference, atol=1e-9)
