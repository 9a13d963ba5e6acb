"""The benchmark of Schäfer and Turek: a cylinder in a channel."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load

# In units of the diameter and the mean velocity; the benchmark has 0.1 m and 0.2 m/s.
DRAG, LIFT, PRESSURE = 5.57953523384, 0.010618948146, 0.11752016697 / 0.2**2


def channel(cells, growth, method="immersed_boundary", pulse=0.0, **params):
    """The shipped scenario with some cells across the cylinder, finest up to 0.7 or 0.8 diameters from its center."""
    given = {"config.obstacle_method": method} | params
    for axis, behind in (("x", 0.8), ("y", 0.7)):
        part = {"cell": 1 / cells, "from": 2 - round(0.7 * cells) / cells, "to": 2 + round(behind * cells) / cells}
        given[f"config.axes.{axis}.refined"] = part | {"growth": growth}
    if pulse:
        given["config.axes.x.lower.u"] = f"6*y*(4.1 - y)/4.1**2*sin(pi*time/{pulse})"
        given["config.initial.stream_function"] = "0"
    return build(load("cylinder_in_channel", given))


@functools.cache
def history(cells, reynolds, time_step, time, method="immersed_boundary", pulse=0.0, growth=0.04):
    """The diagnostics of a run, ten or so per unit of time."""
    disturbance = 0.5 if reynolds > 50 and not pulse else 0.0
    params = {"reynolds": reynolds, "time_step": time_step, "disturbance": disturbance}
    simulation = channel(cells, growth, method, pulse, **params)
    simulation = dataclasses.replace(simulation, observe=lambda state, params: {})
    every = int(0.1 / time_step)
    run = jax.jit(trajectory(simulation, round(time / time_step) // every * every, every))
    return {name: np.array(values) for name, values in run(simulation.params, jax.random.key(0))[2].items()}


METHODS = pytest.mark.parametrize("method", ["immersed_boundary", "direct_forcing"])


def steady(method):
    """The last diagnostics at Reynolds number 20."""
    found = history(16, 20.0, 0.0133, 8.0) if method == "immersed_boundary" else history(24, 20.0, 0.0065, 8.0, method)
    return {name: values[-1] for name, values in found.items()}


@METHODS
def test_steady_drag_and_lift_are_those_of_the_benchmark(method):
    # Measured: 0.5 % and 2.8 % off with 16 cells; direct forcing with 24 cells 0.06 % and 3.8 %.
    assert steady(method)["drag_coefficient"] == pytest.approx(DRAG, rel=0.01)
    assert steady(method)["lift_coefficient"] == pytest.approx(LIFT, rel=0.1)


@METHODS
def test_steady_pressure_difference_is_that_of_the_benchmark(method):
    # Measured: 0.5 % off; direct forcing 0.01 %. Without the slope at the wall 3.3 and 1.2 %.
    assert steady(method)["pressure_difference"] == pytest.approx(PRESSURE, rel=0.01)
