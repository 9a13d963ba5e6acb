"""Error messages of the transformations."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient, second
from simkit.core.ensemble import ensemble
from simkit.core.objective import Objective
from simkit.core.optimization import optimization
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE, Parameter
from simkit.core.rollout import segment, trajectory
from simkit.core.simulation import Equilibrium, check_bounds
from simkit.errors import UserError
from tests.core.toys import oscillator
from tests.tables import every


def test_members_that_differ_in_an_unknown_parameter_are_refused():
    with pytest.raises(UserError, match="unknown parameter 'frequenzy'; did you mean 'frequency'"):
        ensemble(oscillator(), ["frequenzy"])


def test_objective_of_an_unknown_diagnostic_is_refused():
    objective = Objective(oscillator(), "enrgy", 10)
    with pytest.raises(UserError, match="'enrgy' is not a diagnostic; did you mean 'energy'"):
        objective(objective.simulation.params, jax.random.key(0))


def test_making_an_objective_traces_nothing():
    def init(params, key):
        raise AssertionError("traced")

    Objective(dataclasses.replace(oscillator(), init=init), "energy", 10)


@every("steps", [0, -1])
def test_objective_without_a_step_is_refused(steps):
    with pytest.raises(ValueError, match=f"steps = {steps} takes no step"):
        Objective(oscillator(), "energy", steps)


def test_segment_of_negative_length_is_refused():
    with pytest.raises(ValueError, match="steps = -3 is negative"):
        segment(oscillator(), -3)


def test_unknown_modes_and_kinds_of_memory_are_refused():
    objective = Objective(oscillator(), "energy", 10)
    for derive in (gradient.with_derivative, lambda *given: second.hessian(objective.with_status, *given[1:])):
        with pytest.raises(UserError, match="mode = 'revers' is unknown; choose one of reverse, forward, shortest"):
            derive(objective, ["frequency"], "revers")
    with pytest.raises(
        ValueError, match="memory = 'tiny' is unknown; choose 'balanced', 'smallest' or a number of bytes"
    ):
        trajectory(oscillator(), 10, 1, memory="tiny")


@every(
    ("bounds", "good", "bad", "told"),
    [
        (POSITIVE, [1.0, 2.0**-126], [1.0, 0.0], "x = 0 is not positive; choose a value above 0"),
        (POSITIVE, [3.0], [math.nan], "x = nan is not positive"),
        (NOT_NEGATIVE, [0.0, 5.0], [5.0, -2.0], "x = -2 is negative; choose 0 or a value above"),
        (SHARE, [0.0, 1.0], [1.5], r"x = 1.5 is above its upper bound 1; choose a value in \[0, 1\]"),
        ((-3.0, 2.0), [-3.0, 2.0], [-3.5], r"x = -3.5 is below its lower bound -3; choose a value in \[-3, 2\]"),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_name(bounds, good, bad, told):
    declared = {"free": Parameter(0.0), "x": Parameter(1.0, bounds)}
    check_bounds(declared, {"free": np.asarray(math.nan), "x": np.asarray(good)})
    with pytest.raises(UserError, match=told):
        check_bounds(declared, {"free": np.asarray(0.0), "x": np.asarray(bad)})


def test_a_simulation_that_converges_needs_a_status():
    with pytest.raises(UserError, match="converges = True needs a status that becomes CONVERGED; give status="):
        dataclasses.replace(oscillator(), status=None, converges=True)


def test_an_equilibrium_needs_a_simulation_that_converges():
    balance = Equilibrium(lambda state: state, lambda x, params: x, lambda state, x: x)
    with pytest.raises(UserError, match="an equilibrium holds in a converged state only; set converges=True"):
        dataclasses.replace(oscillator(), equilibrium=balance)


@every("value", [3, np.int32(3), jnp.arange(3)])
@every("mode", gradient.MODES)
def test_derivative_with_respect_to_integers_is_refused(value, mode):
    derive = gradient.with_derivative(lambda params, key: jnp.sum(params["n"] * 1.5), "n", mode)
    with pytest.raises(UserError, match=r"parameter 'n' is of type int.*, which has no derivative; give real numbers"):
        derive({"n": value, "x": 1.0}, jax.random.key(0))


def test_wrt_may_be_one_name_and_must_not_be_empty():
    key = jax.random.key(0)
    with pytest.raises(UserError, match="wrt names no parameter; name each parameter once"):
        gradient.with_derivative(lambda params, key: params["x"], [])({"x": 1.0}, key)
    # A word is one name, not its letters.
    assert gradient.with_derivative(lambda params, key: params["long"] ** 2, "long")({"long": 3.0}, key)[1]["long"] == 6


@every(
    ("wrt", "message"),
    [
        (["frequenzy"], "unknown parameter 'frequenzy'; did you mean 'frequency'"),
        ([], "wrt names no parameter; name each parameter once"),
        (["frequency", "frequency"], "parameter 'frequency' is named twice"),
        (["loss"], "parameter 'loss' has the name of a diagnostic of an optimization; rename it"),
    ],
)
def test_optimization_of_an_unknown_parameter_is_refused(wrt, message):
    params = oscillator().params | {"loss": jnp.ones(())}
    with pytest.raises(UserError, match=message):
        optimization(lambda params, key: params["frequency"], params, wrt, {})


@every(
    ("code", "message"),
    [
        (lambda state, params: 0.0, "status gives float"),
        (lambda state, params: jnp.zeros(()), "status gives float32; return the integer of a simkit.Status"),
        (lambda state, params: state.position[0] > 3, "status gives bool; .* or make it with simkit.converged_when"),
        (lambda state, params: None, "status gives NoneType"),
        (lambda state, params: (0, 1), "status gives tuple"),
    ],
)
def test_status_that_is_not_an_integer_is_refused(code, message):
    simulation = dataclasses.replace(oscillator(), status=code)
    with pytest.raises(UserError, match=message):
        trajectory(simulation, 4, 2)(simulation.params, jax.random.key(0))


def test_ensemble_with_a_single_key_is_refused():
    simulation = ensemble(oscillator())
    with pytest.raises(UserError, match="an ensemble starts from one key per member and was given one key"):
        trajectory(simulation, 4, 2)(simulation.params, jax.random.key(0))
