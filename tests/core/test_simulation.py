"""The `Simulation` record: conversion and check of its parameters."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.errors import UserError
from tests.core.toys import oscillator
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


def test_arrays_of_parameters_are_unchanged():
    given = {"frequency": jnp.ones(3), "time_step": jnp.asarray(0.01, jnp.bfloat16)}
    kept = dataclasses.replace(oscillator(), params=given).params
    assert all(kept[name] is given[name] for name in given)
    traced = jax.make_jaxpr(lambda x: dataclasses.replace(oscillator(), params={"frequency": x}).params["frequency"])(
        1.0
    )
    assert not traced.jaxpr.eqns[-1:] or traced.jaxpr.outvars == traced.jaxpr.invars


@every("value", ["fast", None, True, 1j, [[1.0], [2.0, 3.0]]])
def test_parameters_that_are_not_real_are_refused_by_name(value):
    with pytest.raises(UserError, match=r"parameter 'frequency' is .*; give a number, or an array of real numbers"):
        dataclasses.replace(oscillator(), params={"frequency": value})
