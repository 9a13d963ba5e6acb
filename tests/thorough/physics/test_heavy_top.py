"""The heavy top against its exact solution: nutation by an elliptic function, precession by a quadrature of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.rigid import heavy_top
from tests.physics.test_heavy_top import ACROSS, AXIAL, PULL, SPIN, TILT, errors, exact, history

pytestmark = pytest.mark.usefixtures("x64")


def test_runge_kutta_follows_the_top_at_fourth_order():
    coarse, fine = (np.array(errors(history(time_step, "runge_kutta"))) for time_step in (0.002, 0.001))
    assert (fine < 1e-6).all()
    np.testing.assert_allclose(np.log2(coarse / fine), 4, atol=0.2)


def test_a_fast_initial_precession_reverses_the_nutation():
    start = {"precession_rate": 6.0}
    tilt, turned = errors(history(0.001, **start), **start)
    assert tilt < 1e-4 and turned < 1e-4
    assert (history(0.001, **start)["nutation"] < 1e-12).all()  # it rises from where it is let go


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
