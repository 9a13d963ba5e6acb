"""Sides of several parts: slots in walls, partly sliding lids, and refusals."""

import jax
import numpy as np
import pytest

from simkit import flow
from simkit.errors import UserError

pytestmark = pytest.mark.usefixtures("x64")


def layer(lower, **more):
    given = {
        "axes": {
            "x": {"cells": 8, "length": 2, "lower": lower, "upper": more.pop("upper", "pressure")},
            "y": {"cells": 10, "from": -1, "to": 1, "lower": "wall", "upper": "wall"},
        },
        "viscosity": 0.1,
        "parameters": {"stream": 1.0, "half": 0.35, "time_step": 0.01},
    }
    return flow.system(**given | more)


SLOT = ["wall", {"kind": "inflow", "u": "stream*(1 + 0.5*sin(time))", "where": "abs(y) < half"}]


@pytest.mark.parametrize("upper", ["pressure", "outflow"])
@pytest.mark.parametrize("implicit", [[], ["y"], ["x", "y"]])
def test_a_jet_enters_through_its_slot_only_and_flows_out(upper, implicit):
    made = layer(SLOT, upper=upper, implicit=implicit)
    key = jax.random.key(0)
    made.check_values(made.params, key)
    run = jax.jit(lambda p: jax.lax.fori_loop(0, 5, lambda _, s: made.step(s, p), made.init(p, key)))
    state = run(made.params)
    entering = np.asarray(state.velocity[0])[0]
    # Centers of faces at 0.1 and 0.3 on both sides are within 0.35.
    expected = np.where(np.abs(np.linspace(-0.9, 0.9, 10)) < 0.35, 1 + 0.5 * np.sin(0.05), 0)
    np.testing.assert_allclose(entering, expected, rtol=0, atol=1e-14)
    numbers = made.diagnose(state, made.params)
    np.testing.assert_allclose(numbers["x_lower.flow"], 0.8 * (1 + 0.5 * np.sin(0.05)), rtol=1e-13)
    np.testing.assert_allclose(numbers["x_upper.flow"], -numbers["x_lower.flow"], rtol=1e-12)
    assert float(numbers["divergence"]) < 1e-12


def test_a_part_is_the_program_of_a_velocity_that_is_zero_elsewhere():
    by_hand = {"kind": "inflow", "u": "where(abs(y) < half, (stream*(1 + 0.5*sin(time))), 0)"}
    programs = []
    for lower in (SLOT, by_hand):
        made = layer(lower)
        state = jax.eval_shape(made.init, made.params, jax.random.key(0))
        programs.append(jax.jit(made.step).lower(state, made.params).as_text())
    assert programs[0] == programs[1]


def test_a_part_of_a_lid_slides():
    lid = ["wall", {"kind": "wall", "v": 2, "where": "y > 0.5"}, {"kind": "wall", "v": "-stream", "where": "y < -0.5"}]
    made = layer(lid, upper="wall")
    made.check_values(made.params, jax.random.key(0))
    state = jax.jit(lambda p: made.step(made.init(p, jax.random.key(0)), p))(made.params)
    v = np.asarray(state.velocity[1])[0]
    assert v[9] > 0.01 > abs(v[5]) and v[1] < -0.005


MISTAKES = {
    "a rest with a condition": ([{"kind": "wall", "where": "y > 0"}, SLOT[1]], r"x\.lower\[0\]\.where is given"),
    "a part without one": (["wall", {"kind": "inflow", "u": 1}], r"x\.lower\[1\]\.where is missing; the first of"),
    "a pressure": (
        ["wall", {"kind": "pressure", "where": "y > 0"}],
        r"x\.lower\[1\] is of kind 'pressure', which can be no",
    ),
    "no part": (["wall"], r"x\.lower is a list of 1; write the rest of the side and a part of it"),
    "no list": ({"kind": "wall", "where": "y > 0"}, r"x\.lower\.where is given, and nothing says what the rest"),
    "no velocity": (["wall", {"kind": "inflow", "where": "y > 0"}], r"x\.lower\[1\]\.u is missing; give the velocity"),
    "through a wall": (
        ["wall", {"kind": "wall", "u": 1, "where": "y > 0"}],
        r"\[1\]\.u is given, and a wall lets nothing",
    ),
    "a number": (
        ["wall", {"kind": "inflow", "u": 1, "where": "y"}],
        r"\[1\]\.where: .*'y' is a number where a condition is needed",
    ),
    "an unknown name": (
        ["wall", {"kind": "inflow", "u": 1, "where": "yy > 0"}],
        r"\[1\]\.where: .*'yy' is not known here",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_incompatible_parts_are_refused_by_name(case):
    lower, message = MISTAKES[case]
    with pytest.raises(UserError, match=message):
        layer(lower)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            [{**SLOT[1], "where": "y > 5"}],
            r"x\.lower\[1\]\.where holds at the center of no face of the side at the start",
        ),
        ([{**SLOT[1], "where": "y < 5"}], r"x\.lower\[1\]\.where leaves nothing of the rest of the side"),
        ([SLOT[1], {**SLOT[1], "where": "y > 0.2"}], r"x\.lower\[2\]\.where holds where another part of the side does"),
    ],
)
def test_conditions_that_select_nothing_everything_or_the_same_are_refused_before_a_run(parts, message):
    made = layer(["wall", *parts])
    with pytest.raises(UserError, match=message):
        made.check_values(made.params, jax.random.key(0))
