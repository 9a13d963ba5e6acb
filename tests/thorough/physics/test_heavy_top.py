"""The heavy top against its exact solution: nutation by an elliptic function, precession by a quadrature of it."""

import functools
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ellipj, ellipk

from simkit.core.rollout import trajectory
from simkit.rigid import heavy_top

pytestmark = pytest.mark.usefixtures("x64")
SCENARIO = Path(__file__).parents[3] / "scenarios" / "rigid" / "heavy_top.toml"
MASS, WIDTH, THICKNESS, ARM, GRAVITY, TILT, SPIN = 0.5, 0.2, 0.04, 0.15, 9.81, 50.0, 80.0
AXIAL = MASS * WIDTH**2 / 6
ACROSS = MASS * (WIDTH**2 + THICKNESS**2) / 12 + MASS * ARM**2
PULL = MASS * GRAVITY * ARM
DURATION = 2.0


def exact(times, precession_rate=0.0, spin=SPIN):
    """Return tilt and angle of precession of a top released at `TILT` with no rate of nutation, at some times.

    u'^2 = (1 - u^2)(alpha - beta u) - (b - a u)^2 for u = cos(tilt), a cubic with roots u1 <= u <= u2 < u3.
    """
    start = np.cos(np.deg2rad(TILT))
    a = AXIAL * spin / ACROSS
    b = precession_rate * (1 - start**2) + a * start
    beta = 2 * PULL / ACROSS
    alpha = precession_rate**2 * (1 - start**2) + beta * start
    u1, u2, u3 = np.sort(np.roots([beta, -alpha - a**2, 2 * a * b - beta, alpha - b**2]).real)
    rate, k2 = np.sqrt(beta * (u3 - u1)) / 2, (u2 - u1) / (u3 - u1)
    # The top is let go where its nutation turns: at the upper root, or at the lower one if it precesses too fast.
    phase = ellipk(k2) if abs(start - u2) < abs(start - u1) else 0.0

    def u(t):
        return u1 + (u2 - u1) * ellipj(rate * t + phase, k2)[0] ** 2

    def precession(t):
        return quad(lambda s: (b - a * u(s)) / (1 - u(s) ** 2), 0, t, epsabs=1e-13, epsrel=1e-13, limit=500)[0]

    return np.arccos(u(np.asarray(times))), np.array([precession(t) for t in np.atleast_1d(times)])


@functools.cache
def compiled(steps, integrator):
    return jax.jit(trajectory(heavy_top(integrator=integrator), steps, steps // 20))


def history(time_step, integrator="velocity_verlet", duration=DURATION, **params):
    simulation = heavy_top(integrator=integrator).with_params(time_step=time_step, **params)
    steps = round(duration / time_step)
    return jax.tree.map(np.asarray, compiled(steps, integrator)(simulation.params, jax.random.key(0))[2])


def errors(seen, **start):
    tilt, precession = exact(seen["time"], **start)
    turned = np.angle(np.exp(1j * (seen["precession"] - precession)))
    return np.abs(seen["tilt"] - tilt).max(), np.abs(turned).max()


def test_nutation_and_precession_converge_to_the_exact_solution_at_second_order():
    coarse, fine = (np.array(errors(history(time_step))) for time_step in (0.002, 0.001))
    # (dt)^2 times a rate of nutation of 21/s squared, over 12, of an amplitude of 0.23: 2e-5, growing along 2 s.
    assert (fine < 1e-4).all()
    np.testing.assert_allclose(np.log2(coarse / fine), 2, atol=0.1)


def test_energy_and_both_momenta_are_conserved():
    seen = history(0.002)
    # p_phi: no torque about z, so only 1000 roundings of 1e-16. p_psi: the torque is across the axis before and after
    # the turn of every step, so again rounding.
    np.testing.assert_allclose(seen["vertical_momentum"], seen["vertical_momentum"][0], rtol=1e-12)
    np.testing.assert_allclose(seen["axial_momentum"], AXIAL * SPIN, rtol=1e-12)
    # Of second order, and without drift: (21 x 0.002)^2 / 12 = 1.5e-4 of the energy that nutation exchanges.
    spread = np.abs(seen["energy"] - seen["energy"][0])
    assert spread.max() < 1.5e-4 * PULL
    np.testing.assert_allclose(seen["momentum"][0], 0, atol=1e-15)


def test_the_numbers_in_the_scenario_file_are_those_of_the_exact_solution():
    scenario = tomllib.loads(SCENARIO.read_text())
    stated = {entry["quantity"]: entry["expected"] for entry in scenario["validation"] if "set" not in entry}
    tilt, precession = exact([DURATION])
    assert np.isclose(stated["tilt"], tilt[0], rtol=1e-9)
    assert np.isclose(np.exp(1j * stated["precession"]), np.exp(1j * precession[0]), rtol=1e-8)


def test_runge_kutta_follows_the_top_at_fourth_order():
    coarse, fine = (np.array(errors(history(time_step, "runge_kutta"))) for time_step in (0.002, 0.001))
    assert (fine < 1e-6).all()
    np.testing.assert_allclose(np.log2(coarse / fine), 4, atol=0.2)


@pytest.mark.parametrize("root", [-1, 1])
def test_at_either_steady_rate_the_top_precesses_without_nutation(root):
    cosine, kept = np.cos(np.deg2rad(TILT)), AXIAL * SPIN
    rate = (kept + root * np.sqrt(kept**2 - 4 * ACROSS * cosine * PULL)) / (2 * ACROSS * cosine)
    seen = history(0.0005, duration=0.5, precession_rate=rate)
    # (dt rate)^2 / 12 with the nutation of 21/s or the fast precession of 31/s: 2e-5 of a radian at most.
    assert np.abs(seen["nutation"]).max() < 2e-5
    turned = np.angle(np.exp(1j * (seen["precession"] - rate * seen["time"])))
    assert np.abs(turned).max() < 2e-4 * 0.5 * abs(rate)


def test_float32_follows_the_top_to_its_rounding():
    with jax.enable_x64(False):
        single = history(0.002)
        assert single["tilt"].dtype == "float32"
    double = history(0.002)
    # 1000 steps turn by 0.16 rad each, every one with a few roundings of 6e-8.
    np.testing.assert_allclose(single["tilt"], double["tilt"], atol=1000 * 6e-8 * 2)
    np.testing.assert_allclose(single["axial_momentum"], double["axial_momentum"], rtol=1000 * 6e-8 * 2)


def test_the_derivative_of_the_tilt_is_that_of_the_exact_solution():
    simulation, time_step = heavy_top(integrator="runge_kutta"), 0.002
    times = np.array([0.3])

    def tilt(spin):
        params = {**simulation.params, "spin": spin, "time_step": jnp.array(time_step)}
        return trajectory(simulation, 150, 150)(params, jax.random.key(0))[2]["tilt"][-1]

    slope = float(jax.jit(jax.jacfwd(tilt))(jnp.array(SPIN)))
    difference = (exact(times, spin=SPIN + 1e-3)[0] - exact(times, spin=SPIN - 1e-3)[0])[0] / 2e-3
    # The method's error of 1e-7 in the tilt at 80 rad/s; the difference errs by 1e-12 over 1e-3.
    np.testing.assert_allclose(slope, difference, rtol=1e-5)
