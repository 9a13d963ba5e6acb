"""Compilation: transformations compile themselves once per shape, and not inside traced code."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.compilation import compiled, use_compilation_cache
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


def test_compiled_code_holds_no_program_of_its_own():
    run = compiled(lambda x: jnp.sin(x) + 1)
    assert "pjit" not in str(jax.make_jaxpr(run)(1.0)) and "jit" not in str(jax.make_jaxpr(jax.vmap(run))(jnp.ones(2)))
    np.testing.assert_allclose(jax.grad(run)(0.5), np.cos(0.5), rtol=1e-6)


def test_programs_are_cached_once_the_cache_is_switched_on(tmp_path, monkeypatch):
    before = jax.config.jax_compilation_cache_dir
    monkeypatch.setenv("SIMKIT_COMPILATION_CACHE", str(tmp_path / "kept"))
    try:
        assert use_compilation_cache() == tmp_path / "kept"
        assert (tmp_path / "kept").is_dir()
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
