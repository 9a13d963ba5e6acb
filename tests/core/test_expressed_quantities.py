"""Quantities defined by expressions: in runs, sweeps, derivatives and ensembles, for every kind of simulation."""

import numpy as np
import pytest

import simkit
from simkit.core.expressions.measures import ExpressedQuantity, with_expressions
from simkit.core.simulation import Quantity
from simkit.errors import UserError
from tests.flow.plane_channel import plane_channel

UNIT = Quantity("1", "a measure")


def measured(simulation, **texts):
    said = {name: ExpressedQuantity(text, UNIT, f"file.toml: quantities.{name}") for name, text in texts.items()}
    return with_expressions(simulation, said)


@pytest.fixture
def channel():
    return plane_channel((8, 6))


def nameless():
    """Three numbers that grow, in arrays whose axes have no names."""

    def step(state, params):
        return {"a": state["a"] + params["step"], "time": state["time"] + params["step"]}

    return simkit.Simulation(
        init=lambda params, key: {"a": params["step"] + np.arange(3.0), "time": 0 * params["step"]},
        step=step,
        observe=lambda state, params: {"a": state["a"], "b": 2 * state["a"]},
        diagnose=lambda state, params: {"time": state["time"]},
        params={"step": 0.1},
    )


def test_unnamed_axes_are_not_aligned_between_arrays(x64):
    told = measured(nameless(), off="a - mean(a)", again="off*a*2")
    run = simkit.run(told, steps=1)
    assert run["off"].dims == run["again"].dims == run["a"].dims
    np.testing.assert_allclose(run["again"][-1], 2 * np.array([-1, 0, 1]) * run["a"][-1])
    value, _ = simkit.value_and_grad(told, "step", objective="sum(off*a)", steps=1)
    assert value == pytest.approx(2.0)
    remedy = "combines arrays, and 'a_0' is an axis without a name; name it in 'dimensions'"
    with pytest.raises(UserError, match=remedy):
        measured(nameless(), product="sum(a*b)")
    with pytest.raises(UserError, match=remedy):
        simkit.value_and_grad(nameless(), "step", objective="sum(a*b)", steps=1)


def test_after_includes_a_frame_whose_time_is_short_by_round_off(x64):
    # In float64, ten times 0.1 add up to less than 1.
    value, _ = simkit.value_and_grad(nameless(), "step", objective="smallest(time, after=1)", steps=20, every=1)
    assert value == pytest.approx(1.0)
