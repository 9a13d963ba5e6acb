"""Couette flow: the upper wall moves, with or without a pressure gradient."""

import jax
import numpy as np
import pytest

from simkit.core.rollout import segment
from tests.flow.plane_channel import plane_channel

pytestmark = pytest.mark.usefixtures("x64")


def after(time, steps, *, cells, **params):
    """Simulation and its state at a given time."""
    sim = plane_channel(cells, length=4.0, time_step=time / steps, **params)
    state = jax.jit(segment(sim, steps))(sim.init(sim.params, jax.random.key(0)), sim.params)
    return sim, state


@pytest.mark.parametrize("ny", [4, 7, 32])
@pytest.mark.parametrize(("wall_velocity", "forcing"), [(1.0, 0.0), (-0.4, 1.0), (2.0, -1.0)])
def test_steady_flow_is_the_sum_of_linear_and_parabolic_profile_to_round_off(ny, wall_velocity, forcing):
    sim, state = after(15.0, 600, cells=(4, ny), reynolds=1.0, wall_velocity=wall_velocity, forcing=forcing)
    y = sim.coordinates["y"]
    exact = wall_velocity * (1 + y) / 2 + 1.5 * forcing * (1 - y**2)
    found = sim.diagnose(state, sim.params)
    # Both are exact solutions of the discrete equations; the rest of the start-up is exp(-pi^2/4 * 15) = 1e-16 in the
    # slowest mode, and 0.86^600 in the fastest, with the factor of Crank-Nicolson at 0.0125 * 4/dy^2 = 12.8.
    np.testing.assert_allclose(sim.observe(state, sim.params)["profile"], exact, rtol=0, atol=1e-13)
    assert found["poiseuille_deviation"] < 1e-13
    assert found["bulk_velocity"] == pytest.approx(forcing + wall_velocity / 2, abs=1e-13)
    assert found["wall_shear_stress"] == pytest.approx(3 * forcing + wall_velocity / 2, abs=1e-11)


def test_start_up_reaches_the_tabulated_velocities():
    # Distance of the walls H = 2, so nu t/H^2 = 0.05 is t = 0.2 at nu = 1. With 66 cells two centers lie at a quarter
    # and three quarters of the height, and the interpolated center at one half.
    sim, state = after(0.2, 100, cells=(4, 66), reynolds=1.0, wall_velocity=1.0, forcing=0.0)
    profile = np.asarray(sim.observe(state, sim.params)["profile"])
    y = sim.coordinates["y"]
    quarter, three_quarters = np.argmin(np.abs(y + 0.5)), np.argmin(np.abs(y - 0.5))
    assert y[[quarter, three_quarters]] == pytest.approx([-0.5, 0.5], abs=1e-15)
    found = [profile[quarter], sim.diagnose(state, sim.params)["centerline_velocity"], profile[three_quarters]]
    # Error of second order: h^2/12 d4u/dy4 over the time of the start-up, with h = 1/33 and u_yyyy up to 5 while the
    # layer passes, 0.2 * 5 * 8e-5 = 8e-5; that in time, (dt/0.2)^2 = 1e-4 of the change, is as small.
    assert found == pytest.approx([0.01762884, 0.11384420, 0.42919527], abs=2e-4)


def test_start_up_is_second_order_in_space_and_time():
    def error(n):
        sim, state = after(0.4, n, cells=(4, n), reynolds=1.0, wall_velocity=1.0, forcing=0.0)
        y = sim.coordinates["y"]
        m = np.arange(1, 40)[:, None]
        rest = (
            2
            / np.pi
            * np.sum((-1.0) ** m / m * np.exp(-((m * np.pi / 2) ** 2) * 0.4) * np.sin(m * np.pi * (1 + y) / 2), axis=0)
        )
        return np.max(np.abs(np.asarray(sim.observe(state, sim.params)["profile"]) - (1 + y) / 2 - rest))

    # Errors of third order, from the one-sided slopes and the first step, are smaller by h = 1/16.
    assert np.log2(error(32) / error(64)) == pytest.approx(2, abs=0.1)
