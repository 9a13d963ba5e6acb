"""Quantities defined by expressions: in runs, sweeps, derivatives and ensembles, for every kind of simulation."""

import numpy as np
import pytest

import simkit
from simkit.core.expressions.measures import ExpressedQuantity, with_expressions
from simkit.core.simulation import Quantity
from simkit.errors import UserError
from tests.core.cases import cases
from tests.flow.plane_channel import plane_channel

UNIT = Quantity("1", "a measure")


def measured(simulation, **texts):
    said = {name: ExpressedQuantity(text, UNIT, f"file.toml: quantities.{name}") for name, text in texts.items()}
    return with_expressions(simulation, said)


@pytest.fixture
def channel():
    return plane_channel((8, 6))


@cases(
    ("text", "message"),
    [
        ("u + w", "column 5 of 'u + >>>w': 'w' is not known here"),
        ("time_mean(u)", "reduces frames, and a quantity has one; make it an objective"),
        ('mean(u, axis="z")', "reduces along 'z'; the array has x, y"),
        ("profile + side_velocity + u[-1]", "'u[-1]' is no entry of an array"),
        ("u[8, 0]", "is beyond the 8 entries along 'x'; write a number up to 7"),
        ("u[0, 0, 0]", "has 3 numbers, and the array has 2 axes"),
        ("reynold", "did you mean 'reynolds'?"),
    ],
)
def test_a_mistake_is_one_line(channel, text, message):
    with pytest.raises(UserError, match=r"file\.toml: quantities\.wrong: ") as caught:
        measured(channel, wrong=text)
    assert message in str(caught.value)


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
