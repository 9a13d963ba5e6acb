"""Pressure sides: exact flows between them, order, conservation, derivatives."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.boundary.domain import domain
from simkit.flow.grid import bounded_axis
from simkit.flow.operators.advection import moving
from simkit.flow.scalar import TransportedScalar, mean_scalar
from simkit.flow.stepping.stepper import stepper
from tests.differences import central_difference
from tests.flow.test_pressure_sides import (
    DUCT,
    OPEN,
    duct,
    eddies,
    equations,
    on_every_scheme,
    params_of,
    runner,
    still,
)
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

SLIPPERY = ("free_slip", "free_slip")


@pytest.mark.parametrize("scheme", ["runge_kutta", "adams_bashforth, implicit"])
def test_start_of_flow_between_two_pressures_follows_its_series(scheme):
    place = duct((4, 32))
    state = runner(place, scheme)(still(place), params_of(time_step=0.001), 200)
    y, odd = place.grid.axes[1].centers, np.arange(1, 60, 2)
    # u = G/(2 nu) y (1 - y) - 4 G/(nu pi^3) sum over odd n of sin(n pi y) exp(-n^2 pi^2 nu t)/n^3.
    decay = np.exp(-((odd * np.pi) ** 2) * 0.5 * 0.2) / odd**3
    exact = (y * (1 - y) / 2 - 4 / np.pi**3 * np.sin(np.outer(y, odd) * np.pi) @ decay) * (2 / 3) / 0.5
    # Measured 1.0e-4: second differences of sin(pi y) are too small by pi^2/12/32^2 = 8e-4 of 0.16.
    np.testing.assert_allclose(state.velocity[0], np.broadcast_to(exact, (5, 32)), rtol=0, atol=2e-4)


def oscillating(cells, steps, scheme):
    """The largest error of Womersley's plane flow after a quarter of a period, and its amplitude."""
    place, omega, viscosity = duct((4, cells)), 9.0, 0.1
    k = np.sqrt(1j * omega / viscosity)
    y = place.grid.axes[1].centers - 0.5

    def exact(time):
        amplitude = 2 / 3 / (1j * omega) * (1 - np.cosh(k * y) / np.cosh(k / 2))
        return jnp.broadcast_to(jnp.asarray((amplitude * np.exp(1j * omega * time)).real), place.grid.shape(0))

    end = np.pi / 18
    run = runner(place, scheme, lambda params, time: ((params["drop"] * jnp.cos(9 * time), 0.0), (0.0, 0.0)))
    begin = exact(0.0), jnp.zeros(place.grid.shape(1))
    state = run(begin, params_of(viscosity=viscosity, time_step=end / steps), steps)
    # The flow is the same everywhere along the duct, whatever the scheme.
    assert jnp.max(jnp.abs(state.velocity[0] - state.velocity[0][:1])) < 1e-14
    assert jnp.max(jnp.abs(state.velocity[1])) < 1e-15
    return float(jnp.max(jnp.abs(state.velocity[0] - exact(end))))


@pytest.mark.parametrize("scheme", ["runge_kutta", "adams_bashforth, implicit", "runge_kutta, implicit"])
def test_flow_of_an_oscillating_pressure_is_womersleys_to_second_order(scheme):
    coarse, fine = oscillating(16, 24, scheme), oscillating(32, 96, scheme)
    # Of an amplitude of 0.08.
    assert fine < 6e-4
    assert np.log2(coarse / fine) > 1.8


@on_every_scheme
def test_velocity_has_the_order_of_its_method_in_time_where_the_pressure_changes(scheme):
    place = duct((10, 8))
    run = runner(place, scheme)
    # As in test_stepper.py, with stages whose friction is implicit the error of third order is still the larger one.
    least, most = {"runge_kutta": (3, 3), "runge_kutta, implicit": (2, 3)}.get(scheme, (2, 2))
    params = {"viscosity": 0.02, "swing": 0.5}
    runs = [run(eddies(place), params_of(time_step=0.5 / n, **params), n).velocity for n in (40, 80, 160)]
    changes = [
        max(float(jnp.max(jnp.abs(a - b))) for a, b in zip(*pair, strict=True)) for pair in itertools.pairwise(runs)
    ]
    # The next term is smaller by the rate of the change times the step, 9 * 0.5/80 = 0.06.
    assert least - 0.1 < np.log2(changes[0] / changes[1]) < most + 0.1


def manufactured(cells, scheme):
    """The largest error of a steady flow through open sides whose pressure varies along them.

    psi = f(x) sin(pi y)/pi with f' = f'' = 0 on both sides, so that the velocity has no normal gradient there, between
    free-slip walls; p = cos(x) cos(pi y). The force is the residual of the equations.
    """
    place = domain((bounded_axis(cells, 1.0), bounded_axis(cells, 1.0, 0.0, 0.8)), (OPEN, SLIPPERY))

    def f(x):
        return 1 + 12 * (x * (1 - x)) ** 3

    def velocity(x, y):
        return jnp.stack([f(x) * jnp.cos(np.pi * y), -jax.grad(f)(x) * jnp.sin(np.pi * y) / np.pi])

    def pressure(x, y):
        return jnp.cos(x) * jnp.cos(np.pi * y)

    def missing(x, y):
        slopes = jax.jacfwd(velocity, (0, 1))(x, y)
        bends = (jax.jacfwd(jax.jacfwd(velocity, i), i)(x, y) for i in (0, 1))
        push = jnp.stack(jax.grad(pressure, (0, 1))(x, y))
        return velocity(x, y)[0] * slopes[0] + velocity(x, y)[1] * slopes[1] + push - 0.05 * sum(bends)

    def on(function, i):
        points = [a.faces if k == i else a.centers for k, a in enumerate(place.grid.axes)]
        x, y = np.meshgrid(*points, indexing="ij")
        found = jax.jit(jax.vmap(function))(x.ravel(), y.ravel())
        return found[:, i].reshape(x.shape)

    force = tuple(moving(on(missing, i), i, place) for i in (0, 1))
    y = place.grid.axes[1].centers[None]
    run = runner(
        place,
        scheme,
        lambda params, time: ((pressure(0.0, y), pressure(1.0, y)), (0.0, 0.0)),
        lambda velocity, scalar, params, time: force,
    )
    exact = on(velocity, 0), on(velocity, 1)
    state = run(exact, params_of(viscosity=0.05, time_step=0.0125), 120)
    x, y = np.meshgrid(place.grid.axes[0].centers, place.grid.axes[1].centers, indexing="ij")
    errors = [float(jnp.max(jnp.abs(a - b))) for a, b in zip(state.velocity, exact, strict=True)]
    return max(errors), float(jnp.max(jnp.abs(state.pressure - pressure(x, y))))


@pytest.mark.parametrize("scheme", ["runge_kutta", "adams_bashforth, implicit"])
def test_flow_through_open_sides_is_of_second_order_in_the_cells(scheme):
    # Velocities of about 1.2: measured 0.115 and 0.032, pressure 0.027 and 0.0077.
    coarse, fine = manufactured(10, scheme), manufactured(20, scheme)
    for errors in zip(coarse, fine, strict=True):
        assert np.log2(errors[0] / errors[1]) > 1.7
    assert fine[0] < 0.04


@pytest.mark.parametrize("scheme", ["runge_kutta", "adams_bashforth, implicit"])
def test_derivative_with_respect_to_the_pressure_equals_central_differences(scheme):
    place = duct((10, 8))
    run = runner(place, scheme)

    @jax.jit
    def rate(params):
        state = run(eddies(place), params, 20)
        return place.place(0, 1).flux(state.velocity) + jnp.sum(state.velocity[1] ** 2)

    params = params_of(viscosity=0.02, swing=0.5, time_step=0.01)
    for name in ("drop", "swing"):
        derivative = jax.jacfwd(lambda value, name=name: rate(params | {name: value}))(params[name])
        expected = central_difference(rate, params, [name])[name]
        # Differences of float64 numbers of about 1 over steps of 1e-5 are right to 1e-10 of them.
        assert derivative == pytest.approx(float(expected), rel=1e-7, abs=1e-10)
        assert abs(derivative) > 0.01


def test_inflow_carries_the_scalar_outside_and_outflow_that_inside():
    """A uniform stream carries a scalar from one open side to the other; turned round, it brings the other value."""
    place = duct((12, 4), (OPEN, SLIPPERY))
    for speed, entering, leaving in ((0.5, 2.0, 5.0), (-0.5, 5.0, 2.0)):
        scalar = TransportedScalar(
            place,
            (("value", "value"), ("insulated", "insulated")),
            lambda params: params["diffusivity"],
            lambda params, time: ((2.0, 5.0), (0.0, 0.0)),
        )
        model = equations(place, "runge_kutta", side_pressure=None, scalar=scalar)
        start, step = stepper(model)
        params = params_of(diffusivity=0.0, time_step=0.01)
        begin = jnp.full(place.grid.shape(0), speed), jnp.zeros(place.grid.shape(1))
        carried = jnp.broadcast_to(jnp.linspace(1.0, 2.0, 12)[:, None], place.grid.cells)
        state = jax.jit(lambda s, params=params, step=step: step(s, params))(start(begin, params, carried))
        # No pressure difference and nothing that rubs: the stream stays as it is.
        assert jnp.max(jnp.abs(state.velocity[0] - speed)) < 1e-14
        gained = (mean_scalar(state.scalar, place.grid) - mean_scalar(carried, place.grid)) * 3.0
        nearest = 2.0 if speed > 0 else 1.0
        # In a step of 0.01 the nearest cells, of a slope of 1/11 per cell and 0.02 cells passed, change by 0.002.
        assert gained == pytest.approx(0.005 * (entering - nearest), rel=2e-2, abs=1e-5)
        assert abs(gained - 0.005 * (entering - leaving)) > 1e-3


@every(["adams_bashforth, implicit across"])
def test_flow_between_two_pressures_becomes_poiseuille_flow(scheme):
    # The slowest mode decays at the rate 0.5 pi^2 = 4.9: exp(-4.9 * 8) = 1e-17.
    state = runner(DUCT, scheme)(still(DUCT), params_of(), 2000)
    u, v = state.velocity
    y, x = DUCT.grid.axes[1].centers, DUCT.grid.axes[0].centers
    assert jnp.max(jnp.abs(u - 2 / 3 * y * (1 - y))) < 1e-14
    assert jnp.max(jnp.abs(v)) < 1e-15
    assert jnp.max(jnp.abs(state.pressure - (2 - 2 * x[:, None] / 3))) < 1e-13
    # The sum over cells of a parabola is larger than its integral by half the square of a cell: dp h^3/(12 mu L).
    rate = DUCT.place(0, 1).flux(state.velocity)
    assert rate == pytest.approx(2 / (12 * 0.5 * 3) * (1 + 0.1**2 / 2), rel=1e-13)
    assert DUCT.place(0, 0).flux(state.velocity) == pytest.approx(-float(rate), rel=1e-13)
