"""Times of impact with their derivatives, and impulses that obey Newton, Coulomb and angular momentum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.algebra.vector import norm, stacked, vector
from simkit.rigid.bounces.friction import slide
from simkit.rigid.bounces.impact import time_of_impact
from tests.rigid.test_impact import RADIUS, ROUNDING, after_impact, sphere

pytestmark = pytest.mark.usefixtures("x64")


def test_friction_never_adds_energy():
    def energy(body):
        return 0.5 * norm(body.velocity) ** 2 + 0.2 * RADIUS**2 * norm(body.angular_velocity) ** 2

    draws = np.random.default_rng(0).normal(size=(50, 6))
    for draw in draws:
        before = sphere([*(3 * draw[:2]), -abs(draw[2])], 30 * draw[3:])
        for friction in (0.0, 0.1, 1.0):
            after, _, _ = after_impact(before, 1.0, friction)
            assert energy(after) <= energy(before) * (1 + ROUNDING)


def test_friction_has_finite_derivatives_at_no_slip_no_friction_and_no_time():
    def outcome(slip, duration, friction):
        impulse, shift = slide(vector(slip), duration, friction, jnp.array(9.81))
        return jnp.concatenate([stacked(impulse), stacked(shift)])

    for slip in (jnp.zeros(3), jnp.array([1.0, 0.0, 0.0]), jnp.array([1e-200, 0.0, 0.0])):
        for duration in (0.0, 0.1, 10.0):
            for friction in (0.0, 0.3):
                arguments = slip, jnp.array(duration), jnp.array(friction)
                for jacobian in jax.jacrev(outcome, argnums=(0, 1, 2))(*arguments):
                    assert np.isfinite(jacobian).all(), arguments


def test_the_time_of_impact_has_the_derivative_of_the_quadratic_formula():
    def formula(start):
        gap, rate, acceleration = start
        return (rate + jnp.sqrt(rate**2 - 2 * acceleration * gap)) / -acceleration

    start = jnp.array([1.0, 3.0, -9.81])
    time, derivative = jax.value_and_grad(lambda s: time_of_impact(*s))(start)
    np.testing.assert_allclose(time, formula(start), rtol=ROUNDING)
    np.testing.assert_allclose(derivative, jax.grad(formula)(start), rtol=ROUNDING)
    for second in (jax.hessian, lambda f: jax.jacrev(jax.jacrev(f))):
        found, expected = jax.jit(lambda s, d=second: (d(lambda s: time_of_impact(*s))(s), d(formula)(s)))(start)
        np.testing.assert_allclose(found, expected, atol=ROUNDING)
