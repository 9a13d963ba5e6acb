"""Poiseuille flow between walls at rest: half-width 1, steady profile 3/2 F (1 - y^2)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment
from tests.flow.plane_channel import plane_channel

pytestmark = pytest.mark.usefixtures("x64")

# Times are viscous, nu t with nu = 1/reynolds; the slowest mode of the start-up decays like exp(-pi^2/4 nu t).
STEADY_TIME = 15.0
STARTED_STEADY = 1.5 * 32 / np.pi**3 * np.exp(-(np.pi**2) / 4 * STEADY_TIME)


def after(time, steps, *, cells=(4, 32), **params):
    """Simulation, its parameters and its state at a given time."""
    sim = plane_channel(cells, length=4.0, time_step=time / steps, **params)
    state = jax.jit(segment(sim, steps))(sim.init(sim.params, jax.random.key(0)), sim.params)
    return sim, state


def start_up(y, time):
    """The start-up from rest toward 1 - y^2, by separation of variables."""
    n = np.arange(200)[:, None]
    k = (2 * n + 1) * np.pi / 2
    return 1 - y**2 - np.sum(4 * (-1.0) ** n / k**3 * np.cos(k * y) * np.exp(-(k**2) * time), axis=0)


@pytest.mark.parametrize("ny", [4, 7, 8, 32])
@pytest.mark.parametrize("forcing", [1.0, -0.3])
def test_steady_flow_is_the_parabola_to_round_off(ny, forcing):
    sim, state = after(STEADY_TIME, 600, cells=(4, ny), reynolds=1.0, forcing=forcing)
    found = sim.diagnose(state, sim.params)
    # A parabola satisfies the discrete equations exactly, so only the rest of the start-up and the rounding of the
    # velocity remain, 1e-14 after many steps; slopes at the wall divide it by dy/3 = 0.02.
    assert STARTED_STEADY < 1e-15
    assert found["poiseuille_deviation"] < 1e-13
    assert found["centerline_velocity"] == pytest.approx(1.5 * forcing, abs=1e-13)
    assert found["bulk_velocity"] == pytest.approx(forcing, abs=1e-13)
    assert found["wall_shear_stress"] == pytest.approx(3 * forcing, abs=1e-11)
    assert found["net_force"] == pytest.approx(0, abs=1e-11)


@pytest.mark.parametrize(("time", "expected"), [(0.1, 0.19774637), (0.5, 0.69945453)])
def test_start_up_from_rest_reaches_the_tabulated_center_velocity(time, expected):
    # forcing = 2/3 makes the steady profile 1 - y^2.
    sim, state = after(10 * time, 100, cells=(4, 48), reynolds=10.0, forcing=2 / 3)
    found = sim.diagnose(state, sim.params)["centerline_velocity"]
    # The slowest mode, 1.03 cos(k y) exp(-k^2 nu t) with k = pi/2, decays too slowly by the factor 1 - (k h)^2/12, here
    # with h = 1/24: that is 1.03 * k^2 * 0.5 * 0.29 * 3.6e-4 = 1.3e-4 at nu t = 0.5, and less before.
    assert found == pytest.approx(expected, abs=2e-4)


def test_start_up_is_second_order_in_space_and_time():
    def error(n):
        sim, state = after(0.2, n, cells=(4, n), reynolds=1.0, forcing=2 / 3)
        profile = sim.observe(state, sim.params)["profile"]
        return np.max(np.abs(profile - start_up(sim.coordinates["y"], 0.2)))

    # Errors of third order, from the one-sided slopes, are smaller by h = 1/16.
    assert np.log2(error(32) / error(64)) == pytest.approx(2, abs=0.1)


def test_eddies_decay_to_the_parabola():
    sim, state = after(60.0, 3000, cells=(16, 12), reynolds=5.0, perturbation=0.5)
    # Eddies decay at least four times faster than the start-up, whose rest is 1.5 exp(-pi^2/4 * 12) = 2e-13.
    assert sim.diagnose(state, sim.params)["poiseuille_deviation"] < 1e-12
    assert jnp.max(jnp.abs(state.velocity[1])) < 1e-13


def test_momentum_changes_by_forcing_minus_friction():
    sim = plane_channel((16, 12), length=4.0, perturbation=0.5, wall_velocity=0.7)
    state = segment(sim, 5)(sim.init(sim.params, jax.random.key(0)), sim.params)
    later = sim.step(state, sim.params)

    def momentum(state):
        return jnp.mean(sim.observe(state, sim.params)["profile"])

    rate = (momentum(later) - momentum(state)) / sim.params["time_step"]
    force = [sim.diagnose(s, sim.params)["net_force"] for s in (state, later)]
    # Crank-Nicolson takes friction at the mean of both times, and advection and pressure move momentum about without
    # creating any: equal but for rounding of momentum, 1e-16, over the time step, 0.015.
    assert rate == pytest.approx(float(sum(force)) / 2, abs=1e-13)
    assert abs(rate) > 1e-3
