"""Optimizations from several starts: equal to single optimizations, stored and resumed like a sweep."""

import pytest

import simkit
from simkit.errors import UserError


def valleys(y=1.0):
    """Return a record whose objective, x^4 - x^2 + x/5 + (y - 2)^2, has two minima in x."""

    def depth(s, params):
        x = params["x"]
        return x**4 - x**2 + 0.2 * x + (params["y"] - 2.0) ** 2

    return simkit.Simulation(
        init=lambda params, key: params["x"] * 0.0,
        step=lambda s, params: s,
        observe=lambda s, params: {"s": s},
        diagnose=lambda s, params: {"depth": depth(s, params)},
        params={"x": 0.3, "y": y},
        parameters={
            "x": simkit.Parameter(0.3, bounds=(-1.5, 1.5), doc="place"),
            "y": simkit.Parameter(1.0, bounds=(0.0, 5.0), doc="other place"),
        },
    )


OPTIONS = {"objective": "depth", "steps": 1, "iterations": 40}


def test_a_wrong_start_is_refused():
    for starts, words in (
        ({"z": [1.0]}, "'z' is not one of the parameters to optimize"),
        ({"x": [9.0]}, "above its upper bound 1.5"),
        (0, "starts = 0"),
    ):
        with pytest.raises(UserError, match=words):
            simkit.optimize(valleys(), ["x", "y"], starts=starts, **OPTIONS)
