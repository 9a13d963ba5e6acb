"""Runs: steps, stops, members, means over time, and programs."""

import dataclasses
import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.averages import averaged
from simkit.core.compilation import compiled, use_compilation_cache
from simkit.core.ensemble import ensemble
from simkit.core.expressions.measures import ExpressedQuantity, with_expressions
from simkit.core.formulation import formulated_for, prefers_whole_arrays
from simkit.core.rollout import segment, trajectory
from simkit.core.simulation import Quantity, Simulation
from simkit.core.status import CAUTIONS, Status, status_of, stops
from simkit.core.tracing import Programs, kernel, traced_once
from tests.core.toys import descent, oscillator

KEY = 7


def test_states_keep_their_types_through_a_segment():
    simulation = oscillator()
    state = simulation.init(simulation.params, jax.random.key(KEY))
    advanced = jax.eval_shape(segment(simulation, 3), state, simulation.params)
    assert jax.tree.map(lambda a: a.dtype, advanced) == jax.tree.map(lambda a: jnp.asarray(a).dtype, state)


def test_numbers_of_steps_may_be_integers_of_any_kind():
    simulation = oscillator()
    state = simulation.init(simulation.params, jax.random.key(0))
    expected = segment(simulation, 4)(state, simulation.params)
    for steps in (np.int64(4), jnp.int32(4)):
        np.testing.assert_array_equal(segment(simulation, steps)(state, simulation.params).position, expected.position)
        frames = trajectory(simulation, steps, steps)(simulation.params, jax.random.key(0))[2]
        assert len(next(iter(frames.values()))) == 2
    with pytest.raises(TypeError):
        segment(simulation, 4.0)


STOP_KEY, STEPS = 5, 40


def test_which_codes_stop():
    assert {code for code in Status if not stops(np.asarray(code))} == {Status.OK, *CAUTIONS}


def test_a_simulation_without_a_status_pays_for_none():
    simulation = oscillator()
    state = simulation.init(simulation.params, jax.random.key(STOP_KEY))
    assert "is_finite" not in jax.jit(segment(simulation, STEPS)).lower(state, simulation.params).as_text()
    many = ensemble(simulation)
    states = many.init(simulation.params, jax.random.split(jax.random.key(STOP_KEY), 2))
    assert "is_finite" not in jax.jit(segment(many, STEPS)).lower(states, simulation.params).as_text()


VALUES = {"frequency": np.array([0.5, 1.0, 2.0]), "time_step": np.array([0.01, 0.02, 0.005])}


def test_status_is_one_per_member_and_a_failed_member_leaves_the_others_alone():
    simulation = oscillator()
    params = {**simulation.params, "frequency": jnp.array([1.0, jnp.nan, 2.0])}
    many = ensemble(simulation, ["frequency"])
    state = segment(many, 10)(many.init(params, jax.random.split(jax.random.key(0), 3)), params)
    assert list(status_of(many)(state, params)) == [Status.OK, Status.NON_FINITE, Status.OK]


def test_ensemble_names_the_member_dimension():
    assert ensemble(oscillator()).dimensions == {"position": ("member", "oscillator")}


def test_a_batching_rule_on_one_step_would_have_no_reverse_mode():
    # Why there is step_members; where this fails, docs/concepts.md is out of date.
    step = jax.custom_batching.custom_vmap(jnp.sin)
    step.def_vmap(lambda size, batched, x: (jnp.sin(x), True))
    assert float(jax.jvp(step, (1.0,), (1.0,))[1]) == pytest.approx(np.cos(1), rel=1e-6)
    with pytest.raises(ValueError, match="Linearization failed to produce known values"):
        jax.grad(step)(1.0)


EVERY, SKIP = 3, 4


def sample(state, params):
    return {"square": state.position[0] ** 2 * params["frequency"], "position": state.position}


def mean_oscillator(every=EVERY, skip=SKIP):
    return averaged(
        oscillator(2),
        sample,
        every=every,
        skip=skip,
        observe=lambda mean, params: {"mean_position": mean["position"]},
        diagnose=lambda mean, params: {"mean_square": mean["square"]},
        dimensions={"mean_position": ("oscillator",)},
        coordinates={"oscillator": np.arange(2)},
    )


def test_a_run_that_has_no_sample_yet_has_not_failed(x64):
    simulation = mean_oscillator()
    state = jax.jit(segment(simulation, SKIP))(simulation.init(simulation.params, jax.random.key(0)), simulation.params)
    assert np.isnan(simulation.diagnose(state, simulation.params)["mean_square"])
    assert int(status_of(simulation)(state, simulation.params)) == Status.OK


def test_cutting_a_run_changes_nothing_and_members_equal_single_runs(x64):
    simulation, key = mean_oscillator(), jax.random.key(1)
    start = simulation.init(simulation.params, key)
    run = jax.jit(segment(simulation, 5))
    twice = run(run(start, simulation.params), simulation.params)
    once = jax.jit(segment(simulation, 10))(start, simulation.params)
    for a, b in zip(jax.tree.leaves(twice.mean), jax.tree.leaves(once.mean), strict=True):
        np.testing.assert_array_equal(a, b)
    many = ensemble(simulation)
    keys = jnp.stack([key, jax.random.key(2)])
    together = jax.jit(segment(many, 10))(many.init(simulation.params, keys), simulation.params)
    np.testing.assert_allclose(together.mean["square"][0], once.mean["square"], rtol=1e-13)


def test_mean_in_single_precision_follows_a_hundred_thousand_samples():
    """The samples rise from 1000 by 1e-5 a step: without care the mean stands still once changes are rounded off."""
    rising = Simulation(
        init=lambda params, key: jnp.int32(0),
        step=lambda state, params: state + 1,
        observe=lambda state, params: {},
        diagnose=lambda state, params: {"iteration": state},
        params={"start": jnp.float32(1000)},
    )
    simulation = averaged(
        rising, lambda n, params: {"x": params["start"] + n.astype(jnp.float32) * 1e-5}, every=1, skip=0
    )
    count = 100_000
    run = jax.jit(segment(simulation, count))
    found = run(simulation.init(simulation.params, jax.random.key(0)), simulation.params).mean["x"]
    exact = np.mean(np.float64(np.float32(1000) + np.arange(1, count + 1, dtype=np.float32) * np.float32(1e-5)))
    # The exact mean of the rounded samples, to half of the last bit of 1000, 3e-5, and a bit of that for the weights.
    assert abs(float(found) - exact) < 4e-5


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


def test_what_a_simulation_with_further_quantities_is_made_of_is_not_traced_again(x64):
    simulation, counts = counting(descent(tolerance=1e-6))
    quantity = ExpressedQuantity("2 * length", Quantity("1", "twice the length"), "twice")
    assert "twice" in with_expressions(simulation, {"twice": quantity}).shapes.diagnosed
    assert counts == dict.fromkeys(FUNCTIONS, 1) | {"step": 0, "status": 0}


def test_a_kernel_is_traced_once_and_checks_concrete_arrays_as_the_plain_function_does():
    seen = []

    def function(x):
        seen.append(isinstance(x, jax.core.Tracer))
        return jnp.sin(x)

    x, called = jnp.arange(3.0), kernel(function)
    jax.jit(lambda x: called(called(x)) + called(x)).lower(x)
    with jax.default_matmul_precision("highest"):  # as inside the functions of a simulation
        jax.jit(called).lower(x)
    assert seen == [True]
    np.testing.assert_array_equal(called(x), jnp.sin(x))
    assert seen == [True, False]


def test_each_precision_has_a_trace_and_programs_of_its_own():
    seen, programs = [], Programs()
    traced = traced_once(lambda: seen.append(None) or jnp.zeros(()))
    for wide in (False, True, False, True):
        with jax.enable_x64(wide):
            assert traced().dtype == (jnp.float64 if wide else jnp.float32)
            assert programs.cached("key", lambda wide=wide: str(wide)) == str(wide)
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
        run = simulation.programs.cached("run", lambda: trajectory(simulation.unshared(), 4, 2))
        run(simulation.params, jax.random.key(0))
        assert large() is not None
        return large

    large = run_one()
    gc.collect()
    assert large() is None


def test_a_function_is_traced_once_for_each():
    @jax.jit
    def inner(x):
        return x + 1 if prefers_whole_arrays() else x - 1

    def outer(x):
        return inner(x) * 2

    x = jnp.float32(3)
    assert jax.jit(outer)(x) == 4
    with formulated_for("interpreter"):
        assert jax.jit(outer)(x) == 8
    assert jax.jit(outer)(x) == 4
