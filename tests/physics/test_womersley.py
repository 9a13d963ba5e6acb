"""Oscillating channel flow against Womersley's solution, here in complex numbers."""

import functools
import itertools
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

PERIOD = 2 * np.pi


def shipped(*, cells=32, stretching=0.0, alpha=8.0, share=1.0, time_step=PERIOD / 400, precision="float64"):
    """The shipped scenario."""
    y = {"config.axes.y.cells": cells, "config.axes.y.stretching": stretching}
    params = {"womersley": alpha, "initial_share": share, "time_step": time_step}
    return build(load("womersley", {"config.axes.x.cells": 4, "precision": precision, **y, **params}))


def after(periods, steps, **given):
    """Coordinates, state and diagnostics after some periods."""
    simulation = shipped(time_step=periods * PERIOD / steps, **given)

    @jax.jit
    def run(params):
        state = segment(simulation, steps)(simulation.init(params, jax.random.key(0)), params)
        return state, simulation.diagnose(state, params)

    return simulation.coordinates["y"], *run(simulation.params)


def displacement(y, alpha):
    """The complex amplitude of the displacement whose derivative is that velocity."""
    b = alpha * np.sqrt(1j)
    return -(1 - np.cosh(b * y) / np.cosh(b))


def velocity(y, alpha, time):
    """The solution of du/dt = cos(t) + u_yy/alpha^2 that is periodic."""
    return np.real(1j * displacement(y, alpha) * np.exp(1j * time))


@functools.cache
def at_start(precision):
    """The simulation, and ``params -> observed`` at the start."""
    simulation = shipped(time_step=0.001, precision=precision)
    return simulation, jax.jit(lambda params: simulation.observe(simulation.init(params, jax.random.key(0)), params))


@every(product([0.5, 3.0, 30.0], [("float32", 2e-6), ("float64", 1e-13)]))
def test_exact_solution_is_womersleys(alpha, case):
    """At 30, exp(alpha sqrt(2)) = 3e18 is the largest number: its square is within float32."""
    precision, rounding = case
    with jax.enable_x64(precision == "float64"):
        simulation, observe = at_start(precision)
        found = observe(simulation.with_params(womersley=alpha).params)
    expected = displacement(simulation.coordinates["y"], alpha)
    np.testing.assert_allclose(found["in_phase"], expected.real, rtol=0, atol=rounding)
    np.testing.assert_allclose(found["out_of_phase"], expected.imag, rtol=0, atol=rounding)
    np.testing.assert_allclose(found["displacement"][0], expected.real, rtol=0, atol=rounding)
    np.testing.assert_allclose(found["u"][0], -expected.imag, rtol=0, atol=rounding)


def test_flow_from_rest_becomes_womersleys():
    y, state, found = after(4, 400, alpha=2.0, share=0.0)
    # What is left of the start decays at the rate pi^2/4/alpha^2 = 0.617: exp(-0.617 * 8 pi) = 2e-7. Differences
    # across h = 1/16 and steps of 2 pi/100 err by (b h)^2/12 = 1.3e-3 and dt^2/12 = 3e-4 at most, with |b| = alpha.
    np.testing.assert_allclose(state.velocity[0][0], velocity(y, 2.0, 8 * np.pi), rtol=0, atol=2e-3)
    assert found["velocity_error"] < 2e-3


def test_amplitude_and_phase_are_of_second_order_in_space():
    found = [after(1, 400, cells=n)[2] for n in (32, 64, 128)]
    errors = np.array([[d["amplitude_ratio"] - 1, d["phase_error"]] for d in found])
    # At alpha = 8 the layers at the walls have two cells of the coarsest grid, so that terms of higher order show,
    # and the time step, dt^2/12 = 2e-5, shows in the amplitude on the finest, 1.1e-4.
    orders = np.log2(errors[:-1] / errors[1:])
    assert np.all(orders > 1.95), orders


def test_flow_is_of_second_order_in_time():
    runs = [after(1, steps)[1] for steps in (100, 200, 400)]
    for part in (lambda state: state.velocity[0], lambda state: state.scalar["displacement"]):
        changes = [jnp.max(jnp.abs(part(a) - part(b))) for a, b in itertools.pairwise(runs)]
        # The next term is smaller by the rate of the oscillation times the step, 0.06.
        assert np.log2(changes[0] / changes[1]) == pytest.approx(2, abs=0.1)


def test_finer_cells_at_the_walls_resolve_a_thin_layer_better():
    errors = [after(1, 400, alpha=20.0, stretching=stretching)[2]["velocity_error"] for stretching in (0.0, 2.0)]
    # Layers of 1/20, and cells of 1/16 or, at the walls, 1/64 or so.
    assert errors[1] < errors[0] / 4


def test_dye_moves_with_the_fluid():
    y, state, _ = after(0.25, 50)
    moved = state.scalar["displacement"][0] - displacement(y, 8.0).real
    times = np.linspace(0, PERIOD / 4, 2001)
    path = np.trapezoid(np.stack([velocity(y, 8.0, t) for t in times]), times, axis=0)
    # As for the velocity: with cells of 1/16 and |b| = 8 differences err by some (b h)^2/12 = 0.02.
    np.testing.assert_allclose(moved, path, rtol=0, atol=0.02)
