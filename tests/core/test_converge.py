"""Convergence, and members in flight."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.converge import converge
from simkit.core.ensemble import in_flight
from simkit.core.objective import Objective
from simkit.core.simulation import Equilibrium, Simulation
from simkit.core.status import Status, converged_when
from tests.core.toys import descent, oscillator


def test_converge_reports_when_its_steps_run_out(x64):
    simulation = descent()
    state = simulation.init(simulation.params, jax.random.key(0))
    assert converge(simulation, 3)(state, simulation.params).status == Status.MAX_STEPS


def test_converge_stops_at_once_on_a_non_finite_state(x64):
    simulation = descent()
    state = simulation.init(simulation.params, jax.random.key(0))
    result = converge(simulation, 1000)(state, {**simulation.params, "stiffness": jnp.asarray(jnp.nan)})
    assert result.status == Status.NON_FINITE
    assert result.iterations == 1


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_residual_that_leaves_out_unknowns_does_not_hide_a_missing_solution(mode, x64):
    # As a packing far from rest: every particle counts as loose, and a cotangent of NaN is masked with its force.
    def residual(x, params):
        return jnp.where(jnp.array([True, True]), x - jax.lax.stop_gradient(x), x - params["pull"])

    simulation = Simulation(
        init=lambda params, key: jnp.zeros(2),
        step=lambda state, params: state + 1,
        observe=lambda state, params: {"x": state},
        diagnose=lambda state, params: {"iteration": jnp.int32(0), "work": (params["pull"] * state).sum()},
        params={"pull": jnp.asarray(1.0)},
        status=converged_when(lambda state, params: jnp.bool_(False)),
        converges=True,
        equilibrium=Equilibrium(unknowns=lambda state: state, residual=residual, replace=lambda state, x: x),
    )
    derivative = gradient.with_derivative(Objective(simulation, "work", 3), ["pull"], mode=mode)
    assert np.isnan(derivative(simulation.params, jax.random.key(0))[1]["pull"])


MAX_STEPS = 10_000


def members(simulation, count, seed=1):
    keys = jax.random.split(jax.random.key(seed), count)
    return jax.vmap(simulation.init, in_axes=(None, 0))(simulation.params, keys)


def countdown():
    """Takes as many steps as its state says, exactly; negative numbers turn into NaN instead."""
    return Simulation(
        init=lambda params, key: jax.random.uniform(key, (), params["step"].dtype),
        step=lambda state, params: jnp.where(state < 0, jnp.nan, state - params["step"]),
        observe=lambda state, params: {"state": state},
        diagnose=lambda state, params: {"iteration": jnp.int32(0)},
        params={"step": jnp.asarray(1.0, dtype=float)},
        status=converged_when(lambda state, params: state == 0),
        converges=True,
    )


def test_results_are_bit_identical_where_arithmetic_is_exact(x64):
    lengths = jnp.array([5.0, 1.0, 300.0, 2.0, 2.0, 77.0, 8.0, 9.0, 16.0, 1.0, 1.0, 40.0])
    result = jax.jit(in_flight(countdown(), lanes=3, max_steps=1000))(lengths, countdown().params)
    np.testing.assert_array_equal(result.state, 0)
    np.testing.assert_array_equal(result.iterations, lengths)
    np.testing.assert_array_equal(result.status, Status.CONVERGED)


def test_failures_are_reported_by_member_and_do_not_delay_others(x64):
    lengths = jnp.array([3.0, -1.0, 4.0, 2000.0, 0.5, 6.0, jnp.nan, 1.0])
    result = jax.jit(in_flight(countdown(), lanes=2, max_steps=100))(lengths, countdown().params)
    done, late, bad = Status.CONVERGED, Status.MAX_STEPS, Status.NON_FINITE
    # 0.5 steps over zero, goes negative and then turns into NaN.
    assert list(result.status) == [done, bad, done, late, bad, done, bad, done]
    assert list(result.iterations) == [3, 1, 4, 100, 2, 6, 1, 1]
    assert float(result.state[3]) == 1900.0


def test_a_member_that_stalls_leaves_with_that_status(x64):
    def status(state, params):
        return jnp.where(state == 0, Status.CONVERGED, jnp.where(state == 7, Status.STALLED, Status.OK)).astype(int)

    simulation = dataclasses.replace(countdown(), status=lambda state, params: status(state, params).astype(jnp.int32))
    result = jax.jit(in_flight(simulation, lanes=2, max_steps=100))(jnp.array([3.0, 9.0, 5.0, 20.0]), simulation.params)
    assert list(result.status) == [Status.CONVERGED, Status.STALLED, Status.CONVERGED, Status.STALLED]
    assert list(result.iterations) == [3, 2, 5, 13]


def test_random_keys_in_the_state_survive_the_exchange(x64):
    simulation = dataclasses.replace(
        oscillator(), status=converged_when(lambda state, params: state.time >= 1), converges=True
    )
    states = members(simulation, 5)
    result = jax.jit(in_flight(simulation, lanes=2, max_steps=1000))(states, simulation.params)
    np.testing.assert_array_equal(jax.random.key_data(result.state.key), jax.random.key_data(states.key))
    assert list(result.status) == [Status.CONVERGED] * 5
