"""A second run of a simulation in a process: nothing is traced, and nothing is compiled."""

import collections
import dataclasses
from functools import partial

import jax
import numpy as np
import pytest

import simkit
from tests.core.test_rollout import counting
from tests.core.toys import descent, oscillator

EVENTS = collections.Counter()
jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: EVENTS.update([event]))
TRACED, COMPILED = "/jax/core/compile/jaxpr_trace_duration", "/jax/core/compile/backend_compile_duration"


@pytest.fixture
def counted():
    """Return a function that calls another and returns how much was traced and compiled meanwhile."""

    def count(function):
        EVENTS.clear()
        function()
        return {"traced": EVENTS[TRACED], "compiled": EVENTS[COMPILED]}

    return count


NOTHING = {"traced": 0, "compiled": 0}


def test_a_run_traces_every_function_once_and_the_next_ones_nothing(x64, counted):
    simulation = dataclasses.replace(oscillator(), status=lambda state, params: np.int32(0) * state.time.astype(int))
    simulation, counts = counting(simulation)
    simkit.run(oscillator(), steps=1)  # JAX traces anew after what the first run of a process imports
    first = simkit.run(simulation, steps=20)
    assert counts == dict.fromkeys(counts, 1)
    again = []
    for values in ({}, {"frequency": 2.0}, {"seed": 3}):
        assert counted(lambda values=values: again.append(simkit.run(simulation, steps=20, **values))) == NOTHING
    assert counts == dict.fromkeys(counts, 1)
    np.testing.assert_array_equal(again[0]["position"], first["position"])
    assert all((one["position"] != first["position"]).any() for one in again[1:])
    assert simkit.run(simulation, steps=30).sizes["time"] == 31
    assert counts == dict.fromkeys(counts, 1), "another number of steps is another program of the same traces"


def test_a_second_derivative_of_a_run_traces_nothing(x64, counted):
    simulation, counts = counting(descent(tolerance=1e-6))
    for objective in ("length", "final(length)**2"):
        first = simkit.value_and_grad(simulation, "rest", objective=objective, steps=2000)
        second = partial(simkit.value_and_grad, simulation, "rest", objective=objective, steps=2000, rest=1.2)
        assert counted(second) == NOTHING
        assert second()[0] != first[0]
    assert counts == dict.fromkeys(counts, 1)


def test_a_scenario_run_again_by_its_name_is_found_again(counted):
    settings = {"steps": 20, "every": 10}
    first = simkit.run("projectile", **settings)
    again = []
    for values in ({}, {"launch_speed": 11.0}, {"seed": 3}):
        assert counted(lambda values=values: again.append(simkit.run("projectile", **settings, **values))) == NOTHING
    np.testing.assert_array_equal(again[0]["position"], first["position"])
    narrow = simkit.run("projectile", **settings, precision="float32")
    assert narrow["position"].dtype == np.float32 and first["position"].dtype == np.float64
    with pytest.raises(simkit.UserError, match="launch_speed"):
        simkit.run("projectile", **settings, launch_speed=-1e9)
