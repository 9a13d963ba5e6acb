"""Derivatives through the channel flow against closed forms and central differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment
from tests.flow.plane_channel import plane_channel

pytestmark = pytest.mark.usefixtures("x64")


def bulk_velocity(sim, steps):
    """The bulk velocity after some steps as a function of the parameters."""

    def run(params):
        state = segment(sim, steps, width=steps)(sim.init(params, jax.random.key(0)), params)
        return sim.diagnose(state, params)["bulk_velocity"]

    return jax.jit(run)


def central_difference(f, x, step):
    """The derivative to fourth order in ``step``."""
    return (8 * (f(x + step) - f(x - step)) - (f(x + 2 * step) - f(x - 2 * step))) / (12 * step)


def test_derivative_of_steady_bulk_velocity_with_respect_to_viscosity_is_analytic():
    """At fixed pressure gradient G the bulk velocity is G/(3 nu), so its derivative by nu is -G/(3 nu^2)."""
    sim = plane_channel((4, 8), length=4.0)
    gradient, viscosity = 0.7, 0.8
    # The start-up leaves exp(-pi^2/4 nu t) = exp(-2.47 * 0.8 * 15) = 1e-13, times its logarithmic derivative 30.
    run = bulk_velocity(sim, 300)

    def bulk(nu):
        return run(sim.params | {"reynolds": 1 / nu, "forcing": gradient / nu / 3, "time_step": jnp.asarray(0.05)})

    exact = -gradient / (3 * viscosity**2)
    assert bulk(viscosity) == pytest.approx(gradient / (3 * viscosity), rel=1e-11)
    assert jax.grad(bulk)(viscosity) == pytest.approx(exact, rel=1e-10)
    assert jax.jvp(bulk, (viscosity,), (1.0,))[1] == pytest.approx(exact, rel=1e-10)


def test_derivative_of_starting_bulk_velocity_with_respect_to_reynolds_number_is_analytic():
    reynolds, time, steps = 10.0, 3.0, 200
    sim = plane_channel((4, 48), length=4.0, time_step=time / steps)
    run = bulk_velocity(sim, steps)

    def bulk(reynolds):
        return run(sim.params | {"reynolds": reynolds})

    reverse = jax.grad(bulk)(reynolds)
    forward = jax.jvp(bulk, (reynolds,), (1.0,))[1]
    # The two orders of summation differ by rounding.
    assert reverse == pytest.approx(float(forward), rel=1e-12)
    # Fourth order with step 1e-2 of a function that changes over 10: (1e-3)^4 truncation, 1e-15/1e-2 rounding.
    assert reverse == pytest.approx(float(central_difference(bulk, reynolds, 1e-2)), rel=1e-9)

    # bulk = 1 - sum 6/k^4 exp(-k^2 nu t) with k = (2n + 1) pi/2, and d(nu)/d(reynolds) = -nu/reynolds.
    k = (2 * np.arange(100) + 1) * np.pi / 2
    exact = np.sum(6 / k**4 * np.exp(-(k**2) * time / reynolds) * k**2) * time * -1 / reynolds**2
    # Discretization: of second order, h^2 = 1.7e-3 times a constant of order 0.1.
    assert reverse == pytest.approx(exact, rel=3e-4)


def test_derivatives_of_a_nonlinear_flow_equal_their_central_differences():
    sim = plane_channel((8, 6), length=3.0, reynolds=50.0, perturbation=0.5, wall_velocity=0.5)

    @jax.jit
    def measure(params):
        state = segment(sim, 30, width=30)(sim.init(params, jax.random.key(0)), params)
        return sim.diagnose(state, params)["kinetic_energy"] + jnp.mean(sim.observe(state, params)["vorticity"] ** 2)

    derivatives = jax.grad(measure)(sim.params)
    for name, value in sim.params.items():
        step = 1e-3 * (0.015 if name == "time_step" else 1 + value)
        expected = central_difference(lambda x, name=name: measure(sim.params | {name: x}), value, step)
        # Fourth order: (1e-3)^4 = 1e-12 truncation, and 1e-16/1e-5 = 1e-11 rounding, magnified by less than 1e3.
        assert derivatives[name] == pytest.approx(float(expected), rel=1e-8), name
