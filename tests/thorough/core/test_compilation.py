"""Compilation: transformations compile themselves once per shape, and not inside traced code."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.converge import converge
from simkit.core.ensemble import in_flight
from simkit.core.gradient import with_derivative
from simkit.core.objective import Objective
from simkit.core.rollout import segment, trajectory
from tests.core.toys import descent, oscillator


def counted(simulation):
    """Return the simulation, and a list that grows when its step is traced or run operation by operation."""
    traced = []

    def step(state, params):
        traced.append(None)
        return simulation.step(state, params)

    return dataclasses.replace(simulation, step=step), traced


def test_bare_calls_are_compiled_once(x64):
    simulation, traced = counted(oscillator())
    params, key = simulation.params, jax.random.key(0)
    state = simulation.init(params, key)
    calls = [
        (segment(simulation, 7), (state, params)),
        (trajectory(simulation, 6, 2), (params, key)),
        (with_derivative(Objective(simulation, "energy", 10), ["frequency"]), (params, key)),
    ]
    for function, arguments in calls:
        first = function(*arguments)
        traced.clear()
        again = function(*arguments)
        assert not traced, "nothing is traced a second time"
        for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
            assert jnp.array_equal(one, other)


def test_runs_to_convergence_are_compiled_once(x64):
    simulation, traced = counted(descent(tolerance=1e-6))
    params = simulation.params
    states = jax.vmap(simulation.init, (None, 0))(params, jax.random.split(jax.random.key(0), 3))
    one = jax.tree.map(lambda leaf: leaf[0], states)
    for function, start in (
        (converge(simulation, 5000), one),
        (in_flight(simulation, lanes=2, max_steps=5000), states),
    ):
        function(start, params)
        traced.clear()
        function(start, params)
        assert not traced
