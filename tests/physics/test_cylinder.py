"""The benchmark of Schäfer and Turek: a cylinder in a channel."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.flow import cylinder_in_channel

# In units of the diameter and the mean velocity; the benchmark has 0.1 m and 0.2 m/s.
DRAG, LIFT, PRESSURE = 5.57953523384, 0.010618948146, 0.11752016697 / 0.2**2


@functools.cache
def history(cells, reynolds, time_step, time):
    """The diagnostics of a run, ten or so per unit of time."""
    simulation = cylinder_in_channel(cells_per_diameter=cells, growth=0.04).with_params(
        reynolds=reynolds, time_step=time_step, disturbance=0.5 if reynolds > 50 else 0.0
    )
    simulation = dataclasses.replace(simulation, observe=lambda state, params: {})
    every = int(0.1 / time_step)
    run = jax.jit(trajectory(simulation, int(time / time_step) // every * every, every))
    return {name: np.array(values) for name, values in run(simulation.params, jax.random.key(0))[2].items()}


def shedding(name):
    found = history(48, 100.0, 0.006, 36.0)
    return found[name][found["time"] > 24]


def test_steady_drag_lift_and_pressure_are_those_of_the_benchmark():
    last = {name: values[-1] for name, values in history(24, 20.0, 0.0065, 8.0).items()}
    # Measured: 0.06 %, 1.2 % and 3.8 % off; with 48 cells, at rest at t = 16, 0.02 %, 0.08 % and 0.3 %.
    assert last["drag_coefficient"] == pytest.approx(DRAG, rel=0.01)
    assert last["pressure_difference"] == pytest.approx(PRESSURE, rel=0.02)
    assert last["lift_coefficient"] == pytest.approx(LIFT, rel=0.1)


@pytest.mark.slow
def test_steady_drag_lift_and_pressure_converge_to_those_of_the_benchmark():
    last = {name: values[-1] for name, values in history(48, 20.0, 0.0025, 16.0).items()}
    assert last["drag_coefficient"] == pytest.approx(DRAG, rel=1e-3)
    assert last["pressure_difference"] == pytest.approx(PRESSURE, rel=5e-3)
    assert last["lift_coefficient"] == pytest.approx(LIFT, rel=0.01)


@pytest.mark.slow
def test_vortices_at_reynolds_100_are_shed_as_often_as_in_the_benchmark():
    time, lift = shedding("time"), shedding("lift_coefficient")
    above = lift - lift.mean()
    rises = np.flatnonzero((above[:-1] < 0) & (above[1:] >= 0))
    crossings = time[rises] - above[rises] * (time[rises + 1] - time[rises]) / (above[rises + 1] - above[rises])
    # Measured: 0.304.
    assert 0.295 < (len(crossings) - 1) / (crossings[-1] - crossings[0]) < 0.305


@pytest.mark.slow
def test_largest_drag_at_reynolds_100_is_that_of_the_benchmark():
    # Measured: 3.225; with 24 cells per diameter, 3.16.
    assert 3.22 < shedding("drag_coefficient").max() < 3.24


@pytest.mark.slow
@pytest.mark.xfail(strict=True, reason="0.949 with 48 cells per diameter, 0.827 with 24: second order, toward 0.989")
def test_largest_lift_at_reynolds_100_is_that_of_the_benchmark():
    assert 0.99 < shedding("lift_coefficient").max() < 1.01
