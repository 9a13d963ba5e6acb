"""Derivatives within a memory limit, the longer ones."""

import jax
import numpy as np
import pytest

from simkit.core import budget, gradient
from simkit.core.objective import Objective
from simkit.core.rollout import nesting_within, trajectory
from tests.core.test_budget import KEY, SIZE, compiled_size, state_size
from tests.core.toys import descent, oscillator


def test_a_derivative_within_a_budget_is_the_same(x64):
    simulation, key = oscillator(512), jax.random.key(KEY)
    objective = Objective(simulation, "energy", 20_000, every=10, reduce="mean")
    wrt = ["frequency"]
    expected = gradient.jitted(objective, wrt, "reverse", simulation.params, key)(simulation.params, key)
    plain = budget.fitted(objective, wrt, "reverse", simulation.params, key, memory=10**9)
    tight = budget.fitted(objective, wrt, "reverse", simulation.params, key, memory=2_000_000)
    assert tight.needed <= 2_000_000 < plain.needed
    assert tight.nesting.levels > plain.nesting.levels
    for found in (plain, tight):
        value, status, derivative = found(simulation.params, key)
        assert int(status) == int(expected[1])
        np.testing.assert_allclose(value, expected[0], rtol=1e-13)
        np.testing.assert_allclose(derivative["frequency"], expected[2]["frequency"], rtol=1e-11)


def test_the_error_of_a_small_budget_has_the_memory_needed():
    simulation, key = oscillator(SIZE), jax.random.key(KEY)
    objective = Objective(simulation, "energy", 1000)
    with pytest.raises(budget.NoRoomError) as caught:
        budget.fitted(objective, "frequency", "reverse", simulation.params, key, memory=50_000)
    assert caught.value.needed > 50_000
    again = budget.fitted(objective, "frequency", "reverse", simulation.params, key, memory=caught.value.needed)
    assert again.needed <= caught.value.needed


def test_a_budget_of_bytes_serves_trajectories():
    simulation, key = oscillator(SIZE), jax.random.key(KEY)

    def loss(memory):
        run = trajectory(simulation, 1000, 10, memory=memory)
        return jax.jit(jax.value_and_grad(lambda params: run(params, key)[2]["energy"].sum()))(simulation.params)

    (value, derivative), (same, by_bytes) = loss("balanced"), loss(1_500_000)
    np.testing.assert_allclose(value, same, rtol=1e-6)
    for name in derivative:
        np.testing.assert_allclose(derivative[name], by_bytes[name], rtol=1e-4)


@pytest.mark.parametrize(("steps", "times"), [(100_000, 3), (1_000_000, 10)])
def test_memory_of_long_runs_is_a_few_times_that_of_a_thousand_steps(steps, times):
    thousand = compiled_size(1000, "balanced")
    assert compiled_size(steps, thousand) <= times * thousand


def test_derivatives_that_hold_no_states_are_not_cut():
    key = jax.random.key(KEY)
    for objective, mode in (
        (Objective(oscillator(SIZE), "energy", 1000), "forward"),
        (Objective(descent(), "length", 1000), "reverse"),
    ):
        wrt = list(objective.simulation.params)[:1]
        assert budget.fitted(objective, wrt, mode, objective.simulation.params, key, memory=10**8).nesting is None


@pytest.mark.parametrize(("steps", "memory"), [(1000, 40_000_000), (1000, 3_000_000), (100_000, 2_000_000)])
def test_predicted_number_of_states_matches_the_compiled_program(steps, memory):
    nesting = nesting_within((steps,), state_size(), memory)
    assert nesting.states * state_size() <= memory
    # A few arrays of one step are no states.
    assert 0 <= compiled_size(steps, memory) - nesting.states * state_size() <= 8 * state_size()
