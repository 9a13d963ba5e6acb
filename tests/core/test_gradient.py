"""Derivatives agree in reverse mode, forward mode and by central differences."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.objective import Objective
from simkit.errors import UserError
from tests.core.toys import descent, oscillator
from tests.differences import central_difference
from tests.tables import every


def test_reverse_and_forward_mode_give_the_same_value_and_derivative(x64):
    simulation, key = oscillator(), jax.random.key(0)
    objective = Objective(simulation, "energy", 100)
    reverse = gradient.with_derivative(objective, ["frequency"], "reverse")(simulation.params, key)
    forward = gradient.with_derivative(objective, ["frequency"], "forward")(simulation.params, key)
    np.testing.assert_allclose(reverse[0], forward[0], rtol=1e-14)
    np.testing.assert_allclose(reverse[1]["frequency"], forward[1]["frequency"], rtol=1e-12)


@every(("numbers", "expected"), [(3, "forward"), (4, "reverse")])
def test_the_shortest_mode_is_forward_for_few_numbers(numbers, expected):
    values, key = {"x": jnp.arange(float(numbers))}, jax.random.key(0)

    def programs(mode):
        function = gradient.with_derivative(lambda params, key: jnp.sum(jnp.sin(params["x"])), ["x"], mode)
        return str(jax.make_jaxpr(function)(values, key))

    assert programs("shortest") == programs(expected)
    assert programs("forward") != programs("reverse")


def test_central_difference_handles_array_parameters(x64):
    matrix = jnp.arange(4.0).reshape(2, 2)
    found = central_difference(lambda params: jnp.sum(params["m"] ** 3), {"m": matrix}, ["m"])
    np.testing.assert_allclose(found["m"], 3 * np.asarray(matrix) ** 2, rtol=1e-8, atol=1e-9)


def test_an_unknown_parameter_is_named_with_the_nearest():
    simulation = oscillator()
    derive = gradient.with_derivative(Objective(simulation, "energy", 5), ["frequenzy"])
    with pytest.raises(UserError, match="unknown parameter 'frequenzy'; did you mean 'frequency'"):
        derive(simulation.params, jax.random.key(0))


def test_a_converging_objective_has_only_a_final_value():
    with pytest.raises(ValueError, match="reduce"):
        Objective(descent(), "length", 10, reduce="mean")


@every(("steps", "numbers", "expected"), [(10, 16, "forward"), (10, 17, "reverse"), (10**6, 4, "reverse")])
def test_the_shortest_mode_of_a_small_run_is_forward_for_more_numbers(steps, numbers, expected):
    simulation, key = oscillator(), jax.random.key(0)
    params = {**simulation.params, "push": jnp.zeros(numbers)}

    def step(state, params):
        after = simulation.step(state, params)
        return dataclasses.replace(after, velocity=after.velocity + jnp.sum(params["push"]))

    objective = Objective(dataclasses.replace(simulation, step=step), "energy", steps)
    programs = {
        mode: str(gradient.jitted(objective, ["push"], mode, params, key).trace(params, key).jaxpr)
        for mode in ("shortest", "forward", "reverse")
    }
    assert programs["shortest"] == programs[expected]
    assert programs["forward"] != programs["reverse"]
