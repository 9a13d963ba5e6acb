"""Velocity Verlet: second order, reversible, without drift, and its derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.objective import Objective
from simkit.core.rollout import segment, trajectory
from simkit.molecular.dynamics import velocity_verlet
from tests.molecular.dynamics.moving import gas, oscillators, tetramer
from tests.molecular.dynamics.test_velocity_verlet import KEY


def test_derivative_with_respect_to_each_mass_equals_central_differences(x64):
    simulation = tetramer()
    objective = Objective(simulation, "potential_energy", steps=100)
    found = gradient.check_gradient(objective, simulation.params, jax.random.key(KEY), ["mass"])
    assert found.derivative["mass"].shape == (4,)
    assert np.abs(found.derivative["mass"]).min() > 1e-3
    assert found.relative_difference["mass"] < 1e-6


def test_liquid_conserves_momentum_and_energy_and_starts_at_its_temperature(x64):
    simulation = gas()
    _, _, found = jax.jit(trajectory(simulation, 400, 10))(simulation.params, jax.random.key(KEY))
    # 64 velocities of order one, 400 steps of forces that cancel in pairs but for round-off.
    assert np.max(found["momentum"]) < 1e-11
    # Colliding atoms meet at omega of about 25, so the energy wobbles by (omega h)^2 / 8 = 2e-3 of what is exchanged
    # between kinetic and potential energy; a neighbor missed or a force of the wrong size would be of its order.
    assert np.ptp(found["energy"]) < 0.01 * np.ptp(found["kinetic_energy"])
    # The mean of 126 squares of normal numbers has the relative standard deviation sqrt(2 / 126) = 0.126.
    assert found["temperature"][0] == pytest.approx(1.5, rel=0.4)
    degrees = 2 * (64 - 1)
    assert float(found["temperature"][0]) == pytest.approx(2 * float(found["kinetic_energy"][0]) / degrees, rel=1e-12)


def test_derivatives_through_a_run_equal_central_differences(x64):
    simulation = gas()
    objective = Objective(simulation, "potential_energy", steps=30)
    names = ["epsilon", "sigma", "mass", "temperature", "time_step"]
    found = gradient.check_gradient(objective, simulation.params, jax.random.key(KEY), names)
    for name in names:
        assert abs(found.derivative[name]) > 1e-3
        # Truncation of the difference with a relative step of 6e-6, and rounding of 1e-16 / 6e-6 of a value near 100.
        assert found.relative_difference[name] < 1e-6, name


def test_memory_of_the_derivative_grows_with_the_square_root_of_the_steps(x64):
    simulation = tetramer()

    def memory(steps):
        function = gradient.with_derivative(Objective(simulation, "energy", steps=steps), ["epsilon"])
        lowered = jax.jit(function).lower(simulation.params, jax.random.key(KEY))
        return lowered.compile().memory_analysis().temp_size_in_bytes

    # Sixteen times the steps: four times the memory, where storing every step would take sixteen.
    assert memory(6400) < 5 * memory(400)


def test_energy_does_not_drift_over_a_hundred_thousand_steps(x64):
    simulation = tetramer()
    _, _, found = jax.jit(trajectory(simulation, 100_000, 10))(simulation.params, jax.random.key(KEY))
    energy = np.asarray(found["energy"])
    wobble = energy.std()
    # The energy wobbles by about (omega h)^2 / 8, here 5e-4, of the 0.1 or so in vibrations.
    assert 1e-6 < wobble < 1e-4
    tenths = energy[1:].reshape(10, -1).mean(axis=1)
    # Over ten thousand steps the wobble averages out, but for the slow exchange of energy between vibrations, on which
    # its mean depends a little.
    assert np.ptp(tenths) < wobble
    # That wanders without a trend: the slope is within five of its standard errors, which chance passes once in a
    # thousand times (Student's t for eight degrees of freedom).
    (slope, _), covariance = np.polyfit(np.arange(10), tenths, 1, cov=True)
    assert abs(slope) < 5 * np.sqrt(covariance[0, 0])
    # Round-off of 1e-16 in a velocity of order one, a hundred thousand times at random.
    assert np.ptp(found["momentum"]) < 1e-12


def test_force_follows_params_that_change_half_a_step_later(x64):
    simulation, h = oscillators(velocity_verlet, 2, stiffness=1.0, time_step=0.1), 0.1
    state = jax.jit(segment(simulation, 5))(simulation.init(simulation.params, jax.random.key(KEY)), simulation.params)
    stiffer = simulation.step(state, {**simulation.params, "stiffness": jnp.asarray(4.0)})
    velocity = state.velocity - h / 2 * 1.0 * state.position
    position = state.position + h * velocity
    velocity = velocity - h / 2 * 4.0 * position
    np.testing.assert_allclose(stiffer.position, position, rtol=0, atol=1e-14)
    np.testing.assert_allclose(stiffer.velocity, velocity, rtol=0, atol=1e-14)
