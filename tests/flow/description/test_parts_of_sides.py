"""Sides of several parts: slots in walls, partly sliding lids, and refusals."""

import jax
import pytest

from simkit import flow
from simkit.errors import UserError
from tests.tables import every

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


def test_a_part_is_the_program_of_a_velocity_that_is_zero_elsewhere():
    by_hand = {"kind": "inflow", "u": "where(abs(y) < half, (stream*(1 + 0.5*sin(time))), 0)"}
    programs = []
    for lower in (SLOT, by_hand):
        made = layer(lower)
        state = jax.eval_shape(made.init, made.params, jax.random.key(0))
        programs.append(jax.jit(made.step).lower(state, made.params).as_text())
    assert programs[0] == programs[1]


MISTAKES = {
    "a rest with a condition": ([{"kind": "wall", "where": "y > 0"}, SLOT[1]], r"x\.lower\[0\]\.where has no effect"),
    "a part without one": (["wall", {"kind": "inflow", "u": 1}], r"x\.lower\[1\]\.where is missing; give a condition"),
    "a pressure": (["wall", {"kind": "pressure", "where": "y > 0"}], r"x\.lower\[1\]\.kind = 'pressure' takes a"),
    "no part": (["wall"], r"x\.lower is a list of 1; write the rest of the side and a part of it"),
    "no list": ({"kind": "wall", "where": "y > 0"}, r"x\.lower\.where has no effect on kind = 'wall', which is all"),
    "no velocity": (["wall", {"kind": "inflow", "where": "y > 0"}], r"x\.lower\[1\]\.u is missing; give a number"),
    "through a wall": (["wall", {"kind": "wall", "u": 1, "where": "y > 0"}], r"\[1\]\.u has no effect on kind ="),
    "a number": (["wall", {"kind": "inflow", "u": 1, "where": "y"}], r"\[1\]\.where: .*'y' is a number where a"),
    "an unknown name": (["wall", {"kind": "inflow", "u": 1, "where": "yy > 0"}], r"\[1\]\.where: .*'yy' is not known"),
}


@every(list(MISTAKES))
def test_incompatible_parts_are_refused_by_name(case):
    lower, message = MISTAKES[case]
    with pytest.raises(UserError, match=message):
        layer(lower)


@every(
    [
        ([{**SLOT[1], "where": "y > 5"}], r"x\.lower\[1\]\.where holds at the center of no face of the side at the"),
        ([{**SLOT[1], "where": "y < 5"}], r"x\.lower\[1\]\.where leaves nothing of the rest of the side"),
        ([SLOT[1], {**SLOT[1], "where": "y > 0.2"}], r"x\.lower\[2\]\.where holds where another part of the side does"),
    ]
)
def test_conditions_that_select_nothing_everything_or_the_same_are_refused_before_a_run(parts, message):
    made = layer(["wall", *parts])
    with pytest.raises(UserError, match=message):
        made.check_values(made.params, jax.random.key(0))
