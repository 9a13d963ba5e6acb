"""Implicit derivatives of relaxed states: against minima that are relaxed anew, and of particles on springs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.molecular.interactions.interaction import user_energy
from simkit.molecular.minimizers import Scale
from simkit.molecular.relaxation import relaxation
from tests.molecular.packings import packing

MAX_STEPS = 20_000


def test_a_particle_on_a_spring_follows_its_anchor_at_any_scale(x64):
    def spring(x, cell, p):
        return p["strength"] / 2 * jnp.sum((x - jnp.stack([p["c"], 0 * p["c"]])) ** 2)

    simulation = relaxation(
        user_energy(spring),
        lambda params, key: jnp.zeros((1, 2)),
        params={"c": 0.3, "strength": 1.0, "stiffness": 1.0},
        scale=lambda p: Scale(length=jnp.asarray(1.0), stiffness=p["stiffness"]),
        force_tolerance=1e-12,
        force_unit=lambda p: jnp.asarray(1.0),
    )

    def place(c, stiffness, strength):
        params = {"c": c, "stiffness": stiffness, "strength": strength}
        result = converge(simulation, MAX_STEPS)(simulation.init(params, jax.random.key(0)), params)
        return result.state.descent.position[0]

    stiffness, strength = jnp.array([1.0, 57.0, 1e6]), jnp.array([1.0, 1.0, 1e-3])
    slopes = jax.jit(jax.vmap(jax.jacfwd(place), (None, 0, 0)))(0.3, stiffness, strength)
    # The minimum is at c itself: exact to the round-off of one division.
    np.testing.assert_allclose(slopes, [[1, 0]] * 3, atol=1e-12)


def check_implicit_derivative(exponent, name, forward_too):
    """Hold the derivative of the pressure of a packing against that of packings that are relaxed anew."""
    simulation = packing(particles=32, exponent=exponent, force_tolerance=1e-13)

    @jax.jit
    def relaxed(params, key):
        return converge(simulation, MAX_STEPS)(simulation.init(params, key), params)

    result = relaxed(simulation.params, jax.random.key(0))
    assert int(result.status) == Status.CONVERGED

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
