"""The benchmark of Schäfer and Turek: a cylinder in a channel."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from tests.physics.test_cylinder import DRAG, LIFT, METHODS, PRESSURE, channel, history


def shedding(name, method):
    """A diagnostic while vortices are shed regularly: with 16 cells, or 48 for direct forcing."""
    found = history(16, 100.0, 0.02, 40.0) if method == "immersed_boundary" else history(48, 100.0, 0.006, 36.0, method)
    return found[name][found["time"] > (30 if method == "immersed_boundary" else 24)]


def test_steady_drag_lift_and_pressure_of_direct_forcing_converge_to_those_of_the_benchmark():
    last = {name: values[-1] for name, values in history(48, 20.0, 0.0025, 16.0, "direct_forcing").items()}
    assert last["drag_coefficient"] == pytest.approx(DRAG, rel=1e-3)
    assert last["pressure_difference"] == pytest.approx(PRESSURE, rel=5e-3)
    assert last["lift_coefficient"] == pytest.approx(LIFT, rel=0.01)


@METHODS
def test_vortices_at_reynolds_100_are_shed_as_often_as_in_the_benchmark(method):
    time, lift = shedding("time", method), shedding("lift_coefficient", method)
    above = lift - lift.mean()
    rises = np.flatnonzero((above[:-1] < 0) & (above[1:] >= 0))
    crossings = time[rises] - above[rises] * (time[rises + 1] - time[rises]) / (above[rises + 1] - above[rises])
    # Measured: 0.303 and 0.304.
    assert 0.295 < (len(crossings) - 1) / (crossings[-1] - crossings[0]) < 0.305


def test_largest_drag_and_lift_at_reynolds_100_are_near_those_of_the_benchmark_with_16_cells():
    # Measured: 3.274, published 3.22 to 3.24; and 0.961, published 0.99 to 1.01. Direct forcing: 3.062 and 0.652.
    assert shedding("drag_coefficient", "immersed_boundary").max() == pytest.approx(3.23, rel=0.02)
    assert shedding("lift_coefficient", "immersed_boundary").max() == pytest.approx(1.0, rel=0.05)


def test_largest_drag_and_lift_in_a_pulse_are_near_those_of_the_benchmark_with_16_cells():
    """The third case, 2D-3; values of John, Int. J. Numer. Meth. Fluids 44, 777 (2004), doi:10.1002/fld.679."""
    found = history(16, 100.0, 0.02, 80.0, pulse=80.0, growth=0.015)
    # Measured: 2.989 and 0.475.
    assert found["drag_coefficient"].max() == pytest.approx(2.9509, rel=0.02)
    assert found["lift_coefficient"].max() == pytest.approx(0.4779, rel=0.05)


def test_pressure_after_a_pulse_is_that_of_the_benchmark_with_24_cells():
    found = history(24, 100.0, 0.02, 80.0, pulse=80.0, growth=0.03)
    # Measured: -0.1113; with 16 cells -0.1032, 7.6 % off: the wake that is left of the pulse needs them.
    assert found["pressure_difference"][-1] == pytest.approx(-0.1116, rel=0.01)


def test_largest_drag_of_direct_forcing_at_reynolds_100_is_that_of_the_benchmark():
    # Measured: 3.226; with 24 cells per diameter, 3.16.
    assert 3.22 < shedding("drag_coefficient", "direct_forcing").max() < 3.24


def test_drag_changes_as_smoothly_with_the_position_of_the_cylinder_as_on_a_finer_grid():
    """While the cylinder moves through a cell, at Reynolds number 20."""

    def drags(cells, time_step, places):
        simulation = channel(cells, 0.04, reynolds=20.0, disturbance=0.0, time_step=time_step)
        simulation = dataclasses.replace(simulation, observe=lambda state, params: {})
        steps = round(12 / time_step)
        run = jax.jit(lambda p: trajectory(simulation, steps, steps)(p, jax.random.key(0))[2]["drag_coefficient"][-1])
        return np.array([run(simulation.params | {"center_x": jnp.asarray(x)}) for x in places])

    with jax.enable_x64(True):
        places = 2 + np.linspace(0, 1, 6) / 16
        slopes = np.diff(drags(16, 0.0133, places)) / np.diff(places)
        fine = np.diff(drags(32, 0.0055, places[[0, -1]])) / (places[-1] - places[0])
    # Measured: -0.598 to -0.507 and -0.550; within 9 %. Direct forcing: +0.59 to -1.57.
    np.testing.assert_allclose(slopes, fine[0], rtol=0.1)


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="0.949 with 48 cells per diameter, 0.827 with 24: second order, toward 0.989",
)
def test_largest_lift_of_direct_forcing_at_reynolds_100_is_that_of_the_benchmark():
    assert 0.99 < shedding("lift_coefficient", "direct_forcing").max() < 1.01
