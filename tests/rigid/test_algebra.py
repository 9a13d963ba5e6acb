"""Vectors, quaternions, and the time of impact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.algebra import quaternion
from simkit.rigid.algebra.quaternion import axes_of, conjugate, exponential, identity, multiply, rotate, unit, unrotate
from simkit.rigid.algebra.vector import Vector, cross, dot, norm, normalize, perpendicular, stacked, vector, zeros
from simkit.rigid.bounces import SLIP_PER_IMPULSE, Ball, impact_impulse, push, slip_velocity, time_of_impact
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


def vec(*values):
    return vector(jnp.array(values))


def numbers(q):
    return quaternion.stacked(q)


def turned_by(u):
    """Return the four numbers of the rotation by a rotation vector, (3,) -> (4,)."""
    return numbers(exponential(vector(u)))


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
    np.testing.assert_allclose(stacked(rotate(q, vec(*a))), rodrigues(u) @ a, atol=ROUNDING)
    np.testing.assert_allclose(stacked(unrotate(q, vec(*a))), rodrigues(u).T @ a, atol=ROUNDING)
    columns = np.stack([stacked(axis) for axis in axes_of(q)], axis=1)
    np.testing.assert_allclose(columns, rodrigues(u), atol=ROUNDING)


def test_multiplication_composes_rotations():
    a, b = exponential(vec(0.3, 1.0, -0.4)), exponential(vec(-1.2, 0.1, 0.8))
    some = vec(0.5, 2.0, -1.0)
    composed, one_by_one = rotate(multiply(a, b), some), rotate(a, rotate(b, some))
    np.testing.assert_allclose(stacked(composed), stacked(one_by_one), atol=ROUNDING)
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


NORMAL = Vector(*np.array([0.0, 0.0, 1.0]))
RADIUS = 0.13


def moving_sphere(velocity, angular_velocity):
    return Ball(
        position=vector(jnp.array([0.0, 0.0, RADIUS])),
        orientation=identity(jnp.zeros(())),
        velocity=vector(jnp.array(velocity)),
        angular_velocity=vector(jnp.array(angular_velocity)),
    )


@jax.jit
def after_impact(body, restitution, friction):
    approach = -body.velocity.z
    normal, tangential = impact_impulse(approach, slip_velocity(body, NORMAL, RADIUS), restitution, friction)
    return (
        push(body, normal * NORMAL + tangential, zeros(normal), jnp.array(0.0), NORMAL, RADIUS),
        normal,
        tangential,
    )


@jax.jit
@jax.value_and_grad
def gap_at_impact(start):
    t = time_of_impact(*start)
    return start[0] + start[1] * t + start[2] * t**2 / 2


@every(
    ("gap", "rate", "acceleration"),
    [(1.0, 0.0, -9.81), (1.0, 3.0, -9.81), (0.5, -4.0, -9.81), (0.0, 2.0, -9.81), (0.7, -2.0, 0.0), (0.2, -3.0, 5.0)],
)
def test_the_gap_is_zero_at_the_time_of_impact_and_stays_so_when_anything_changes(gap, rate, acceleration):
    value, derivative = gap_at_impact(jnp.array([gap, rate, acceleration]))
    assert abs(value) < ROUNDING
    np.testing.assert_allclose(derivative, 0, atol=ROUNDING)


@every("start", [(1.0, 2.0, 0.0), (1.0, 0.0, 0.0), (1.0, 2.0, 1.0), (1.0, -1.0, 1.0)])
def test_a_gap_that_never_closes_has_no_time_of_impact(start):
    time, derivative = jax.jit(jax.value_and_grad(lambda s: time_of_impact(*s)))(jnp.array(start))
    assert time == np.inf
    np.testing.assert_array_equal(derivative, 0)


def test_a_gap_that_is_negative_by_rounding_counts_as_contact():
    assert time_of_impact(jnp.array(-1e-17), jnp.array(-1.0), jnp.array(-9.81)) == 0
    # Leaving the surface: the flight 2 v / g, not the contact at its start.
    leaving = time_of_impact(jnp.array(-1e-17), jnp.array(1.0), jnp.array(-9.81))
    np.testing.assert_allclose(leaving, 2 / 9.81, rtol=ROUNDING)


VELOCITY, SPIN = [2.0, -1.0, -3.0], [4.0, -20.0, 7.0]


@every("friction", [0.0, 0.05, 0.4, 5.0])
@every("restitution", [0.0, 0.6, 1.0])
def test_an_impact_keeps_the_angular_momentum_about_the_contact_point(restitution, friction):
    def angular_momentum(body):  # per mass, about a point of the floor below the center
        return stacked(0.4 * RADIUS**2 * body.angular_velocity + cross(RADIUS * NORMAL, body.velocity))

    before = moving_sphere(VELOCITY, SPIN)
    after, _, _ = after_impact(before, restitution, friction)
    np.testing.assert_allclose(angular_momentum(after), angular_momentum(before), atol=ROUNDING)


@every("restitution", [0.0, 0.6, 1.0])
def test_an_impact_reverses_the_normal_velocity_by_the_restitution(restitution):
    after, _, _ = after_impact(moving_sphere(VELOCITY, SPIN), restitution, 0.3)
    np.testing.assert_allclose(after.velocity.z, 3.0 * restitution, atol=ROUNDING)


def test_friction_in_the_cone_ends_the_slip_and_outside_it_is_mu_times_the_normal_impulse():
    before = moving_sphere(VELOCITY, SPIN)
    slip = slip_velocity(before, NORMAL, RADIUS)
    needed = float(norm(slip)) / SLIP_PER_IMPULSE
    for friction in (0.05, 0.4, 5.0):
        after, normal, tangential = after_impact(before, 0.6, friction)
        slip_after = slip_velocity(after, NORMAL, RADIUS)
        if friction * normal > needed:
            np.testing.assert_allclose(stacked(slip_after), 0, atol=ROUNDING)
        else:
            np.testing.assert_allclose(norm(tangential), friction * normal, rtol=ROUNDING)
            # Against the slip, and without turning or reversing it.
            np.testing.assert_allclose(stacked(cross(slip_after, slip)), 0, atol=10 * ROUNDING)
            assert dot(slip_after, slip) > 0 > dot(tangential, slip)
