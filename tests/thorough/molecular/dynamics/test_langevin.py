"""Langevin dynamics: diffusion, velocity Verlet without friction, and derivatives."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.objective import Objective
from simkit.core.rollout import segment
from simkit.molecular.dynamics import langevin, velocity_verlet
from tests.molecular.dynamics.moving import gas, oscillators


def test_free_particles_diffuse_at_the_rate_of_einstein(x64):
    temperature, mass, friction, step, steps = 0.7, 1.6, 2.5, 0.02, 1000
    values = {"stiffness": 0.0, "mass": mass, "temperature": temperature, "friction": friction, "time_step": step}
    simulation = oscillators(langevin, 10_000, 3, **values)
    start = simulation.init(simulation.params, jax.random.key(3))
    end = jax.jit(segment(simulation, steps))(start, simulation.params)
    time, coefficient = steps * step, temperature / (mass * friction)
    # D = T / (m gamma); the velocities of the start are thermal, so the first steps are ballistic.
    expected = 2 * coefficient * (time - (1 - np.exp(-friction * time)) / friction)
    # 30,000 squares: sqrt(2 / 30,000) = 0.8 %, four of them; the time step adds (gamma h)^2 / 12 = 2e-4.
    assert float(jnp.mean(end.position**2)) == pytest.approx(expected, rel=0.033)
    assert float(jnp.mean(end.velocity**2)) == pytest.approx(temperature / mass, rel=0.033)


def test_without_friction_it_is_velocity_verlet(x64):
    newton, bath = gas(velocity_verlet, method="all_pairs"), gas(langevin, method="all_pairs", friction=0.0)
    state = newton.init(newton.params, jax.random.key(4))
    start = bath.init(bath.params, jax.random.key(5))
    start = dataclasses.replace(start, position=state.position, velocity=state.velocity, force=state.force)
    steps = 100
    expected = jax.jit(segment(newton, steps))(state, newton.params)
    found = jax.jit(segment(bath, steps))(start, bath.params)
    # One half step twice instead of a whole one: round-off, which 100 steps (0.5 units of time) of a chaotic gas
    # multiply by less than a hundred.
    np.testing.assert_allclose(found.position, expected.position, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.velocity, expected.velocity, rtol=0, atol=1e-11)


def test_derivatives_through_a_run_equal_central_differences(x64):
    simulation = gas(langevin, per_side=6, method="all_pairs")
    objective = Objective(simulation, "potential_energy", steps=30)
    names = ["epsilon", "mass", "temperature", "friction", "time_step"]
    found = gradient.check_gradient(objective, simulation.params, jax.random.key(6), names)
    for name in names:
        assert abs(found.derivative[name]) > 1e-3
        assert found.relative_difference[name] < 1e-6, name


def test_at_zero_friction_only_the_derivative_with_respect_to_it_is_infinite(x64):
    simulation = oscillators(langevin, 3, friction=0.0)
    objective = Objective(simulation, "energy", steps=5)
    names = ["friction", "stiffness", "mass", "temperature", "time_step"]
    _, derivative = jax.jit(gradient.with_derivative(objective, names))(simulation.params, jax.random.key(7))
    # An energy that is a root of the friction near zero.
    assert not np.isfinite(derivative.pop("friction"))
    newton = oscillators(velocity_verlet, 3)
    start = simulation.init(simulation.params, jax.random.key(7))

    def energy(params):
        state = newton.init(params, jax.random.key(7))
        state = segment(newton, 5)(dataclasses.replace(state, velocity=velocity(params)), params)
        return newton.diagnose(state, params)["energy"]

    def velocity(params):
        scale = jnp.sqrt(params["temperature"] / params["mass"])
        return scale * jax.lax.stop_gradient(start.velocity)  # drawn at temperature 1 and mass 1

    expected = jax.jit(jax.grad(energy))(newton.params)
    for name, value in derivative.items():
        assert float(value) == pytest.approx(float(expected[name]), rel=1e-9, abs=1e-12), name
