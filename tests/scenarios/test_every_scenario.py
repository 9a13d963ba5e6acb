"""What every shipped scenario must do; one that is added is tested without a word here.

Derivatives that are not compared with central differences, and why:

| scenario | objective | parameter | why |
|---|---|---|---|
| (none)   |           |           |     |
"""

import dataclasses
import functools

import jax
import numpy as np
import pytest
from PIL import Image

from simkit.core import gradient
from simkit.core.ensemble import ensemble
from simkit.core.rollout import trajectory
from simkit.export.pictures import draw
from simkit.runtime.derivatives import objective_of
from simkit.runtime.driver import Program, drive
from simkit.runtime.loading import load, plan_of
from simkit.runtime.runs import start
from simkit.runtime.store import Store
from simkit.runtime.validation import validate
from simkit.scenario.build import build
from tests.differences import central_difference
from tests.scenarios.small import FEW_STEPS, NAMES, small, small_to_the_end

pytestmark = [pytest.mark.usefixtures("x64"), pytest.mark.parametrize("name", NAMES)]

NOT_COMPARED: set[tuple[str, str, str]] = set()


@functools.cache
def built(name):
    """Return a small scenario and its simulation, made once (in float64, which every test here runs in)."""
    scenario = small(name)
    return scenario, build(scenario)


@functools.cache
def program(name):
    """Return the compiled parts of a driven run."""
    scenario, simulation = built(name)
    return Program.of(simulation, plan_of(scenario))


def assert_same_bytes(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for one, other in zip(jax.tree.leaves(plain(a)), jax.tree.leaves(plain(b)), strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        assert one.tobytes() == other.tobytes()


def plain(tree):
    """Return a tree of NumPy arrays, random keys as their data."""

    def convert(leaf):
        is_key = isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if is_key else leaf)

    return jax.tree.map(convert, tree)


def varied(scenario, simulation, count):
    """Return parameters with a leading axis of ``count`` values each, a thousandth of the bounds apart."""
    params = {}
    for name, value in simulation.params.items():
        low, high = scenario.parameters[name].bounds
        steps = np.arange(count).reshape(-1, *[1] * value.ndim)
        params[name] = jax.numpy.asarray(np.clip(value + 1e-3 * (high - low) * steps, low, high), value.dtype)
    return params


@pytest.mark.parametrize("size", ["small", "shipped"])
def test_driven_run_equals_the_trajectory_bit_for_bit(name, size):
    scenario = small(name) if size == "small" else load(name, {**FEW_STEPS, "precision": "float64"})
    simulation = build(scenario)
    key = jax.random.key(scenario.run.seed)
    whole = jax.jit(trajectory(simulation, scenario.run.steps, scenario.run.every))
    state, observed, diagnosed = whole(simulation.params, key)
    pieces = list(drive(simulation, simulation.params, key, plan_of(scenario)))
    assert_same_bytes(pieces[-1].state, state)
    for group, arrays in (("observed", observed), ("diagnosed", diagnosed)):
        for quantity, array in arrays.items():
            driven = np.concatenate([piece.arrays[f"{group}.{quantity}"] for piece in pieces])
            assert_same_bytes(driven, np.asarray(array))


def test_members_of_an_ensemble_equal_single_runs(name):
    scenario, simulation = built(name)
    members = 3
    over = list(simulation.params)[::2]
    swept = varied(scenario, simulation, members)
    keys = jax.random.split(jax.random.key(7), members)
    run = functools.partial(trajectory, steps=scenario.run.steps, every=scenario.run.every)
    many = jax.jit(run(ensemble(simulation, over)))
    _, observed, diagnosed = many({**simulation.params, **{name: swept[name] for name in over}}, keys)
    single = jax.jit(run(simulation))
    for member in range(members):
        params = {**simulation.params, **{name: swept[name][member] for name in over}}
        _, one_observed, one_diagnosed = single(params, keys[member])
        for together, alone in ((observed, one_observed), (diagnosed, one_diagnosed)):
            # Means are NaN before their first sample.
            scale = max(float(np.max(np.abs(array), where=np.isfinite(array), initial=0)) for array in alone.values())
            for quantity, expected in alone.items():
                # Vectorized code may round the last bit differently, and a few steps multiply that by little. What is
                # made of cancellations (a divergence, say) is compared on the scale of all that is recorded.
                np.testing.assert_allclose(together[quantity][:, member], expected, rtol=1e-12, atol=1e-12 * scale)


def test_derivatives_equal_central_differences_and_each_other(name):
    scenario = small_to_the_end(name)
    simulation = build(scenario)
    key, params = jax.random.key(scenario.run.seed), simulation.params
    wrt = [parameter for parameter, value in params.items() if value.ndim == 0]
    assert scenario.objectives, "a scenario without an objective cannot be optimized"
    for objective in scenario.objectives:
        function = objective_of(scenario, simulation, objective)
        value, reverse = jax.jit(gradient.value_and_grad(function, wrt, "reverse"))(params, key)
        _, forward = jax.jit(gradient.value_and_grad(function, wrt, "forward"))(params, key)
        near = function.near(params, key)
        # A central difference with step h = eps^(1/3) |p| rounds off by eps |f| / h.
        rounding = {
            parameter: np.finfo(float).eps ** (2 / 3) * abs(value) / (abs(float(params[parameter])) or 1.0)
            for parameter in wrt
        }
        difference = central_difference(near, params, wrt)
        # A parameter at zero gives its step no scale; doubling it adds three times the error h^2 f''' / 6.
        at_zero = [parameter for parameter in wrt if params[parameter] == 0]
        wider = central_difference(near, params, at_zero, 2 * np.finfo(float).eps ** (1 / 3))
        # What only shapes the start of a relaxation has no effect. A wide step shows that above the noise with which
        # each end comes to rest.
        idle = [p for p in wrt if p not in at_zero and function.converges and abs(reverse[p]) < rounding[p]]
        difference |= central_difference(near, params, idle, 1e-3)
        assert np.isfinite(value)
        assert any(float(derivative) != 0 for derivative in reverse.values())
        # Smooth runs agree to 1e-6; a relaxation that is repeated at both ends stops within its tolerance: 1e-5.
        agreement = 1e-5 if function.converges else 1e-6
        for parameter in wrt:
            if (name, objective, parameter) in NOT_COMPARED:
                continue
            cut = abs(wider[parameter] - difference[parameter]) / 3 if parameter in at_zero else 0
            label, floor = f"d {objective} / d {parameter}", 10 * rounding[parameter] + 2 * cut
            np.testing.assert_allclose(
                reverse[parameter], difference[parameter], rtol=agreement, atol=floor, err_msg=label
            )
            # The two modes add the same numbers in another order; the linear solve of an implicit one ends at 2e-12.
            np.testing.assert_allclose(
                reverse[parameter], forward[parameter], rtol=1e-8, atol=0.01 * rounding[parameter], err_msg=label
            )


def test_resumed_run_equals_an_uninterrupted_one_bit_for_bit(name, tmp_path):
    scenario, simulation = built(name)
    key, plan = jax.random.key(scenario.run.seed), plan_of(scenario)
    uninterrupted = list(drive(simulation, simulation.params, key, plan, program=program(name)))
    for stop in range(1, len(uninterrupted)):
        store = Store(tmp_path / str(stop))
        first = drive(simulation, simulation.params, key, plan, store=store, program=program(name))
        for _ in range(stop):
            next(first)
        resumed = list(drive(simulation, simulation.params, key, plan, store=store, program=program(name)))
        assert resumed[0].index == stop - 1  # nothing is computed twice
        assert_same_bytes(resumed[-1].state, uninterrupted[-1].state)
        for stored, piece in zip(store.read(), uninterrupted, strict=True):
            assert_same_bytes(stored, piece.arrays)


def test_step_keeps_shapes_and_dtypes_without_weak_types(name):
    _, simulation = built(name)
    state = jax.eval_shape(simulation.init, simulation.params, jax.random.key(0))
    stepped = jax.eval_shape(simulation.step, state, simulation.params)
    assert jax.tree.structure(state) == jax.tree.structure(stepped)
    for before, after in zip(jax.tree.leaves(state), jax.tree.leaves(stepped), strict=True):
        assert (before.shape, before.dtype) == (after.shape, after.dtype)
        assert not before.weak_type and not after.weak_type


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_every_number_has_the_precision_asked_for(name, precision):
    scenario = small(name, precision=precision)
    with jax.enable_x64(precision == "float64"):
        simulation = build(scenario)
        state = jax.eval_shape(simulation.init, simulation.params, jax.random.key(0))
        recorded = [
            jax.eval_shape(part, state, simulation.params) for part in (simulation.observe, simulation.diagnose)
        ]
    for leaf in jax.tree.leaves((state, recorded, simulation.params)):
        if np.issubdtype(leaf.dtype, np.inexact):
            assert leaf.dtype == precision


def test_changing_parameters_and_seed_compiles_nothing_again(name):
    scenario, simulation = built(name)
    traced = []

    def counted_step(state, params):
        traced.append(1)
        return simulation.step(state, params)

    counted = dataclasses.replace(simulation, step=counted_step)
    compiled = Program.of(counted, plan_of(scenario))
    swept = varied(scenario, simulation, 3)
    counts = []
    for member in range(3):
        params = {parameter: values[member] for parameter, values in swept.items()}
        state, _ = compiled.initialize(params, jax.random.key(member))
        compiled.advance(state, params)
        counts.append(len(traced))
    assert counts[0] > 0
    assert counts == [counts[0]] * 3


def test_diagnostics_tell_the_time_or_the_iteration(name):
    _, simulation = built(name)
    state = jax.eval_shape(simulation.init, simulation.params, jax.random.key(0))
    diagnosed = jax.eval_shape(simulation.diagnose, state, simulation.params)
    assert {"time", "iteration"} & set(diagnosed)
    assert all(value.shape == () for value in diagnosed.values())
    if "iteration" in diagnosed:
        assert diagnosed["iteration"].dtype == np.int32


def test_every_quantity_has_a_unit_and_a_meaning(name):
    _, simulation = built(name)
    state = jax.eval_shape(simulation.init, simulation.params, jax.random.key(0))
    found = {}
    for function in (simulation.observe, simulation.diagnose):
        found |= jax.eval_shape(function, state, simulation.params)
    drawn = {dimension for names in simulation.dimensions.values() for dimension in names}
    for quantity in {*found, *(drawn & set(simulation.coordinates))}:
        declared = simulation.quantities[quantity]
        # A plot's axis has room for a few words.
        assert declared.unit and 0 < len(declared.doc) <= 80 and declared.doc.isprintable()


def test_observed_arrays_have_named_dimensions(name):
    _, simulation = built(name)
    state = jax.eval_shape(simulation.init, simulation.params, jax.random.key(0))
    observed = jax.eval_shape(simulation.observe, state, simulation.params)
    for quantity, array in observed.items():
        assert len(simulation.dimensions[quantity]) == array.ndim
    lengths = {
        dimension: length
        for quantity, array in observed.items()
        for dimension, length in zip(simulation.dimensions[quantity], array.shape, strict=True)
    }
    for dimension, values in simulation.coordinates.items():
        if dimension in lengths:
            assert np.shape(values) == (lengths[dimension],)


def test_picture_shows_something(name, tmp_path):
    outcome = start(small(name), None)
    picture = Image.open(draw(outcome, tmp_path / "picture.png", "png", (320, 180)))
    assert picture.size == (320, 180)
    colors = picture.convert("RGB").getcolors(maxcolors=320 * 180)
    # Text alone has a few dozen shades of gray; what is drawn has color.
    assert any(max(color) - min(color) > 60 for _, color in colors)


def test_published_numbers_are_reproduced(name):
    scenario = load(name)
    assert scenario.validations
    missed = [check for check in validate(scenario) if not check.passed]
    assert not missed
