"""Times of impact with their derivatives, and impulses that obey Newton, Coulomb and angular momentum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.algebra.quaternion import identity
from simkit.rigid.algebra.vector import Vector, cross, dot, norm, stacked, vector, zeros
from simkit.rigid.bounces.friction import SLIP_PER_IMPULSE
from simkit.rigid.bounces.impact import impact_impulse, time_of_impact
from simkit.rigid.bounces.sphere import Ball, push, slip_velocity
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

UP = Vector(*np.array([0.0, 0.0, 1.0]))
RADIUS = 0.13
# A dozen operations on numbers of order 1 to 10 lose at most some tens of rounding units of 1.1e-16 each.
ROUNDING = 1e-14


def sphere(velocity, angular_velocity):
    return Ball(
        position=vector(jnp.array([0.0, 0.0, RADIUS])),
        orientation=identity(jnp.zeros(())),
        velocity=vector(jnp.array(velocity)),
        angular_velocity=vector(jnp.array(angular_velocity)),
    )


@jax.jit
def after_impact(body, restitution, friction):
    approach = -body.velocity.z
    normal, tangential = impact_impulse(approach, slip_velocity(body, UP, RADIUS), restitution, friction)
    return push(body, normal * UP + tangential, zeros(normal), jnp.array(0.0), UP, RADIUS), normal, tangential


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
        return stacked(0.4 * RADIUS**2 * body.angular_velocity + cross(RADIUS * UP, body.velocity))

    before = sphere(VELOCITY, SPIN)
    after, _, _ = after_impact(before, restitution, friction)
    np.testing.assert_allclose(angular_momentum(after), angular_momentum(before), atol=ROUNDING)


@every("restitution", [0.0, 0.6, 1.0])
def test_an_impact_reverses_the_normal_velocity_by_the_restitution(restitution):
    after, _, _ = after_impact(sphere(VELOCITY, SPIN), restitution, 0.3)
    np.testing.assert_allclose(after.velocity.z, 3.0 * restitution, atol=ROUNDING)


def test_friction_in_the_cone_ends_the_slip_and_outside_it_is_mu_times_the_normal_impulse():
    before = sphere(VELOCITY, SPIN)
    slip = slip_velocity(before, UP, RADIUS)
    needed = float(norm(slip)) / SLIP_PER_IMPULSE
    for friction in (0.05, 0.4, 5.0):
        after, normal, tangential = after_impact(before, 0.6, friction)
        slip_after = slip_velocity(after, UP, RADIUS)
        if friction * normal > needed:
            np.testing.assert_allclose(stacked(slip_after), 0, atol=ROUNDING)
        else:
            np.testing.assert_allclose(norm(tangential), friction * normal, rtol=ROUNDING)
            # Against the slip, and without turning or reversing it.
            np.testing.assert_allclose(stacked(cross(slip_after, slip)), 0, atol=10 * ROUNDING)
            assert dot(slip_after, slip) > 0 > dot(tangential, slip)
