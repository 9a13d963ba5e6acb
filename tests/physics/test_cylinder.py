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
    simulation = cylinder_in_channel(cells_per_diameter=cells).with_params(
        reynolds=reynolds, time_step=time_step, disturbance=0.5 if reynolds > 50 else 0.0
    )
    simulation = dataclasses.replace(simulation, observe=lambda state, params: {})
    every = int(0.1 / time_step)
    run = jax.jit(trajectory(simulation, int(time / time_step) // every * every, every))
    return {name: np.array(values) for name, values in run(simulation.params, jax.random.key(0))[2].items()}


def test_drag_at_reynolds_20_on_a_coarse_grid():
    found = history(10, 20.0, 0.03, 12.0)
    # Second order from the 0.14 % and 2.6 % measured with 16 cells per diameter: 0.4 % and 7 %; the error of the
    # pressure is less regular.
    assert found["drag_coefficient"][-1] == pytest.approx(DRAG, rel=0.02)
    assert found["pressure_difference"][-1] == pytest.approx(PRESSURE, rel=0.07)


def steady():
    return history(32, 20.0, 0.0037, 24.0)


def shedding(name):
    found = history(24, 100.0, 0.014, 40.0)
    return found[name][found["time"] > 24]


@pytest.mark.slow
def test_drag_and_pressure_at_reynolds_20_are_those_of_the_benchmark():
    # Measured: 5.5824 and 2.929.
    assert steady()["drag_coefficient"][-1] == pytest.approx(DRAG, rel=0.01)
    assert steady()["pressure_difference"][-1] == pytest.approx(PRESSURE, rel=0.02)


@pytest.mark.slow
@pytest.mark.xfail(strict=True, reason="0.0084 is 21 % off; lift is 0.2 % of the drag and needs still finer cells")
def test_lift_at_reynolds_20_is_that_of_the_benchmark():
    assert steady()["lift_coefficient"][-1] == pytest.approx(LIFT, rel=0.1)


@pytest.mark.slow
def test_vortices_at_reynolds_100_are_shed_as_often_as_in_the_benchmark():
    time, lift = shedding("time"), shedding("lift_coefficient")
    above = lift - lift.mean()
    rises = np.flatnonzero((above[:-1] < 0) & (above[1:] >= 0))
    crossings = time[rises] - above[rises] * (time[rises + 1] - time[rises]) / (above[rises + 1] - above[rises])
    # Measured: 0.304.
    assert 0.295 < (len(crossings) - 1) / (crossings[-1] - crossings[0]) < 0.305


@pytest.mark.slow
@pytest.mark.xfail(strict=True, reason="3.18 with 24 cells per diameter, 3.10 with 16: needs finer cells")
def test_largest_drag_at_reynolds_100_is_that_of_the_benchmark():
    assert 3.22 < shedding("drag_coefficient").max() < 3.24


@pytest.mark.slow
@pytest.mark.xfail(strict=True, reason="0.80 with 24 cells per diameter, 0.71 with 16: needs finer cells")
def test_largest_lift_at_reynolds_100_is_that_of_the_benchmark():
    assert 0.99 < shedding("lift_coefficient").max() < 1.01
