"""Channel flow by Fourier waves and polynomials, and the waves that grow in it."""

import functools
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.spectral import leading_wave, spectral_channel
from simkit.flow.spectral.orr_sommerfeld import lobatto_points
from simkit.flow.spectral.stokes_modes import fields, stokes_modes
from tests.tables import every

SMALL: dict = {"points": (8, 17), "length": 5.0, "cells": (8, 6)}

STRONG = {"reynolds": 100.0, "perturbation": 0.3, "wall_velocity": 0.4, "forcing": 0.8, "time_step": 0.05}


def channel(start="laminar", **params):
    """A small simulation with eddies so strong that every term counts."""
    return spectral_channel(**SMALL, start=start).with_params(**(STRONG | params))


@functools.cache
def compiled(start, points, precision):
    """Start, steps (any number of them) and measurements, compiled once."""
    sim = spectral_channel(**(SMALL | {"points": points}), start=start)

    def advance(state, params, steps):
        return jax.lax.fori_loop(0, steps, lambda _, state: sim.step(state, params), state)

    return sim, jax.jit(sim.init), jax.jit(advance), jax.jit(sim.diagnose)


def after(steps, start="laminar", points=SMALL["points"], **params):
    """State, measurements and parameters after some steps."""
    precision = "float64" if jax.config.jax_enable_x64 else "float32"
    _, init, _, diagnose = compiled(start, points, precision)
    params = {name: jnp.asarray(value, precision) for name, value in (STRONG | params).items()}
    # Every start is advanced by one and the same program.
    advance = compiled("laminar", points, precision)[2]
    state = advance(init(params, jax.random.key(0)), params, steps)
    return state, diagnose(state, params), params


@every(
    [
        {"points": (7, 17)},
        {"points": (2, 17)},
        {"points": (8, 7)},
        {"points": (8.0, 17)},
        {"points": (True, 17)},
        {"points": (8,)},
        {"points": 8},
        {"cells": (0, 4)},
        {"cells": "44"},
        {"length": 0},
        {"length": float("nan")},
        {"length": 30.0},
        {"start": "turbulent"},
        {"start": 1},
    ]
)
def test_bad_configuration_is_refused_in_one_line_with_a_remedy(config):
    with pytest.raises(UserError, match=rf"^{next(iter(config))}(\[\d\])? = .*(choose|write)") as error:
        spectral_channel(**config)
    assert "\n" not in str(error.value)


def test_a_wave_outside_the_table_is_refused():
    sim = spectral_channel(points=(4, 17))
    sim.check(sim.params, jax.random.key(0))
    with pytest.raises(UserError, match=r"reynolds \* forcing of the wave = 1000 is below .*choose"):
        sim.check(sim.with_params(reynolds=1000.0).params, jax.random.key(0))


def test_float32_parameters_stay_float32_in_64_bit_mode(x64):
    sim = spectral_channel(**SMALL)
    params = jax.tree.map(lambda value: value.astype(jnp.float32), sim.params)
    state = jax.eval_shape(lambda p: sim.step(sim.init(p, jax.random.key(0)), p), params)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(state)} == {"float32", "int32"}
    recorded = [jax.eval_shape(part, state, params) for part in (sim.observe, sim.diagnose)]
    assert {leaf.dtype.name for leaf in jax.tree.leaves(recorded)} == {"float32"}


def test_start_of_poiseuille_flow_follows_its_series(x64):
    """Half-width 1, u = 1 - y^2 at the end: u(center) = 0.19774637 at nu t = 0.1, 0.69945453 at 0.5."""
    for time, expected in ((1.0, 0.19774637), (5.0, 0.69945453)):
        _, measured, _ = after(
            200, "rest", reynolds=10.0, perturbation=0.0, forcing=1.0, wall_velocity=0.0, time_step=time / 200
        )
        # Half a unit in the last digit, and the time step: third order, 1.7e-5 with 10 steps.
        assert measured["centerline_velocity"] == pytest.approx(expected, abs=1e-8)


def test_third_order_in_time(x64):
    finest, *states = (after(n, time_step=2.0 / n)[0].amplitudes for n in (512, 32, 64, 128))
    errors = [float(jnp.max(jnp.abs(state - finest))) for state in states]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    # The finest has (1/4)^3 of the last error, which adds 0.02; the next order is smaller by a step of 1/16.
    assert np.all(np.abs(orders - 3) < 0.1)


def test_energy_is_dissipated_by_friction_only(x64):
    """With walls at rest, dE/dt = 2 F/Re bulk velocity - dissipation, and advection has no part in it."""
    still = {"wall_velocity": 0.0, "time_step": 1e-4}
    state, before, params = after(0, **still)
    later = after(1, **still)[1]
    y, weights = np.polynomial.legendre.leggauss(20)
    modes = stokes_modes(SMALL["points"], SMALL["length"])
    _, _, vorticity = fields(modes, 5 * np.arange(16) / 16, y)(state.amplitudes)
    # Between walls at rest the integrals of the squares of vorticity and of all velocity gradients are equal.
    dissipation = jnp.mean((vorticity + 2 * y) ** 2 @ weights) / 2 / params["reynolds"]
    power = 2 * params["forcing"] / params["reynolds"] * before["bulk_velocity"]
    change = (later["kinetic_energy"] - before["kinetic_energy"]) / params["time_step"]
    # The middle of the step is 5e-5 away, with rates up to 10; rounding is 1e-16/1e-4.
    assert change == pytest.approx(float(power - dissipation), rel=5e-4)


def test_growth_rate_and_phase_speed_are_those_of_orszag():
    """Orszag 1971: c = 0.23752649 + 0.00373967 i at Re = 10000, alpha = 1."""
    wave = leading_wave(10000, 1.0)
    # Half a unit in the last digit given.
    assert wave.growth_rate == pytest.approx(0.00373967, abs=5e-9)
    assert wave.phase_speed == pytest.approx(0.23752649, abs=5e-9)


def test_poiseuille_flow_becomes_unstable_at_the_critical_reynolds_number():
    """Orszag 1971: Re = 5772.22 at alpha = 1.02056, c = 0.26400174."""
    wave = leading_wave(5772.22, 1.02056)
    # d(growth)/d(Re) is 7e-7 there, times half a unit in the last digit of Re.
    assert abs(wave.growth_rate) < 5e-9
    assert wave.phase_speed == pytest.approx(0.26400174, abs=5e-9)
    assert leading_wave(5700, 1.02056).growth_rate < 0 < leading_wave(5850, 1.02056).growth_rate
    # The critical wavenumber is that of greatest growth, so its neighbors are stable.
    assert leading_wave(5772.22, 1.00).growth_rate < 0 and leading_wave(5772.22, 1.04).growth_rate < 0


@every(product([500, 5000, 20000], [0.5, 1.0, 2.0]))
def test_couette_flow_is_stable(reynolds, wavenumber):
    """Romanov 1973 proved it for every Reynolds number and wavenumber."""
    assert leading_wave(reynolds, wavenumber, flow="couette").growth_rate < -1e-3


def test_the_wave_satisfies_equation_and_boundary_conditions():
    reynolds, alpha = 8000, 1.1
    wave = leading_wave(reynolds, alpha, points=81)
    y = np.linspace(-0.95, 0.95, 50)  # none of them a collocation point
    phi, d2, d4 = (wave.shape(y, derivative) for derivative in (0, 2, 4))
    laplacian, bilaplacian = d2 - alpha**2 * phi, d4 - 2 * alpha**2 * d2 + alpha**4 * phi
    advected = (1 - y**2) * laplacian + 2 * phi
    residual = wave.eigenvalue * laplacian + 1j * alpha * advected - bilaplacian / reynolds
    # Rounding of the coefficients, 1e-16, in a fourth derivative, up to 80^4/0.3^4 away from the walls, over Re.
    assert np.max(np.abs(residual)) < 1e-9 * np.max(np.abs(laplacian))
    walls = np.array([-1.0, 1.0])
    assert np.max(np.abs(wave.shape(walls))) < 1e-13  # sums of coefficients up to 1
    assert np.max(np.abs(wave.shape(walls, 1))) < 1e-10  # the same, times up to 80^2
    largest = np.abs(wave.shape(lobatto_points(81), 1))
    assert np.max(largest) == pytest.approx(1, abs=1e-9)


@every(
    [
        ({"reynolds": -1.0, "wavenumber": 1.0}, "reynolds"),
        ({"reynolds": 1e4, "wavenumber": 0.0}, "wavenumber"),
        ({"reynolds": float("nan"), "wavenumber": 1.0}, "reynolds"),
        ({"reynolds": 1e4, "wavenumber": 1.0, "flow": "pipe"}, "flow"),
        ({"reynolds": 1e4, "wavenumber": 1.0, "points": 5}, "points"),
    ]
)
def test_bad_arguments_are_refused_in_one_line_with_a_remedy(arguments, name):
    with pytest.raises(UserError, match=f"^{name} = .*(choose|write)") as error:
        leading_wave(**arguments)
    assert "\n" not in str(error.value)
