"""Functions of a record that are traced once, and programs kept with it."""

import dataclasses
import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.rollout import trajectory
from simkit.core.tracing import Programs, Traced, kernel, traced_once
from tests.core.toys import descent, oscillator

FUNCTIONS = ("init", "step", "observe", "diagnose", "status")


def counting(simulation):
    """Return the simulation, and the number of times that the Python code of each of its functions ran."""
    counts = dict.fromkeys(FUNCTIONS, 0)

    def counted(name, function):
        def run(*arguments):
            counts[name] += 1
            return function(*arguments)

        return run

    functions = {name: counted(name, getattr(simulation, name).function) for name in FUNCTIONS}
    return dataclasses.replace(simulation, **functions), counts


def test_a_function_is_traced_once_in_all_programs_that_contain_it(x64):
    simulation, counts = counting(descent(tolerance=1e-6))
    params, key = simulation.params, jax.random.key(0)
    jax.eval_shape(simulation.init, params, jax.eval_shape(jax.random.key, 0))
    start = simulation.init(params, key)
    jax.jit(trajectory(simulation, 4, 2)).lower(params, key)
    jax.vmap(simulation.step, (0, None))(jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), start), params)
    jax.jit(jax.grad(lambda params: trajectory(simulation, 4, 2)(params, key)[2]["length"][-1])).lower(params)
    assert counts == dict.fromkeys(FUNCTIONS, 1)


def test_a_function_traced_once_has_the_operations_and_derivatives_of_the_function(x64):
    def function(x):
        return {"a": jnp.sin(x) * 2, "b": jnp.sum(x)}

    traced, x = traced_once(function), jnp.arange(3.0)
    assert isinstance(traced, Traced) and traced_once(traced) is traced and traced_once(None) is None
    lowered, plain = (jax.jit(lambda x, f=f: f(x)).lower(x).as_text() for f in (traced, function))
    assert lowered == plain
    np.testing.assert_allclose(jax.jacfwd(traced)(x)["a"], jnp.diag(2 * jnp.cos(x)), rtol=1e-14)
    assert traced.returned == {"a": jax.ShapeDtypeStruct((3,), x.dtype), "b": jax.ShapeDtypeStruct((), x.dtype)}


def test_a_kernel_is_traced_once_and_checks_concrete_arrays_as_the_plain_function_does():
    seen = []

    def function(x):
        seen.append(isinstance(x, jax.core.Tracer))
        return jnp.sin(x)

    x, called = jnp.arange(3.0), kernel(function)
    jax.jit(lambda x: called(called(x)) + called(x)).lower(x)
    assert seen == [True]
    np.testing.assert_array_equal(called(x), jnp.sin(x))
    assert seen == [True, False]


def test_each_precision_has_a_trace_and_programs_of_its_own():
    seen, programs = [], Programs()
    traced = traced_once(lambda: seen.append(None) or jnp.zeros(()))
    for wide in (False, True, False, True):
        with jax.enable_x64(wide):
            assert traced().dtype == (jnp.float64 if wide else jnp.float32)
            assert programs.found("key", lambda wide=wide: str(wide)) == str(wide)
    assert len(seen) == 2


def test_constants_of_a_simulation_are_freed_with_it():
    def with_constant(simulation):
        large = jnp.arange(1000.0)
        step = simulation.step.function
        changed = dataclasses.replace(
            simulation,
            step=lambda state, params: dataclasses.replace(step(state, params), velocity=state.velocity + large[3]),
        )
        return changed, weakref.ref(large)

    def run_one():
        simulation, large = with_constant(oscillator())
        run = simulation.programs.found("run", lambda: trajectory(simulation.unshared(), 4, 2))
        run(simulation.params, jax.random.key(0))
        assert large() is not None
        return large

    large = run_one()
    gc.collect()
    assert large() is None
