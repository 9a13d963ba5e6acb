"""Derivatives within a memory limit."""

import jax
import numpy as np
import pytest

from simkit.core import budget, gradient
from simkit.core.objective import Objective
from simkit.core.pytree import size_in_bytes
from simkit.core.rematerialization import SMALL_BYTES, nesting_of, nesting_within
from simkit.core.rollout import trajectory
from tests.core.toys import descent, oscillator

KEY = 7
SIZE = 4096  # of the oscillator: a state of 32 kB


def state_size():
    simulation = oscillator(SIZE)
    return size_in_bytes(jax.eval_shape(simulation.init, simulation.params, jax.random.key(KEY)))


def compiled_size(steps, memory, **how):
    simulation = oscillator(SIZE)
    objective = Objective(simulation, "energy", steps, memory=memory, **how)
    program = jax.jit(jax.grad(objective)).lower(simulation.params, jax.random.key(KEY)).compile()
    return program.memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize(("steps", "memory"), [(1000, 40_000_000), (1000, 3_000_000), (100_000, 2_000_000)])
def test_predicted_number_of_states_matches_the_compiled_program(steps, memory):
    nesting = nesting_within((steps,), state_size(), memory)
    assert nesting.states * state_size() <= memory
    # A few arrays of one step are no states.
    assert 0 <= compiled_size(steps, memory) - nesting.states * state_size() <= 8 * state_size()


def test_predicted_number_of_states_of_frames_matches_the_compiled_program():
    nesting = nesting_within((200, 50), state_size(), 2_000_000)
    frames = 8 * SIZE * 200  # bytes that no nesting changes: what is observed need not be held, diagnostics are small
    found = compiled_size(10_000, 2_000_000, every=50, reduce="mean")
    assert abs(found - nesting.states * state_size()) <= 10 * state_size() < frames


@pytest.mark.parametrize(("steps", "times"), [(100_000, 3), (1_000_000, 10)])
def test_memory_of_long_runs_is_a_few_times_that_of_a_thousand_steps(steps, times):
    thousand = compiled_size(1000, "balanced")
    assert compiled_size(steps, thousand) <= times * thousand


def test_more_memory_computes_steps_less_often():
    found = [nesting_within((100_000,), 10**6, memory).levels for memory in (10**8, 2 * 10**8, 10**9, 10**12)]
    assert found == sorted(found, reverse=True) and found[0] > found[-1] == 2


@pytest.mark.parametrize("loops", [(1,), (7,), (97,), (1000,), (100, 10), (13, 17), (1, 4096)])
@pytest.mark.parametrize("memory", [0, 10 * SMALL_BYTES, 50 * SMALL_BYTES, 10**12])
def test_the_nesting_chosen_fits_wherever_one_does(loops, memory):
    size = SMALL_BYTES  # so that no loop of two turns is held whole for being little
    found = nesting_within(loops, size, memory)
    widths = range(4, max(loops) + 5)
    best = min((nesting_of(loops, size, width) for width in widths), key=lambda nesting: nesting.states)
    assert found.states * size <= memory or found.states <= 1.2 * best.states
    fitting = [n.levels for width in widths if (n := nesting_of(loops, size, width)).states * size <= memory]
    if fitting and found.states * size <= memory:
        assert found.levels <= min(fitting) + 1


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


def test_derivatives_that_hold_no_states_are_not_cut():
    key = jax.random.key(KEY)
    for objective, mode in (
        (Objective(oscillator(SIZE), "energy", 1000), "forward"),
        (Objective(descent(), "length", 1000), "reverse"),
    ):
        wrt = list(objective.simulation.params)[:1]
        assert budget.fitted(objective, wrt, mode, objective.simulation.params, key, memory=10**8).nesting is None


def test_a_budget_of_bytes_serves_trajectories():
    simulation, key = oscillator(SIZE), jax.random.key(KEY)

    def loss(memory):
        run = trajectory(simulation, 1000, 10, memory=memory)
        return jax.jit(jax.value_and_grad(lambda params: run(params, key)[2]["energy"].sum()))(simulation.params)

    (value, derivative), (same, by_bytes) = loss("balanced"), loss(1_500_000)
    np.testing.assert_allclose(value, same, rtol=1e-6)
    for name in derivative:
        np.testing.assert_allclose(derivative[name], by_bytes[name], rtol=1e-4)
