"""The record: parameters by path, plain numbers, mistakes."""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient, paths, second
from simkit.core.averages import averaged
from simkit.core.converge import converge
from simkit.core.ensemble import ensemble
from simkit.core.objective import Objective
from simkit.core.optimization import optimization
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE, Parameter
from simkit.core.pytrees import pytree
from simkit.core.rollout import segment, trajectory
from simkit.core.simulation import Equilibrium, check_bounds
from simkit.errors import UserError
from simkit.flow.diagnosis.measures import magnitude
from simkit.molecular.minimizers.protocol import largest_norm
from simkit.rigid.algebra.vector import Vector, norm, normalize
from tests.core.toys import descent, oscillator, stepping_together
from tests.tables import every


@every("precision", ["float32", "float64"])
@every("one", [float, int, np.float32, np.int64, np.asarray])
def test_plain_numbers_become_parameters_of_the_working_precision(precision, one):
    with jax.enable_x64(precision == "float64"):
        simulation = dataclasses.replace(oscillator(), params={"frequency": one(2), "time_step": 0.01})
        for value in simulation.params.values():
            assert isinstance(value, jax.Array) and value.dtype == precision and not value.weak_type
        changed = simulation.with_params(frequency=3.0)
        assert float(changed.params["frequency"]) == 3.0
        jax.eval_shape(trajectory(simulation, 2, 1), simulation.params, jax.random.key(0))


def test_another_step_does_not_keep_the_step_of_many_members_of_the_one_before():
    """A controller in a loop around the step of a model was without effect in sweeps."""
    together = stepping_together([])
    assert dataclasses.replace(together, params={"frequency": 2, "time_step": 0.01}).step_members is not None
    assert dataclasses.replace(together, step=lambda state, params: together.step(state, params)).step_members is None


def test_arrays_of_parameters_are_unchanged():
    given = {"frequency": jnp.ones(3), "time_step": jnp.asarray(0.01, jnp.bfloat16)}
    kept = dataclasses.replace(oscillator(), params=given).params
    assert all(kept[name] is given[name] for name in given)
    traced = jax.make_jaxpr(lambda x: dataclasses.replace(oscillator(), params={"frequency": x}).params["frequency"])(
        1.0
    )
    assert not traced.jaxpr.eqns[-1:] or traced.jaxpr.outvars == traced.jaxpr.invars


class Layer(NamedTuple):
    weight: Any
    bias: Any


@pytree
class Closure:
    layers: Any
    scale: Any


TREE = {
    "gravity": 1.0,
    "closure": Closure(layers=[Layer(2.0, 3.0), Layer(4.0, 5.0)], scale=6.0),
    "again": ({"z": 7.0, "a": 8.0}, {3: 9.0}),
}
LEAVES = {
    "gravity": 1.0,
    "closure.layers.0.weight": 2.0,
    "closure.layers.0.bias": 3.0,
    "closure.layers.1.weight": 4.0,
    "closure.layers.1.bias": 5.0,
    "closure.scale": 6.0,
    "again.0.z": 7.0,
    "again.0.a": 8.0,
    "again.1.3": 9.0,
}


def test_every_kind_of_node_is_a_step_of_the_path_in_the_order_of_the_keys():
    assert list(paths.leaves(TREE).items()) == list(LEAVES.items())


def test_replaced_leaves_are_the_only_ones_that_change_and_nodes_keep_their_kinds_and_order():
    changed = paths.replaced(TREE, {"closure.layers.1.bias": -1.0, "again.1.3": -2.0})
    assert jax.tree.structure(changed) == jax.tree.structure(TREE)
    assert paths.leaves(changed) == LEAVES | {"closure.layers.1.bias": -1.0, "again.1.3": -2.0}
    assert list(changed) == list(TREE) and list(changed["again"][0]) == ["z", "a"]
    assert isinstance(changed["closure"].layers[0], Layer)


def test_branches_stand_for_all_below_them():
    assert paths.selected(["closure.layers.1", "gravity"], LEAVES) == [
        "closure.layers.1.weight",
        "closure.layers.1.bias",
        "gravity",
    ]
    assert paths.selected("closure", LEAVES) == [name for name in LEAVES if name.startswith("closure.")]
    # The beginning of a name is no branch.
    with pytest.raises(UserError, match="unknown parameter 'clos'"):
        paths.selected("clos", LEAVES)


def test_values_of_a_branch_are_given_as_a_tree():
    assert paths.by_leaf({"closure.layers.0": Layer(10.0, 11.0), "gravity": 12.0}, LEAVES) == {
        "closure.layers.0.weight": 10.0,
        "closure.layers.0.bias": 11.0,
        "gravity": 12.0,
    }
    # Nested lists are the values of one leaf, where there is a leaf.
    assert paths.by_leaf({"a": {"b": [[1, 2]]}}, ["a.b"]) == {"a.b": [[1, 2]]}


def nested(**changes):
    simulation = oscillator()

    def inner(params):
        return {"frequency": params["swing"][0].weight, "time_step": params["swing"][0].bias}

    params = {"swing": [Layer(1.3, 0.01)]}
    return dataclasses.replace(
        simulation,
        init=lambda params, key: simulation.init(inner(params), key),
        step=lambda state, params: simulation.step(state, inner(params)),
        diagnose=lambda state, params: simulation.diagnose(state, inner(params)),
        **{"params": params} | changes,
    )


def test_a_record_makes_arrays_of_the_leaves_and_keeps_the_tree():
    simulation = nested()
    assert isinstance(simulation.params["swing"][0], Layer)
    assert {name: leaf.dtype for name, leaf in paths.leaves(simulation.params).items()} == {
        "swing.0.weight": jnp.float32,
        "swing.0.bias": jnp.float32,
    }
    assert repr(simulation) == "<Simulation: swing.0.weight = 1.3, swing.0.bias = 0.01>"
    assert "<td>swing.0.bias</td>" in simulation._repr_html_()


def test_lists_of_plain_numbers_are_arrays_and_lists_of_arrays_are_branches():
    given = {"row": [1, 2.5], "table": ((1, 2), (3, 4)), "network": [np.ones(2), jnp.zeros(())], "none": []}
    found = paths.leaves(nested(params=given).params)
    assert {name: leaf.shape for name, leaf in found.items()} == {
        "row": (2,),
        "table": (2, 2),
        "network.0": (2,),
        "network.1": (),
        "none": (0,),
    }


def test_a_parameter_of_a_tree_declares_every_leaf_of_it():
    simulation = nested(params={"swing": Parameter([Layer(1.3, 0.01)], (0.0, 5.0), "1", "of the swing")})
    assert {name: told.bounds for name, told in simulation.parameters.items()} == {
        "swing.0.weight": (0.0, 5.0),
        "swing.0.bias": (0.0, 5.0),
    }
    assert simulation.parameters["swing.0.bias"].default == 0.01
    with pytest.raises(UserError, match=r"swing.0.bias = 7 is above its upper bound 5"):
        simulation.check_values({"swing": [Layer(jnp.ones(()), jnp.full((), 7.0))]}, jax.random.key(0))


def test_declarations_of_removed_parameters_are_dropped():
    simulation = nested(params={"swing": Parameter([Layer(1.3, 0.01)], (0.0, 5.0))})
    other = dataclasses.replace(simulation, params={"swing": [{"bias": 9.0}], "more": Parameter(1.0, (0.0, 2.0))})
    assert list(other.parameters) == ["swing.0.bias", "more"]
    with pytest.raises(UserError, match=r"swing.0.bias = 9 is above its upper bound 5"):
        other.check_values(other.params, jax.random.key(0))


@every(
    "values",
    [
        {"swing.0.weight": 2.0, "swing.0.bias": 0.02},
        {"swing": [Layer(2.0, 0.02)]},
        {"swing.0": Layer(np.float64(2.0), jnp.float32(0.02))},
    ],
)
def test_new_values_are_given_by_leaf_or_branch(values):
    for found in (nested().with_params(values), nested().with_params(**values)):
        assert isinstance(found.params["swing"][0], Layer)
        assert found.params["swing"][0].weight == 2.0 and found.params["swing"][0].bias == np.float32(0.02)


def test_new_values_may_be_the_whole_tree():
    class Root(NamedTuple):
        swing: Any

    simulation = nested(params=Root([Layer(1.3, 0.01)]))
    found = simulation.with_params(jax.tree.map(lambda leaf: 2 * leaf, simulation.params))
    assert isinstance(found.params, Root) and found.params.swing[0].weight == np.float32(2.6)


@dataclasses.dataclass
class Unknown:
    """A class that JAX does not know as a tree."""

    value: float


def evaluated(quantity):
    objective = Objective(oscillator(), quantity, 10)
    return objective(objective.simulation.params, jax.random.key(0))


def derived(wrt, mode="shortest", **params):
    return gradient.with_derivative(lambda params, key: jnp.sum(params["x"] ** 2), wrt, mode)(params, jax.random.key(0))


def optimized(wrt, **params):
    return optimization(lambda params, key: params["x"], params, wrt, {})


def moved(**vector):
    objective, wrt = Objective(oscillator(), "energy", 3), ["frequency", "time_step"]
    return second.hessian_vector_product(objective, wrt)(objective.simulation.params, jax.random.key(0), vector)


def average(every=3, skip=4):
    return averaged(oscillator(), lambda state, params: {"x": state.position}, every=every, skip=skip)


def one_key(simulation):
    return trajectory(simulation, 4, 2)(simulation.params, jax.random.key(0))


BALANCE = Equilibrium(lambda state: state, lambda x, params: x, lambda state, x: x)


def test_a_word_is_one_name_and_not_its_letters():
    assert derived("long", long=3.0, x=0.0)[1]["long"] == 0


@every(
    ("bounds", "good", "bad", "told"),
    [
        (POSITIVE, [1.0, 2.0**-126], [1.0, 0.0], "x = 0 is not positive; choose a value above 0"),
        (POSITIVE, [3.0], [math.nan], "x = nan is not a number"),
        (NOT_NEGATIVE, [0.0, 5.0], [5.0, -2.0], "x = -2 is negative; choose 0 or a value above"),
        (SHARE, [0.0, 1.0], [1.5], r"x = 1.5 is above its upper bound 1; choose a value in \[0, 1\]"),
        ((-3.0, 2.0), [-3.0, 2.0], [-3.5], r"x = -3.5 is below its lower bound -3; choose a value in \[-3, 2\]"),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_name(bounds, good, bad, told):
    declared = {"free": Parameter(0.0), "x": Parameter(1.0, bounds)}
    check_bounds(declared, {"free": np.asarray(-1e300), "x": np.asarray(good)})
    with pytest.raises(UserError, match=told):
        check_bounds(declared, {"free": np.asarray(0.0), "x": np.asarray(bad)})


UNREAL = ["fast", None, True, 1j, [[1.0], [2.0, 3.0]]]
STATUSES = [
    (lambda state, params: 0.0, "float"),
    (lambda state, params: jnp.zeros(()), "float32; return the integer of a simkit.Status"),
    (lambda state, params: state.position[0] > 3, "bool; .* or make it with simkit.converged_when"),
    (lambda state, params: None, "NoneType"),
    (lambda state, params: (0, 1), "tuple"),
]


def with_frequency(value):
    return dataclasses.replace(oscillator(), params={"frequency": value})


def with_status(status):
    return dataclasses.replace(oscillator(), status=status)


@every(
    ("act", "message"),
    [
        (lambda: paths.selected(["gravty"], LEAVES), "unknown parameter 'gravty'; did you mean 'gravity'"),
        (lambda: paths.selected(["closure.layer"], LEAVES), "did you mean 'closure.layers'"),
        (lambda: paths.selected(["params.gravity"], LEAVES), "unknown parameter 'params.gravity'; write gravity"),
        (lambda: paths.selected(["closure", "closure.scale"], LEAVES), "'closure.scale' is named twice"),
        (lambda: paths.selected([3], LEAVES), "3 is not the name of a parameter"),
        (lambda: paths.selected(["qqq"], [f"branch.{i}" for i in range(100)]), "known names: branch$"),
        (lambda: paths.by_leaf({"closure": 3.0}, LEAVES), "'closure' is a branch of parameters; give it a tree"),
        (lambda: paths.by_leaf({"closure.layers.0": (1.0, 2.0)}, LEAVES), "'closure.layers.0.0' is no parameter of"),
        (lambda: paths.by_leaf({"again.0": {"z": 1.0}}, LEAVES), "of 'again.0' lack 'again.0.a'; give all of them"),
        (
            lambda: paths.by_leaf({"again.0.z": 1, "again": ({"z": 1, "a": 2}, {3: 4})}, LEAVES),
            "'again.0.z' is given tw",
        ),
        (lambda: paths.leaves({"a": {"b.c": 1.0}}), "the key 'b.c' of 'a' contains a dot"),
        (lambda: paths.leaves({"a": {1.5: 1.0}}), "the key 1.5 of 'a' is neither a word nor an integer"),
        (lambda: paths.leaves({"a": {"1": 1.0, 1: 2.0}}), "two keys of 'a' read '1'"),
        (lambda: nested().with_params("word"), "with_params takes values by name: gravity=9.8"),
        (lambda: nested().with_params(3.0), "with_params takes values by name"),
        (lambda: nested().with_params(swing="word"), "'swing' is a branch of parameters"),
        (lambda: nested().with_params({"swing.0.bias": "word"}), "parameter 'swing.0.bias' is str; give a number"),
        (lambda: nested().with_params({"swing.0.bias": [1.0]}), r"'swing.0.bias' has shape \(1,\); give one number"),
        (lambda: nested(params={"a": {"b": "c"}}), "parameter 'a.b' is str; give a number"),
        (lambda: nested(params={"a": [jnp.ones(2), True]}), "parameter 'a.1' is bool; give a number"),
        (lambda: nested(params={"a": Parameter({"b": 1j})}), "parameter 'a.b' is complex; give a number"),
        (lambda: nested(params={"a": {"b": Unknown(1.0)}}), "parameter 'a.b' is Unknown; give a number"),
        (lambda: nested(params={"a.b": 1.0}), "the key 'a.b' of 'params' contains a dot"),
        (lambda: nested(params=[1.0]), "params are of type list; give a dictionary"),
        (lambda: nested(params=jnp.ones(2)), "params are of type ArrayImpl; give a dictionary"),
        (lambda: ensemble(oscillator(), ["frequenzy"]), "unknown parameter 'frequenzy'; did you mean 'frequency'"),
        (lambda: evaluated("enrgy"), "quantity = 'enrgy' is unknown; did you mean 'energy'"),
        (lambda: Objective(oscillator(), "energy", 0), "steps = 0 takes no step"),
        (lambda: Objective(oscillator(), "energy", -1), "steps = -1 takes no step"),
        (lambda: segment(oscillator(), -3), "steps = -3 is negative"),
        *((lambda s=s, e=e: trajectory(oscillator(), s, e), "no.* multiple") for s, e in ((0, 1), (10, 3), (5, 10))),
        (lambda: trajectory(oscillator(), 10, 0), "not a positive multiple"),
        (lambda: average(every=0), "every = 0"),
        (lambda: average(skip=-1), "skip = -1"),
        (lambda: Objective(descent(), "length", 10, reduce="mean"), "reduce = 'mean' needs a simulation that runs a"),
        (lambda: converge(oscillator(), 10), "converges=True and an equilibrium"),
        (lambda: trajectory(oscillator(), 10, 1, memory="tiny"), "memory = 'tiny' is unknown; choose 'balanced'"),
        (lambda: dataclasses.replace(oscillator(), converges=True), "converges = True needs a status that becomes"),
        (lambda: dataclasses.replace(oscillator(), equilibrium=BALANCE), "an equilibrium holds in a converged state"),
        (lambda: derived([], x=1.0), "wrt names no parameter; name each parameter once"),
        (lambda: derived("x", "revers", x=1.0), "mode = 'revers' is unknown; did you mean 'reverse'"),
        (lambda: second.hessian(None, "x", "revers"), "mode = 'revers' is unknown; did you mean 'reverse'"),
        (lambda: optimized([], x=1.0), "wrt names no parameter; name each parameter once"),
        (lambda: optimized(["loss"], x=1.0, loss=1.0), "params.loss: the name 'loss' is taken"),
        (lambda: moved(frequency=1.0), "the vector is of frequency; give an array for frequency, time_step"),
        (lambda: moved(frequency=[1.0], time_step=1.0), r"'frequency' has shape \(1,\); give that of its parameter"),
        (lambda: one_key(ensemble(oscillator())), "an ensemble starts from one key per member and was given one key"),
        *((lambda v=v: with_frequency(v), "parameter 'frequency' is .*; give a number, or an array") for v in UNREAL),
        *((lambda s=s: one_key(with_status(s)), f"status gives {kind}") for s, kind in STATUSES),
        *(
            (
                lambda v=v, m=m: derived("x", m, x=v),
                "parameter 'x' is of type int.*, which has no derivative; give real",
            )
            for v in (3, np.int32(3), jnp.arange(3))
            for m in gradient.MODES
        ),
    ],
)
def test_what_is_wrong_is_refused_by_name_in_one_line(act, message):
    with pytest.raises((UserError, ValueError), match=message) as error:
        act()
    assert "\n" not in str(error.value)


def test_a_length_that_is_no_number_is_not_told_as_zero():
    number = jnp.array(math.nan)
    broken = Vector(number, jnp.zeros(()), jnp.ones(()))
    upward = Vector(jnp.zeros(()), jnp.zeros(()), jnp.ones(()))
    lengths = [
        norm(broken),
        normalize(broken, upward).x,
        magnitude((number, jnp.zeros(()))),
        largest_norm(number[None]),
    ]
    assert np.isnan(lengths).all()
