"""In-flight batching: ensembles converged in a few lanes, the longer ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.ensemble import in_flight
from tests.core.test_in_flight import MAX_STEPS, assert_same_steps_as_alone, members
from tests.core.toys import descent


@pytest.mark.parametrize("steps_per_round", [1, 5, 100])
def test_exchanging_more_or_less_often_changes_nothing(x64, steps_per_round):
    simulation = descent()
    states = members(simulation, 12)
    reference = jax.jit(in_flight(simulation, lanes=4, max_steps=MAX_STEPS))(states, simulation.params)
    run = in_flight(simulation, lanes=4, max_steps=MAX_STEPS, steps_per_round=steps_per_round)
    result = jax.jit(run)(states, simulation.params)
    np.testing.assert_array_equal(result.iterations, reference.iterations)
    np.testing.assert_allclose(result.state.position, reference.state.position, rtol=0, atol=1e-13)


def test_parameters_may_differ_between_members(x64):
    simulation = descent()
    states = members(simulation, 9)
    params = {**simulation.params, "stiffness": jnp.linspace(1.0, 3.0, 9)}
    run = in_flight(simulation, lanes=4, max_steps=MAX_STEPS, over=["stiffness"])
    together = jax.jit(run)(states, params)
    alone = jax.jit(converge(simulation, MAX_STEPS))
    for index in range(9):
        own = {**params, "stiffness": params["stiffness"][index]}
        one = alone(jax.tree.map(lambda a, i=index: a[i], states), own)
        assert int(together.iterations[index]) == int(one.iterations)
        np.testing.assert_allclose(together.state.position[index], one.state.position, rtol=0, atol=1e-13)


def test_derivative_of_every_member_is_implicit(x64):
    simulation = descent()
    states = members(simulation, 6)
    alone = converge(simulation, MAX_STEPS)

    def lengths_together(stiffness):
        params = {**simulation.params, "stiffness": stiffness}
        run = in_flight(simulation, lanes=2, max_steps=MAX_STEPS, over=["stiffness"])
        state = run(states, params).state
        return state.position[:, -1] - state.position[:, 0]

    def length_alone(stiffness, state):
        state = alone(state, {**simulation.params, "stiffness": stiffness}).state
        return state.position[-1] - state.position[0]

    stiffness = jnp.linspace(1.5, 3.0, 6)
    together = jax.jit(jax.grad(lambda s: lengths_together(s).sum()))(stiffness)
    expected = jax.jit(jax.vmap(jax.grad(length_alone)))(stiffness, states)
    # Both solve the same equations at positions that differ by round-off.
    np.testing.assert_allclose(together, expected, rtol=1e-9)
    assert float(jnp.abs(expected).min()) > 1e-3


def test_derivative_of_a_failed_member_alone_is_nan(x64):
    simulation = descent()
    states = members(simulation, 6)
    iterations = jax.jit(in_flight(simulation, lanes=3, max_steps=MAX_STEPS))(states, simulation.params).iterations
    limit = int(jnp.sort(iterations)[3])

    def lengths(rest):
        params = {**simulation.params, "rest": rest}
        state = in_flight(simulation, lanes=3, max_steps=limit, over=["rest"])(states, params).state
        return (state.position[:, -1] - state.position[:, 0]).sum()

    gradient = jax.jit(jax.grad(lengths))(jnp.full(6, simulation.params["rest"]))
    np.testing.assert_array_equal(np.isnan(gradient), iterations > limit)


def test_the_program_exports_without_host_callbacks(x64):
    simulation = descent()
    states = members(simulation, 5)
    run = jax.jit(in_flight(simulation, lanes=2, max_steps=100))
    assert "callback" not in run.lower(states, simulation.params).as_text()
    exported = jax.export.export(run)(states, simulation.params)
    np.testing.assert_array_equal(
        exported.call(states, simulation.params).iterations, run(states, simulation.params).iterations
    )


@pytest.mark.parametrize(("count", "lanes"), [(1, 4), (20, 8), (20, 64), (70, 9)])
def test_every_member_takes_the_same_steps_as_alone(x64, count, lanes):
    assert_same_steps_as_alone(count, lanes)


def test_every_member_takes_the_same_steps_as_alone_in_the_first_cases(x64):
    assert_same_steps_as_alone(7, 3)
