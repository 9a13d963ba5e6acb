"""Velocity Verlet: second order, reversible, without drift, and its derivatives."""

import jax
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.objective import Objective
from simkit.core.rollout import trajectory
from tests.molecular.dynamics.moving import gas, tetramer
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
