"""The contract of every shipped scenario: one body of tests for all of them and for those tested more often."""

import contextlib
import functools
from collections.abc import Iterator

import jax
import jax.monitoring
import numpy as np
from PIL import Image

from simkit.core import gradient, paths
from simkit.core.dependence import idle_parameters
from simkit.core.ensemble import ensemble
from simkit.core.rollout import trajectory
from simkit.engine.driver import Program, plan_of
from simkit.export.pictures import parts_of
from simkit.jobs.derivatives import objective_of
from simkit.render.animate import render
from simkit.scenario.build import build
from simkit.storage.datasets import join, labels_of
from simkit.storage.store import Store
from tests.differences import central_difference
from tests.driving import drive
from tests.scenarios.small import TO_THE_END, small, small_to_the_end

# Its planks move aside by 1e-17 m, of which other programs round the last bits otherwise, with their velocities.
ROUNDED_OTHERWISE = {"bridge_of_planks"}
# Programs round what they measure in frames otherwise, on some processors: largest difference, of the largest value.
ROUNDING = 1e-13

# Relative steps of central differences: their least squares magnify round-off.
STEPS = {name: (16 * np.finfo(float).eps ** (1 / 3),) for name in ("cube_toss", "learned_pair")}


class Contract:
    """A small scenario and its programs, each made on first use and shared by all tests of it.

    Args:
        name: of the scenario.
    """

    def __init__(self, name):
        self.name = name

    @functools.cached_property
    def scenario(self):
        return small(self.name)

    @functools.cached_property
    def simulation(self):
        return build(self.scenario)

    @functools.cached_property
    def to_the_end(self):
        """The scenario over as many steps as its derivatives are tested over, and its simulation."""
        if self.name not in TO_THE_END:
            return self.scenario, self.simulation
        scenario = small_to_the_end(self.name)
        return scenario, build(scenario)

    @property
    def key(self):
        return jax.random.key(self.scenario.run.seed)

    @functools.cached_property
    def program(self):
        """The compiled parts of a driven run."""
        return Program.of(self.simulation, plan_of(self.scenario))

    @functools.cached_property
    def driven(self):
        """The pieces of a driven run."""
        return list(self.drive())

    def drive(self, store=None, params=None, key=None):
        plan = plan_of(self.scenario)
        params, key = params or self.simulation.params, self.key if key is None else key
        return drive(self.simulation, params, key, plan, store=store, program=self.program)

    @functools.cached_property
    def whole(self):
        """The compiled trajectory."""
        return jax.jit(self.run_of(self.simulation))

    def run_of(self, simulation):
        return trajectory(simulation, self.scenario.run.steps, self.scenario.run.every)


def contract_of(name: str) -> Iterator[Contract]:
    """Yield a scenario and its programs, in float64, and clear them."""
    with jax.enable_x64(True):
        yield Contract(name)
    jax.clear_caches()


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


def assert_alike(quantity, one, other, scale):
    """Compare arrays whose last bit vectorized code may round differently, which a few steps multiply by little.

    What is made of cancellations (a divergence, say) is compared on the scale of all that is recorded; frequencies,
    which vanish for translations, by the eigenvalues of which they are roots; speeds of sound are slopes near there.
    """
    if quantity == "phonon_frequency":
        one, other, scale = one**2, other**2, scale**2
    rounding = 1e-11 if quantity.startswith("sound_") else 1e-12
    np.testing.assert_allclose(one, other, rtol=rounding, atol=rounding * scale, err_msg=quantity)


def varied(scenario, simulation, count):
    """Return parameters by path, with a leading axis of ``count`` values each, a thousandth of the bounds apart."""
    params = {}
    for name, value in paths.leaves(simulation.params).items():
        low, high = scenario.parameters[name].bounds
        steps = np.arange(count).reshape(-1, *[1] * value.ndim)
        params[name] = jax.numpy.asarray(np.clip(value + 1e-3 * (high - low) * steps, low, high), value.dtype)
    return params


def assert_driven_is_whole(name, pieces, whole):
    """Compare a driven run with the trajectory: the last state bit for bit, what frames measure to rounding."""
    state, observed, diagnosed = whole
    same_state = assert_same_rounded if name in ROUNDED_OTHERWISE else assert_same_bytes
    same_state(pieces[-1].state, state)
    for group, arrays in (("observed", observed), ("diagnosed", diagnosed)):
        for quantity, array in arrays.items():
            driven = np.concatenate([piece.arrays[f"{group}.{quantity}"] for piece in pieces])
            assert_same_rounded(driven, array)


def assert_same_rounded(a, b):
    for one, other in zip(jax.tree.leaves(plain(a)), jax.tree.leaves(plain(b)), strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        largest = np.abs(other, where=np.isfinite(other), out=np.zeros(other.shape)).max(initial=0)
        # And what would be zero without round-off, in SI or reduced units.
        np.testing.assert_allclose(one, other, rtol=0, atol=ROUNDING * largest + 1e-26)


def check_derivatives(scenario, simulation, objective):
    """Compare reverse mode with central differences, parameter by parameter, and with a tangent."""
    key, params = jax.random.key(scenario.run.seed), simulation.params
    leaves = paths.leaves(params)
    wrt = [parameter for parameter, value in leaves.items() if value.ndim == 0]
    function = objective_of(scenario, simulation, objective)
    value, _, reverse = gradient.jitted(function, wrt, "reverse", params, key)(params, key)
    near = jax.jit(function.continuation(params, key))
    # A central difference with step h = eps^(1/3) |p| rounds off by eps |f| / h.
    rounding = {
        parameter: np.finfo(float).eps ** (2 / 3) * abs(value) / (abs(float(leaves[parameter])) or 1.0)
        for parameter in wrt
    }
    difference = central_difference(near, params, wrt, *STEPS.get(scenario.name, ()))
    # A parameter at zero gives its step no scale; doubling it adds three times the error h^2 f''' / 6.
    at_zero = [parameter for parameter in wrt if leaves[parameter] == 0]
    wider = central_difference(near, params, at_zero, 2 * np.finfo(float).eps ** (1 / 3))
    # A parameter of the initial state of a relaxation has no effect. A wide step shows that above the noise with which
    # each end comes to rest.
    idle = [p for p in wrt if p not in at_zero and function.converges and abs(reverse[p]) < rounding[p]]
    difference |= central_difference(near, params, idle, 1e-2)
    assert np.isfinite(value)
    assert any(float(derivative) != 0 for derivative in reverse.values())
    # Smooth runs agree to 1e-6; a relaxation that is repeated at both ends stops within its tolerance: 1e-5.
    agreement = 1e-5 if function.converges else 1e-6
    for parameter in wrt:
        cut = abs(wider[parameter] - difference[parameter]) / 3 if parameter in at_zero else 0
        label, floor = f"d {objective} / d {parameter}", 10 * rounding[parameter] + 2 * cut
        np.testing.assert_allclose(reverse[parameter], difference[parameter], rtol=agreement, atol=floor, err_msg=label)
    # Forward mode, along a direction in which every parameter moves by its own size.
    scales = np.random.default_rng(0).uniform(0.5, 1.5, len(wrt)) * np.where(np.arange(len(wrt)) % 2, 1, -1)
    direction = {
        name: scale * abs(float(leaves[name])) or scale for name, scale in zip(wrt, scales.tolist(), strict=True)
    }
    tangent = tangent_along(function, params, key, direction)
    parts = [float(reverse[name]) * step for name, step in direction.items()]
    # The two modes add the same numbers in another order; the linear solve of an implicit one ends at 2e-12.
    floor = sum(0.01 * rounding[name] * abs(step) for name, step in direction.items())
    np.testing.assert_allclose(tangent, sum(parts), rtol=1e-9, atol=1e-8 * max(map(abs, parts)) + floor)


def tangent_along(function, params, key, direction):
    """Return the derivative of an objective along ``{name: change}``, by forward mode."""

    def moved(step):
        return function(paths.mapped(lambda path, leaf: leaf + step * direction.get(path, 0), params), key)

    return jax.jit(lambda: jax.jvp(moved, (0.0,), (1.0,))[1])()


def misprinted(simulation):
    """Return what is wrong with shapes, types and names of what the functions of a simulation return."""
    params, key = simulation.params, jax.random.key(0)
    state = jax.eval_shape(simulation.init, params, key)
    stepped = jax.eval_shape(simulation.step, state, params)
    observed = jax.eval_shape(simulation.observe, state, params)
    diagnosed = jax.eval_shape(simulation.diagnose, state, params)
    return [
        *changed_by_a_step(state, stepped),
        *of_another_precision((state, observed, diagnosed, params), "float64"),
        *unlike_diagnostics(diagnosed),
        *without_names(simulation, observed),
        *without_meaning(simulation, {**observed, **diagnosed}),
    ]


def changed_by_a_step(state, stepped):
    if jax.tree.structure(state) != jax.tree.structure(stepped):
        return ["a step changes the structure of the state"]
    described = [
        [(jax.tree_util.keystr(path), leaf.shape, leaf.dtype) for path, leaf in jax.tree.leaves_with_path(tree)]
        for tree in (state, stepped)
    ]
    weak = [leaf for leaf in jax.tree.leaves((state, stepped)) if leaf.weak_type]
    return [
        f"a step turns {before} into {after}" for before, after in zip(*described, strict=True) if before != after
    ] + [f"{leaf} has a weak type" for leaf in weak]


def of_another_precision(trees, precision):
    numbers = [leaf for leaf in jax.tree.leaves(trees) if np.issubdtype(leaf.dtype, np.inexact)]
    return [f"{leaf} is not in {precision}" for leaf in numbers if leaf.dtype != precision]


def unlike_diagnostics(diagnosed):
    missing = [] if {"time", "iteration"} & set(diagnosed) else ["neither the time nor the iteration is diagnosed"]
    arrays = [f"the diagnostic {name} is no number" for name, value in diagnosed.items() if value.shape != ()]
    counted = "iteration" not in diagnosed or diagnosed["iteration"].dtype == np.int32
    return missing + arrays + ([] if counted else ["the iteration is no int32"])


def without_names(simulation, observed):
    """Return the observed arrays without a name for each dimension, and coordinates of another length."""
    named = {name: simulation.dimensions[name] for name in observed}
    bare = [f"{name} needs {observed[name].ndim} names" for name in named if len(named[name]) != observed[name].ndim]
    lengths = {
        dimension: length
        for name, dimensions in named.items()
        for dimension, length in zip(dimensions, observed[name].shape, strict=False)
    }
    return bare + [
        f"coordinates of {dimension} need {lengths[dimension]} values"
        for dimension, values in simulation.coordinates.items()
        if dimension in lengths and np.shape(values) != (lengths[dimension],)
    ]


def without_meaning(simulation, recorded):
    """Return the quantities without a unit and a meaning, for which an axis of a plot has room for 80 characters."""
    # Those of which a picture alone takes places have none.
    drawn = {name for names in simulation.dimensions.values() for name in names if not name.endswith("_drawn")}
    declared = {name: simulation.quantities[name] for name in {*recorded, *(drawn & set(simulation.coordinates))}}
    return [
        f"{name} needs a unit and a meaning of at most 80 characters"
        for name, quantity in declared.items()
        if not (quantity.unit and 0 < len(quantity.doc) <= 80 and quantity.doc.isprintable())
    ]


@contextlib.contextmanager
def compilations():
    """Context that yields a list, to which each compilation of a program adds its seconds."""
    counted: list[float] = []

    def listen(event, seconds, **more):
        if event == "/jax/core/compile/backend_compile_duration":
            counted.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield counted
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


class Claims:
    """What holds for every scenario; a module of tests provides the fixture `contract`."""

    def test_driven_run_ends_in_the_state_of_the_trajectory_bit_for_bit(self, contract):
        assert_driven_is_whole(contract.name, contract.driven, contract.whole(contract.simulation.params, contract.key))

    def test_members_of_an_ensemble_equal_single_runs(self, contract):
        simulation, members = contract.simulation, 3
        over = list(paths.leaves(simulation.params))[::2]
        swept = varied(contract.scenario, simulation, members)
        keys = jax.random.split(jax.random.key(7), members)
        many = jax.jit(contract.run_of(ensemble(simulation, over)))
        _, observed, diagnosed = many(paths.replaced(simulation.params, {name: swept[name] for name in over}), keys)
        for member in range(members):
            params = paths.replaced(simulation.params, {name: swept[name][member] for name in over})
            _, one_observed, one_diagnosed = contract.whole(params, keys[member])
            for together, alone in ((observed, one_observed), (diagnosed, one_diagnosed)):
                # Means are NaN before their first sample.
                scale = max(
                    float(np.max(np.abs(array), where=np.isfinite(array), initial=0)) for array in alone.values()
                )
                for quantity, expected in alone.items():
                    assert_alike(quantity, np.asarray(together[quantity][:, member]), np.asarray(expected), scale)

    def test_derivatives_equal_central_differences_and_each_other(self, contract):
        scenario, simulation = contract.to_the_end
        assert scenario.objectives, "a scenario without an objective cannot be optimized"
        check_derivatives(scenario, simulation, next(iter(scenario.objectives)))

    def test_resumed_run_equals_an_uninterrupted_one_bit_for_bit(self, contract, tmp_path):
        for stop in range(1, len(contract.driven)):
            store = Store(tmp_path / str(stop))
            first = contract.drive(store)
            for _ in range(stop):
                next(first)
            resumed = list(contract.drive(store))
            assert resumed[0].index == stop - 1  # no segment is computed twice
            assert_same_bytes(resumed[-1].state, contract.driven[-1].state)
            for stored, piece in zip(store.read(), contract.driven, strict=True):
                assert_same_bytes(stored, piece.arrays)

    def test_shapes_types_and_names_are_as_declared(self, contract):
        assert not misprinted(contract.simulation)

    def test_every_number_is_in_single_precision_where_that_is_asked_for(self, contract):
        scenario = small(contract.name, precision="float32")
        with jax.enable_x64(False):
            simulation = build(scenario)
            state = jax.eval_shape(simulation.init, simulation.params, jax.random.key(0))
            recorded = [
                jax.eval_shape(part, state, simulation.params) for part in (simulation.observe, simulation.diagnose)
            ]
        assert not of_another_precision((state, recorded, simulation.params), "float32")

    def test_every_parameter_has_an_effect(self, contract):
        assert idle_parameters(contract.simulation) == []

    def test_changing_parameters_and_seed_compiles_nothing_new(self, contract):
        assert contract.driven
        swept = varied(contract.scenario, contract.simulation, 3)
        # Made before: taking an entry of an array compiles operations of its own.
        members = [
            (
                paths.replaced(contract.simulation.params, {path: values[member] for path, values in swept.items()}),
                jax.random.key(member),
            )
            for member in (1, 2)
        ]
        with compilations() as counted:
            jax.jit(lambda number: number + 1)(1)
            assert len(counted) == 1  # each is seen
            for params, key in members:
                list(contract.drive(params=params, key=key))
            assert len(counted) == 1

    def test_picture_is_not_blank(self, contract, tmp_path):
        arrays = join([piece.arrays for piece in contract.driven])
        parts = parts_of(arrays, labels_of(contract.simulation))
        scenario, file = contract.scenario, tmp_path / "picture.png"
        picture = Image.open(render(**parts, title=scenario.title, settings=scenario.render, output=file, format="png"))
        colors = picture.convert("RGB").getcolors(maxcolors=picture.width * picture.height)
        # Text alone has a few dozen shades of gray; the drawing has color.
        assert any(max(color) - min(color) > 60 for _, color in colors)
