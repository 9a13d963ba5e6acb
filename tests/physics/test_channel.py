"""Flow between plates: steady flow, start-up, held flow rates, derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment
from tests.flow.plane_channel import plane_channel
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


# Times are viscous, nu t with nu = 1/reynolds; the slowest mode of the start-up decays like exp(-pi^2/4 nu t).
STEADY_TIME = 15.0
STARTED_STEADY = 1.5 * 32 / np.pi**3 * np.exp(-(np.pi**2) / 4 * STEADY_TIME)


@functools.cache
def program(cells, steps):
    """The simulation, and ``params -> (state, observed, diagnosed)`` after some steps: one program for all values."""
    sim = plane_channel(cells, length=4.0)

    @jax.jit
    def run(params):
        state = segment(sim, steps)(sim.init(params, jax.random.key(0)), params)
        return state, sim.observe(state, params), sim.diagnose(state, params)

    return sim, run


def after(time, steps, cells, **params):
    """Heights, profile, diagnostics and state at a given time."""
    sim, run = program(cells, steps)
    values = {name: jnp.asarray(value, float) for name, value in {"time_step": time / steps, **params}.items()}
    state, observed, diagnosed = run(sim.params | values)
    return sim.coordinates["y"], np.asarray(observed["profile"]), diagnosed, state


DRIVES = ((0.0, 1.0), (0.0, -0.3), (1.0, 0.0), (-0.4, 1.0), (2.0, -1.0))


@every([(ny, *drive) for ny in (7, 32) for drive in DRIVES])
def test_steady_flow_is_the_sum_of_linear_and_parabolic_profile_to_round_off(ny, wall_velocity, forcing):
    drive = {"wall_velocity": wall_velocity, "forcing": forcing}
    y, profile, found, _ = after(STEADY_TIME, 600, (4, ny), reynolds=1.0, **drive)
    exact = wall_velocity * (1 + y) / 2 + 1.5 * forcing * (1 - y**2)
    # Both are exact solutions of the discrete equations; the rest of the start-up is exp(-pi^2/4 * 15) = 1e-16 in the
    # slowest mode, and 0.86^600 in the fastest, with the factor of Crank-Nicolson at 0.0125 * 4/dy^2 = 12.8. Slopes at
    # the wall divide the rounding of the velocity, 1e-14 after many steps, by dy/3 = 0.02.
    assert STARTED_STEADY < 1e-15
    np.testing.assert_allclose(profile, exact, rtol=0, atol=1e-13)
    assert found["poiseuille_deviation"] < 1e-13
    assert found["centerline_velocity"] == pytest.approx(1.5 * forcing + wall_velocity / 2, abs=1e-13)
    assert found["bulk_velocity"] == pytest.approx(forcing + wall_velocity / 2, abs=1e-13)
    assert found["wall_shear_stress"] == pytest.approx(3 * forcing + wall_velocity / 2, abs=1e-11)
    assert found["net_force"] == pytest.approx(0, abs=1e-11)


@every([(0.1, 0.19774637), (0.5, 0.69945453)])
def test_start_up_from_rest_reaches_the_tabulated_center_velocity(time, expected):
    # forcing = 2/3 makes the steady profile 1 - y^2.
    found = after(10 * time, 100, (4, 48), reynolds=10.0, forcing=2 / 3)[2]["centerline_velocity"]
    # The slowest mode, 1.03 cos(k y) exp(-k^2 nu t) with k = pi/2, decays too slowly by the factor 1 - (k h)^2/12, here
    # with h = 1/24: that is 1.03 * k^2 * 0.5 * 0.29 * 3.6e-4 = 1.3e-4 at nu t = 0.5, and less before.
    assert found == pytest.approx(expected, abs=2e-4)


def test_start_up_of_couette_flow_reaches_the_tabulated_velocities():
    # Distance of the walls H = 2, so nu t/H^2 = 0.05 is t = 0.2 at nu = 1. With 66 cells two centers lie at a quarter
    # and three quarters of the height, and the interpolated center at one half.
    y, profile, found, _ = after(0.2, 100, (4, 66), reynolds=1.0, wall_velocity=1.0, forcing=0.0)
    quarter, three_quarters = np.argmin(np.abs(y + 0.5)), np.argmin(np.abs(y - 0.5))
    assert y[[quarter, three_quarters]] == pytest.approx([-0.5, 0.5], abs=1e-15)
    # Error of second order: h^2/12 d4u/dy4 over the time of the start-up, with h = 1/33 and u_yyyy up to 5 while the
    # layer passes, 0.2 * 5 * 8e-5 = 8e-5; that in time, (dt/0.2)^2 = 1e-4 of the change, is as small.
    velocities = [profile[quarter], found["centerline_velocity"], profile[three_quarters]]
    assert velocities == pytest.approx([0.01762884, 0.11384420, 0.42919527], abs=2e-4)


def poiseuille_start(y, time):
    """The start-up from rest toward 1 - y^2, by separation of variables."""
    n = np.arange(200)[:, None]
    k = (2 * n + 1) * np.pi / 2
    return 1 - y**2 - np.sum(4 * (-1.0) ** n / k**3 * np.cos(k * y) * np.exp(-(k**2) * time), axis=0)


def couette_start(y, time):
    """The start-up from rest toward (1 + y)/2, by separation of variables."""
    m = np.arange(1, 40)[:, None]
    waves = (-1.0) ** m / m * np.exp(-((m * np.pi / 2) ** 2) * time) * np.sin(m * np.pi * (1 + y) / 2)
    return (1 + y) / 2 + 2 / np.pi * np.sum(waves, axis=0)


STARTS = {
    "Poiseuille": (0.2, poiseuille_start, {"forcing": 2 / 3, "wall_velocity": 0.0}),
    "Couette": (0.4, couette_start, {"forcing": 0.0, "wall_velocity": 1.0}),
}


@every(STARTS)
def test_start_up_is_second_order_in_space_and_time(time, exact, drive):
    def error(n):
        y, profile, *_ = after(time, n, (4, n), reynolds=1.0, **drive)
        return np.max(np.abs(profile - exact(y, time)))

    # Errors of third order, from the one-sided slopes and the first step, are smaller by h = 1/16.
    assert np.log2(error(32) / error(64)) == pytest.approx(2, abs=0.1)


def test_eddies_decay_to_the_parabola():
    _, _, found, state = after(60.0, 3000, (16, 12), reynolds=5.0, perturbation=0.5)
    # Eddies decay at least four times faster than the start-up, whose rest is 1.5 exp(-pi^2/4 * 12) = 2e-13.
    assert found["poiseuille_deviation"] < 1e-12
    assert np.max(np.abs(state.velocity[1])) < 1e-13


def test_momentum_changes_by_forcing_minus_friction():
    sim, run = program((16, 12), 5)
    params = sim.params | {"perturbation": jnp.asarray(0.5), "wall_velocity": jnp.asarray(0.7)}
    state, observed, diagnosed = run(params)

    @jax.jit
    def next_step(state):
        later = sim.step(state, params)
        return sim.observe(later, params), sim.diagnose(later, params)

    after_it, numbers = next_step(state)
    rate = (np.mean(after_it["profile"]) - np.mean(observed["profile"])) / params["time_step"]
    # Crank-Nicolson takes friction at the mean of both times, and advection and pressure move momentum about without
    # creating any: equal but for rounding of momentum, 1e-16, over the time step, 0.015.
    assert rate == pytest.approx(float(diagnosed["net_force"] + numbers["net_force"]) / 2, abs=1e-13)
    assert abs(rate) > 1e-3


def stretched_program(steps, config):
    """The simulation, and ``params -> (profile, diagnostics)`` after some steps: one program for all values."""
    simulation = plane_channel(**{"length": 4.0, **config})

    @jax.jit
    def run(params):
        state = segment(simulation, steps)(simulation.init(params, jax.random.key(0)), params)
        return simulation.observe(state, params)["profile"], simulation.diagnose(state, params)

    return simulation, lambda time, **values: run(simulation.with_params(time_step=time / steps, **values).params)


def after_stretched(time, steps, *, config, **params):
    """Simulation, its profile and its diagnostics at a given time."""
    simulation, run = stretched_program(steps, config)
    return simulation, *run(time, **params)


def test_sum_of_both_flows_is_of_second_order_on_stretched_grids():
    errors = []
    for cells in (12, 24, 48):
        config = {"cells": (4, cells), "stretching": 1.5}
        _, _, found = after_stretched(18.0, 1800, config=config, reynolds=1.0, forcing=-0.5, wall_velocity=1.0)
        errors.append(float(found["poiseuille_deviation"]))
        # What is pushed is braked, on any grid.
        assert found["net_force"] == pytest.approx(0, abs=1e-11)
    # The next terms are smaller by the square of the ratio of neighboring cells less 1, 0.2 on the coarsest grid.
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx(2, abs=0.1)


def test_held_flow_rate_finds_the_pressure_gradient():
    soon, at_last = (stretched_program(steps, {"cells": (8, 48), "is_held": True})[1] for steps in (25, 5000))
    for forcing, wall_velocity in ((1.0, 0.0), (-0.5, 1.0)):
        params = {"reynolds": 10.0, "forcing": forcing, "wall_velocity": wall_velocity, "perturbation": 0.3}
        check_held(soon(0.5, **params)[1], at_last(100.0, **params)[1], forcing, wall_velocity)


def check_held(early, late, forcing, wall_velocity):
    # The mean over the cells is held; the flow rate has the first correction of the midpoint rule besides:
    # h^2/24 times the change of the slope, 3 F, over the height 2.
    for found in (early, late):
        assert found["bulk_velocity"] == pytest.approx(forcing + wall_velocity / 2, abs=48**-2 * 4 / 24 * 30)
    # More is needed to get going than to keep going: the layers at the walls are thin.
    assert abs(early["pressure_gradient"]) > 1.2 * abs(late["pressure_gradient"])
    # 3 F/Re, but for that correction, 1/(2 n^2) = 2e-4 relative.
    assert late["pressure_gradient"] == pytest.approx(3 * forcing / 10, rel=1e-3)
    assert late["net_force"] == pytest.approx(0, abs=1e-10)


def bulk_velocity(sim, steps):
    """The bulk velocity after some steps as a function of the parameters."""

    def run(params):
        state = segment(sim, steps, width=steps)(sim.init(params, jax.random.key(0)), params)
        return sim.diagnose(state, params)["bulk_velocity"]

    return jax.jit(run)


def central_difference(f, x, step):
    """The derivative to fourth order in ``step``."""
    return (8 * (f(x + step) - f(x - step)) - (f(x + 2 * step) - f(x - 2 * step))) / (12 * step)


def test_derivative_of_steady_bulk_velocity_with_respect_to_viscosity_is_analytic():
    """At fixed pressure gradient G the bulk velocity is G/(3 nu), so its derivative by nu is -G/(3 nu^2)."""
    sim = plane_channel((4, 8), length=4.0)
    gradient, viscosity = 0.7, 0.8
    # The start-up leaves exp(-pi^2/4 nu t) = exp(-2.47 * 0.8 * 15) = 1e-13, times its logarithmic derivative 30.
    run = bulk_velocity(sim, 300)

    def bulk(nu):
        return run(sim.params | {"reynolds": 1 / nu, "forcing": gradient / nu / 3, "time_step": jnp.asarray(0.05)})

    exact = -gradient / (3 * viscosity**2)
    assert bulk(viscosity) == pytest.approx(gradient / (3 * viscosity), rel=1e-11)
    assert jax.grad(bulk)(viscosity) == pytest.approx(exact, rel=1e-10)
    assert jax.jvp(bulk, (viscosity,), (1.0,))[1] == pytest.approx(exact, rel=1e-10)


def test_derivative_of_starting_bulk_velocity_with_respect_to_reynolds_number_is_analytic():
    reynolds, time, steps = 10.0, 3.0, 200
    sim = plane_channel((4, 48), length=4.0, time_step=time / steps)
    run = bulk_velocity(sim, steps)

    def bulk(reynolds):
        return run(sim.params | {"reynolds": reynolds})

    reverse = jax.grad(bulk)(reynolds)
    forward = jax.jvp(bulk, (reynolds,), (1.0,))[1]
    # The two orders of summation differ by rounding.
    assert reverse == pytest.approx(float(forward), rel=1e-12)
    # Fourth order with step 1e-2 of a function that changes over 10: (1e-3)^4 truncation, 1e-15/1e-2 rounding.
    assert reverse == pytest.approx(float(central_difference(bulk, reynolds, 1e-2)), rel=1e-9)

    # bulk = 1 - sum 6/k^4 exp(-k^2 nu t) with k = (2n + 1) pi/2, and d(nu)/d(reynolds) = -nu/reynolds.
    k = (2 * np.arange(100) + 1) * np.pi / 2
    exact = np.sum(6 / k**4 * np.exp(-(k**2) * time / reynolds) * k**2) * time * -1 / reynolds**2
    # Discretization: of second order, h^2 = 1.7e-3 times a constant of order 0.1.
    assert reverse == pytest.approx(exact, rel=3e-4)


def test_derivatives_of_a_nonlinear_flow_equal_their_central_differences():
    sim = plane_channel((8, 6), length=3.0, reynolds=50.0, perturbation=0.5, wall_velocity=0.5)

    @jax.jit
    def measure(params):
        state = segment(sim, 30, width=30)(sim.init(params, jax.random.key(0)), params)
        return sim.diagnose(state, params)["kinetic_energy"] + jnp.mean(sim.observe(state, params)["vorticity"] ** 2)

    derivatives = jax.grad(measure)(sim.params)
    for name, value in sim.params.items():
        step = 1e-3 * (0.015 if name == "time_step" else 1 + value)
        expected = central_difference(lambda x, name=name: measure(sim.params | {name: x}), value, step)
        # Fourth order: (1e-3)^4 = 1e-12 truncation, and 1e-16/1e-5 = 1e-11 rounding, magnified by less than 1e3.
        assert derivatives[name] == pytest.approx(float(expected), rel=1e-8), name
