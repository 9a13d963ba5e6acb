"""The Taylor-Green vortex: orders of accuracy where it is carried through the grid, and energy in 2-D and 3-D."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.core.rollout import segment
from simkit.flow.boundary.domain import domain
from simkit.flow.diagnosis.measures import kinetic_energy
from simkit.flow.equations import Equations, explicit_terms
from simkit.flow.grid import periodic_axis
from simkit.flow.operators.differences import divergence
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from simkit.scenario.made_in_python import load

pytestmark = pytest.mark.usefixtures("x64")


def vortices(cells, method="runge_kutta", waves=1):
    """The shipped scenario, of wave number 2, with some cells along a square that holds some waves each way."""
    config = {"method": method}
    for axis in ("x", "y"):
        config |= {f"axes.{axis}.cells": cells, f"axes.{axis}.length": f"{waves}*pi"}
    return simkit.build(load("taylor_green", {f"config.{key}": value for key, value in config.items()}))


def after(time, steps, *, cells, method="runge_kutta", waves=1, **params):
    """State and diagnostics at a given time."""
    simulation = vortices(cells, method, waves).with_params(time_step=time / steps, **params)

    @jax.jit
    def run(params):
        state = segment(simulation, steps)(simulation.init(params, jax.random.key(0)), params)
        return state, simulation.diagnose(state, params)

    return run(simulation.params)


def distance(a, b):
    return max(float(jnp.max(jnp.abs(f - g))) for f, g in zip(a.velocity, b.velocity, strict=True))


def test_carried_vortex_is_of_second_order_in_space():
    # 60 steps leave an error in time of 6e-8 (see the next test, of third order), against 1e-3 in space.
    errors = [after(0.25, 60, cells=n, kinematic_viscosity=0.025)[1]["velocity_error"] for n in (16, 32, 64)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    # The next term of the error is smaller by h^2 = 0.15 times 1/20 or so, at most, on the coarsest grid.
    assert np.all(orders > 1.95) and np.all(orders < 2.05)
    # A wave lags by (k h)^2/6 of its way and more where vortices carry it: 2 * 0.5 * (k h)^2/6 = 1.6e-3 at 64 cells.
    # Values at the centers of cells are means of those at two faces, smaller by (k h)^2/8 = 1.2e-3.
    assert errors[-1] < 2.8e-3


@pytest.mark.parametrize(("method", "order", "steps"), [("runge_kutta", 3, 10), ("adams_bashforth", 2, 40)])
def test_carried_vortex_is_of_the_order_of_the_method_in_time(method, order, steps):
    runs = [after(0.5, n, cells=16, method=method, kinematic_viscosity=0.025)[0] for n in (steps, 2 * steps, 4 * steps)]
    changes = distance(runs[0], runs[1]), distance(runs[1], runs[2])
    # The next term is smaller by the fastest rate of change, k (U + V) = 4, times the time step, 0.025 at most, times a
    # fraction that counts in the last digit only.
    assert np.log2(changes[0] / changes[1]) == pytest.approx(order, abs=0.05)


def test_vortices_decay_exponentially():
    _, found = after(2.0, 100, cells=32, waves=2, kinematic_viscosity=0.05)
    # The discrete rate is that of the exact solution times (sin(k h/2) / (k h/2))^2.
    half = 2 * np.pi / 32
    rate = 2 * 0.05 * 4 * (np.sin(half) / half) ** 2
    # The rest is due to advection, which deforms the pattern by the error of its speed, (k h)^2/6 = 0.026, squared.
    assert found["vortex_strength"] == pytest.approx(np.exp(-rate * 2.0), rel=1e-3)
    assert found["exact_strength"] == pytest.approx(np.exp(-0.4 * 2.0), rel=1e-14)


def test_energy_without_viscosity_is_conserved_but_for_the_error_of_the_time_step():
    losses = [0.25 - float(after(1.0, n, cells=16, kinematic_viscosity=0.0)[1]["vortex_energy"]) for n in (40, 80, 160)]
    # Runge-Kutta's of third order takes (omega dt)^4/12 of a wave's energy in each step, omega = k (U + V) = 4.
    assert 0 < losses[0] < 0.25 * 40 * (4 * 0.025) ** 4 / 12
    orders = np.log2(np.array(losses[:-1]) / losses[1:])
    # The next term is smaller by (omega dt)^2 = 0.01, and the loss falls with the cube of the step.
    assert orders == pytest.approx(3, abs=0.05)


@functools.cache
def vortex_in_three_dimensions():
    """The three-dimensional Taylor-Green vortex: initial state, initial acceleration, and later states."""
    axis, viscosity = periodic_axis(12, 2 * np.pi), 0.02
    box = domain((axis,) * 3, (None,) * 3)
    equations = Equations(domain=box, viscosity=lambda params: params["viscosity"], time_step=fixed_time_step)
    start, step = stepper(equations)
    f, c = axis.points, axis.centers
    u = np.sin(f)[:, None, None] * np.cos(c)[:, None] * np.cos(c)
    v = -np.cos(c)[:, None, None] * np.sin(f)[:, None] * np.cos(c)
    velocity = jnp.asarray(u), jnp.asarray(v), jnp.zeros(box.grid.cells)
    params = {"viscosity": jnp.asarray(viscosity), "time_step": jnp.asarray(0.05)}

    @jax.jit
    def run(velocity, params):
        state = start(velocity, params)
        terms = explicit_terms(velocity, (), equations, params, jnp.zeros(()))

        def advance(state, _):
            state = step(state, params)
            return state, kinetic_energy(state.velocity, box.grid)

        state, energies = jax.lax.scan(advance, state, None, length=60)
        return terms, state, energies

    return box.grid, velocity, viscosity, *run(velocity, params)


def test_vortex_in_three_dimensions_starts_to_decay_at_the_rate_of_its_wave_numbers():
    grid, velocity, viscosity, terms, _, _ = vortex_in_three_dimensions()
    rate = sum(jnp.mean(f * a) for f, a in zip(velocity, terms, strict=True))
    half = np.pi / 12
    wave_numbers = 3 * (np.sin(half) / half) ** 2
    energy = kinetic_energy(velocity, grid)
    assert energy == pytest.approx(1 / 8, rel=1e-14)
    # Advection does no work, so this is friction alone, to rounding.
    assert rate == pytest.approx(-2 * viscosity * wave_numbers * float(energy), rel=1e-12)


def test_vortex_in_three_dimensions_stretches_and_preserves_its_symmetries():
    grid, _, _, _, state, energies = vortex_in_three_dimensions()
    u, v, w = state.velocity
    energies = np.concatenate([[1 / 8], energies])
    assert np.all(np.diff(energies) < 0)
    # In two dimensions enstrophy cannot grow, so that no part of the energy would be lost faster than at the start.
    # Here vortices are stretched.
    lost = -np.diff(np.log(energies))
    assert lost[-1] > lost[0]
    assert jnp.max(jnp.abs(w)) > 0.05
    # Rounding of velocities of size 1 over cells of 0.5, six faces each.
    assert jnp.max(jnp.abs(divergence(state.velocity, grid))) < 2e-14
    # Exchanging x and y and going half a period along z leaves the flow as it is, and so does z to -z. Both hold to the
    # rounding of 60 steps.
    half = grid.cells[2] // 2
    np.testing.assert_allclose(v, jnp.roll(u.swapaxes(0, 1), half, 2), rtol=0, atol=1e-13)
    np.testing.assert_allclose(w, jnp.roll(w.swapaxes(0, 1), half, 2), rtol=0, atol=1e-13)
    np.testing.assert_allclose(u, u[:, :, ::-1], rtol=0, atol=1e-13)
