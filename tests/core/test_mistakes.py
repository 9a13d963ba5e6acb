"""Mistakes in the use of the transformations are refused by name."""

import jax
import pytest

from simkit.core import gradient
from simkit.core.ensemble import ensemble
from simkit.core.objective import Objective
from simkit.core.ranges import check_not_negative, check_positive
from simkit.core.rollout import segment, trajectory
from simkit.errors import UserError
from tests.core.toys import oscillator


def test_members_that_differ_in_what_is_no_parameter():
    with pytest.raises(UserError, match="unknown parameter 'frequenzy'; did you mean 'frequency'"):
        ensemble(oscillator(), ["frequenzy"])


def test_objective_of_what_is_not_diagnosed():
    with pytest.raises(UserError, match="'enrgy' is not a diagnostic; did you mean 'energy'"):
        Objective(oscillator(), "enrgy", 10)


@pytest.mark.parametrize("steps", [0, -1])
def test_objective_of_no_step(steps):
    with pytest.raises(ValueError, match=f"steps = {steps} takes no step"):
        Objective(oscillator(), "energy", steps)


def test_segment_of_less_than_no_step():
    with pytest.raises(ValueError, match="steps = -3 is negative"):
        segment(oscillator(), -3)


def test_unknown_ways_to_differentiate_and_to_hold_states():
    with pytest.raises(UserError, match="mode = 'revers' is unknown; choose one of reverse, forward, shortest"):
        gradient.value_and_grad(Objective(oscillator(), "energy", 10), ["frequency"], "revers")
    with pytest.raises(ValueError, match="memory = 'tiny' is unknown; choose 'balanced' or 'smallest'"):
        trajectory(oscillator(), 10, 1, memory="tiny")


def test_physical_ranges_name_the_parameter():
    params = {"mass": jax.numpy.asarray([1.0, -2.0]), "drag": jax.numpy.asarray(0.0)}
    check_positive({"mass": params["mass"][:1]}, "mass")
    check_not_negative(params, "drag")
    with pytest.raises(UserError, match="mass = -2 is not positive; choose a value above 0"):
        check_positive(params, "mass")
    with pytest.raises(UserError, match="drag = 0 is not positive"):
        check_positive(params, "drag")
    with pytest.raises(UserError, match="mass = -2 is negative; choose 0 or a value above"):
        check_not_negative(params, "drag", "mass")
    with pytest.raises(UserError, match="drag = nan is not positive"):
        check_positive({"drag": jax.numpy.asarray(float("nan"))}, "drag")
