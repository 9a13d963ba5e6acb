"""Implicit derivatives of relaxed states: against minima that are relaxed anew, and of particles on springs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.molecular.interactions.interaction import user_energy
from simkit.molecular.minimizers import Scale
from simkit.molecular.relaxation import relaxation
from tests.molecular.packings import packing
from tests.molecular.resting import at_rest

MAX_STEPS = 20_000


# Where springs hold particles, relative to a common point.
CORNERS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
ANCHORS = {
    "one place": 0 * CORNERS,
    "two places": CORNERS[[0, 0, 1, 1]],
    "a line": np.arange(4.0)[:, None] * np.array([1.0, 2, -1]),
    "a plane": CORNERS[[0, 1, 2, 0]] + CORNERS[[0, 0, 0, 2]] + CORNERS[[0, 0, 0, 1]],
    "space": CORNERS,
    "a spot": 1e-9 * CORNERS,
}


@pytest.mark.parametrize("count", [1, 4])
def test_particles_on_springs_follow_their_anchors_at_any_scale(x64, count):
    def springs(x, cell, p):
        return p["strength"] / 2 * jnp.sum((x - p["anchors"] - jnp.stack([p["c"], 0 * p["c"], 0 * p["c"]])) ** 2)

    simulation = relaxation(
        user_energy(springs),
        lambda params, key: jax.random.normal(key, (count, 3)),
        params={"c": 0.3, "strength": 1.0, "stiffness": 1.0, "anchors": np.zeros((count, 3))},
        scale=lambda p: Scale(length=jnp.asarray(1.0), stiffness=p["stiffness"]),
        force_tolerance=1e-12,
        force_unit=lambda p: jnp.asarray(1.0),
    )

    def places(c, stiffness, strength, anchors):
        params = {"c": c, "stiffness": stiffness, "strength": strength, "anchors": anchors}
        result = converge(simulation, MAX_STEPS)(simulation.init(params, jax.random.key(0)), params)
        return result.state.descent.position

    stiffness, strength = jnp.array([1.0, 57.0, 1e6]), jnp.array([1.0, 1.0, 1e-3])
    over_scales = jax.vmap(jax.jacfwd(places), (None, 0, 0, None))
    anchors = jnp.asarray([each[:count] for each in ANCHORS.values()])
    slopes = jax.jit(jax.vmap(over_scales, (None, None, None, 0)))(0.3, stiffness, strength, anchors)
    # The minimum moves with c itself: exact to the round-off of one division.
    np.testing.assert_allclose(slopes, np.broadcast_to([1, 0, 0], slopes.shape), atol=1e-12)


def check_implicit_derivative(exponent, name, forward_too, particles=32):
    """Hold the derivative of the pressure of a packing against that of packings that are relaxed anew."""
    simulation = packing(particles=particles, exponent=exponent, force_tolerance=1e-13)

    result = at_rest(simulation, steps=MAX_STEPS)[0]

    def pressure(value):
        params = {**simulation.params, name: value}
        return simulation.diagnose(converge(simulation, MAX_STEPS)(result.state, params).state, params)["pressure"]

    value, step = simulation.params[name], 1e-5
    with_reverse = jax.jit(jax.value_and_grad(pressure))
    difference = (with_reverse(value + step)[0] - with_reverse(value - step)[0]) / (2 * step)
    reverse = with_reverse(value)[1]
    # Forces left at 1e-13 change the pressure by less than 1e-14, so the difference by 1e-9 beside a slope of 0.01 and
    # more: 1e-7. Its truncation is 1e-7 too. 1e-5 leaves room for contacts that open or close within the step.
    assert float(reverse) == pytest.approx(float(difference), rel=1e-5)
    if not forward_too:
        return
    forward = jax.jit(lambda value: jax.jvp(pressure, (value,), (jnp.ones_like(value),))[1])(value)
    # Two conjugate-gradient solutions, each with a residual of 2e-12 at a condition number of 330: 1e-9.
    assert float(forward) == pytest.approx(float(reverse), rel=1e-8)


def test_implicit_derivative_of_the_pressure_equals_the_relaxed_difference(x64):
    check_implicit_derivative(2.5, "packing_fraction", forward_too=False)
