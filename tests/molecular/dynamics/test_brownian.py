"""Brownian dynamics: closed forms of overdamped motion, derivatives, and what a file may ask of it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.objective import Objective
from simkit.core.rollout import segment
from simkit.molecular.dynamics import brownian
from tests.molecular.dynamics.moving import oscillators

VALUES = {"stiffness": 1.3, "mass": 1.6, "temperature": 0.7, "friction": 2.5, "time_step": 0.4}


def after(steps, count=10_000, **values):
    """Return the state after some steps from the origin."""
    simulation = oscillators(brownian, count, 3, **VALUES | values)
    start = simulation.init(simulation.params, jax.random.key(3))
    return jax.jit(segment(simulation, steps))(start, simulation.params)


def test_positions_in_a_well_have_the_canonical_variance_at_any_stable_step(x64):
    end = after(200)
    # 30,000 squares: sqrt(2 / 30,000) = 0.8 %, four of them.
    assert float(jnp.mean(end.position**2)) == pytest.approx(0.7 / 1.3, rel=0.033)
    assert float(jnp.mean(end.velocity**2)) == pytest.approx(0.7 / 1.6, rel=0.033)


def test_free_particles_diffuse_by_temperature_over_mass_and_friction(x64):
    end = after(100, stiffness=0.0)
    expected = 2 * 0.7 / (1.6 * 2.5) * 100 * 0.4
    # The first and the last deviate count half: one step less half of one.
    assert float(jnp.mean(end.position**2)) == pytest.approx(expected * (1 - 0.5 / 100), rel=0.033)


def test_without_temperature_it_is_steepest_descent(x64):
    simulation = oscillators(brownian, 4, 2, **VALUES | {"temperature": 0.0})
    start = simulation.init(simulation.params, jax.random.key(1))
    position = jnp.arange(8.0).reshape(4, 2)
    start = dataclasses.replace(start, position=position, force=-1.3 * position)
    end = jax.jit(segment(simulation, 10))(start, simulation.params)
    np.testing.assert_allclose(end.position, start.position * (1 - 0.4 * 1.3 / (1.6 * 2.5)) ** 10, rtol=1e-12)


def test_derivatives_equal_central_differences(x64):
    simulation = oscillators(brownian, 5, 3, **VALUES)
    found = gradient.check_gradient(
        Objective(simulation, "potential_energy", steps=20), simulation.params, jax.random.key(8), list(VALUES)
    )
    for name in VALUES:
        assert abs(found.derivative[name]) > 1e-7
        assert found.relative_difference[name] < 1e-6, name
