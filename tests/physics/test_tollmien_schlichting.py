"""The Tollmien-Schlichting wave in the spectral channel against the Orr-Sommerfeld equation."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.spectral import leading_wave, spectral_channel
from simkit.flow.spectral.stokes_modes import fields, stokes_modes

pytestmark = pytest.mark.usefixtures("x64")

PERTURBATION = 1e-6  # nonlinear effects are of relative order (1e-6 times a few hundred)^2


@functools.cache
def compiled(points):
    """Any number of steps from the start, and their measurements."""
    sim = spectral_channel(points=points).with_params(perturbation=PERTURBATION)

    def run(params, steps):
        state = jax.lax.fori_loop(0, steps, lambda _, state: sim.step(state, params), start(params))
        return sim.diagnose(state, params)

    def start(params):
        return sim.init(params, jax.random.key(0))

    return sim, jax.jit(run), jax.jit(start)


def measured(points, time, time_step, reynolds):
    sim, run, _ = compiled(points)
    params = {"time_step": jnp.asarray(time_step), "reynolds": jnp.asarray(float(reynolds))}
    return run(sim.params | params, round(time / time_step))


def test_growth_rate_and_phase_speed_are_those_of_orszag():
    """Orszag 1971: 0.00373967 and 0.23752649 at Re = 10000, alpha = 1; here with 45 modes across."""
    found = measured((4, 49), 50.0, 0.05, 10000)
    # Half a unit in the last digit, 5e-9; 45 modes leave 4e-9 and 5e-9, the time step 2e-9.
    assert found["growth_rate"] == pytest.approx(0.00373967, abs=1.2e-8)
    assert found["phase_speed"] == pytest.approx(0.23752649, abs=1.2e-8)


def test_growth_rate_converges_exponentially_in_the_number_of_polynomials():
    exact = leading_wave(10000, 1.0).growth_rate
    coarse, fine = (abs(float(measured((4, ny), 20.0, 0.1, 10000)["growth_rate"]) / exact - 1) for ny in (29, 41))
    # From 2 % to what the time step leaves, 4e-6: a method of order p would gain (41/29)^p, 10 at most for p = 6.
    assert 1e-2 < coarse < 3e-2 and fine < 1e-5


def test_growth_rate_converges_with_the_third_order_of_the_time_step():
    finest, *rates = (float(measured((4, 49), 19.2, dt, 7500)["growth_rate"]) for dt in (0.05, 0.8, 0.4, 0.2))
    errors = np.abs(np.array(rates) - finest)
    # The finest has (1/4)^3 of the last error; steps of 0.8 are not yet small.
    assert np.log2(errors[1] / errors[2]) == pytest.approx(3, abs=0.3)
    assert errors[0] > 5 * errors[1]


@pytest.mark.parametrize("reynolds", [2100, 5772.22, 15000])
def test_the_initial_wave_is_the_eigenmode_at_any_reynolds_number(reynolds):
    """Compared as a field with the wave of the collocation method, up to its phase and size."""
    sim, _, start = compiled((4, 65))
    state = start(sim.params | {"reynolds": jnp.asarray(reynolds)})
    x, y = 2 * np.pi * np.arange(8) / 8, np.linspace(-0.99, 0.99, 67)
    u, v, _ = fields(stokes_modes((4, 65), 2 * math.pi), x, y)(state.amplitudes)
    assert jnp.sqrt(sim.diagnose(state, sim.params)["fluctuation_energy"] * 2) == pytest.approx(PERTURBATION, rel=1e-12)
    wave = leading_wave(reynolds, 1.0, points=81)
    harmonic = np.stack([np.exp(-1j * x) @ u, np.exp(-1j * x) @ v]) / 4  # the complex u and v of exp(i x)
    expected = np.stack([wave.shape(y, 1), -1j * wave.shape(y)])
    scale = np.vdot(expected, harmonic) / np.vdot(expected, expected)
    # What 61 modes leave at the highest Reynolds number; at 30000 it is 2e-6.
    np.testing.assert_allclose(harmonic, scale * expected, atol=1e-6 * np.max(np.abs(harmonic)))


def test_derivative_of_the_growth_rate_with_respect_to_reynolds_number_is_that_of_the_eigenvalue():
    sim = compiled((4, 49))[0].with_params(time_step=0.1)

    def growth_rate(reynolds):
        params = sim.params | {"reynolds": reynolds}
        state = sim.init(params, jax.random.key(0))
        state = jax.lax.fori_loop(0, 200, lambda _, state: sim.step(state, params), state)
        return sim.diagnose(state, params)["growth_rate"]

    found = jax.jit(jax.jacfwd(growth_rate))(jnp.asarray(10000.0))
    h = 50.0
    above, below = (leading_wave(10000 + sign * h, 1.0).growth_rate for sign in (1, -1))
    # The difference leaves (h/Re)^2 = 3e-5; polynomials and time step leave 1e-5.
    assert found == pytest.approx((above - below) / (2 * h), rel=1e-4)


def test_a_stable_wave_decays_at_the_rate_of_its_eigenvalue():
    found = measured((4, 49), 40.0, 0.2, 3000)
    exact = leading_wave(3000, 1.0)
    # The time step: third order, below 1e-4.
    assert found["growth_rate"] == pytest.approx(exact.growth_rate, rel=1e-4)
    assert exact.growth_rate < -0.005
