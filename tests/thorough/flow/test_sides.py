"""Flow between sides with given pressures, through open sides, and past sides of one's own."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain, no_motion, prescribe
from simkit.flow.boundary.sides import Side
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.operators.differences import divergence
from simkit.flow.scalar import TransportedScalar, mean_scalar
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.differences import central_difference
from tests.flow.flows import SCHEMES, uneven_axis
from tests.flow.test_sides import (
    DUCT,
    DUCTS,
    OPEN,
    OWN_PARAMS,
    SLIP,
    Wind,
    duct,
    eddies,
    equations,
    equations_of_own_sides,
    on_every_place,
    params_of,
    params_of_own_sides,
    params_of_pressures,
    profile,
    runner,
    solenoidal,
    still,
)
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


SLIPPERY = ("free_slip", "free_slip")


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
    state = run(begin, params_of_pressures(viscosity=viscosity, time_step=end / steps), steps)
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


@pytest.mark.parametrize("scheme", ["runge_kutta", "adams_bashforth, implicit"])
def test_derivative_with_respect_to_the_pressure_equals_central_differences(scheme):
    place = duct((10, 8))
    run = runner(place, scheme)

    @jax.jit
    def rate(params):
        state = run(eddies(place), params, 20)
        return place.place(0, 1).flux(state.velocity) + jnp.sum(state.velocity[1] ** 2)

    params = params_of_pressures(viscosity=0.02, swing=0.5, time_step=0.01)
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
        params = params_of_pressures(diffusivity=0.0, time_step=0.01)
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
    state = runner(DUCT, scheme)(still(DUCT), params_of_pressures(), 2000)
    u, v = state.velocity
    y, x = DUCT.grid.axes[1].centers, DUCT.grid.axes[0].centers
    assert jnp.max(jnp.abs(u - 2 / 3 * y * (1 - y))) < 1e-14
    assert jnp.max(jnp.abs(v)) < 1e-15
    assert jnp.max(jnp.abs(state.pressure - (2 - 2 * x[:, None] / 3))) < 1e-13
    # The sum over cells of a parabola is larger than its integral by half the square of a cell: dp h^3/(12 mu L).
    rate = DUCT.place(0, 1).flux(state.velocity)
    assert rate == pytest.approx(2 / (12 * 0.5 * 3) * (1 + 0.1**2 / 2), rel=1e-13)
    assert DUCT.place(0, 0).flux(state.velocity) == pytest.approx(-float(rate), rel=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@on_every_place
def test_flow_through_open_sides_has_no_divergence_and_outflow_equals_inflow(place, dtype):
    dtype = jnp.dtype(dtype)
    start, step = stepper(Equations(place, "viscosity", fixed_time_step, method="adams_bashforth", implicit=(1,)))
    params = {name: value.astype(dtype) for name, value in params_of(viscosity=0.05, time_step=0.002).items()}

    @jax.jit
    def after():
        begin = start(jax.tree.map(lambda f: 0.2 * f.astype(dtype), solenoidal(place, 3)), params)
        state = jax.lax.fori_loop(0, 20, lambda _, s: step(s, params), begin)
        return state, jnp.max(jnp.abs(divergence(state.velocity, place.grid)))

    state, most = after()
    assert state.pressure.dtype == dtype
    width = min(a.widths.min() for a in place.grid.axes)
    # As in test_stepper.py: differences of velocities of about 1, each known to its rounding, over the smallest cells.
    assert most < 40 * jnp.finfo(dtype).eps / width
    passed = [place.place(axis, side).flux(state.velocity) for axis, side in place.open_sides()]
    assert abs(sum(passed)) < 40 * jnp.finfo(dtype).eps
    # Through a single open side as much flows out as in.
    assert len(passed) == 1 or max(abs(f) for f in passed) > 1e-3


@pytest.mark.parametrize("method", ["runge_kutta", "adams_bashforth"])
@pytest.mark.parametrize("name", DUCTS)
def test_flow_through_a_duct_is_poiseuille_flow_and_has_no_divergence(name, method):
    place = DUCTS[name]
    entering, boundary, along, _ = profile(place)
    model = Equations(
        place,
        viscosity=lambda params: params["viscosity"],
        time_step=fixed_time_step,
        boundary=lambda params, time: boundary,
        method=method,
    )
    start, step = stepper(model)
    params = {"viscosity": jnp.asarray(0.1), "time_step": jnp.asarray(0.01)}
    still = tuple(jnp.zeros(place.grid.shape(i)) for i in range(place.grid.dimension))
    state = jax.jit(lambda: jax.lax.fori_loop(0, 4000, lambda _, s: step(s, params), start(still, params)))()
    # Four faces a cell, velocities of size 1 over cells above 0.05, a few roundings each.
    assert jnp.max(jnp.abs(divergence(state.velocity, place.grid))) < 2e-14
    found = jnp.take(state.velocity[along], place.grid.cells[along] // 2, axis=along)
    expected = jnp.squeeze(jnp.asarray(entering), axis=along)
    # On equal cells the parabola is exact but for what the first cells make of the inflow, which dies within a few
    # half-widths as exp(-4 x): 2 half-widths downstream 3e-4. Uneven cells know it to second order, h^2/4 of 0.25^2.
    assert jnp.max(jnp.abs(found - expected)) < (0.02 if name == "uneven" else 3e-3)


def test_outflow_lets_a_vortex_leave():
    place = domain((bounded_axis(48, 6.0), periodic_axis(16, 2.0)), (("inflow", "outflow"), None))
    boundary = ((1.0, 0.0), (0.0, 0.0)), None
    model = Equations(place, lambda params: 1e-3, fixed_time_step, boundary=lambda params, time: boundary)
    start, step = stepper(model)
    x, y = (a.faces for a in place.grid.axes)
    centers = np.exp(-((x[:, None] - 4.0) ** 2) / 0.2) * np.cos(np.pi * (y[None, 1:]))
    stream = 0.05 * centers
    u = 1 + np.diff(np.concatenate([stream[:, -1:], stream], axis=1), axis=1) / (2.0 / 16)
    v = -np.diff(stream, axis=0) / (6.0 / 48)
    params = {"time_step": jnp.asarray(0.05)}
    begin = start(prescribe((jnp.asarray(u), jnp.asarray(v)), boundary, place), params)
    state = jax.jit(lambda s: jax.lax.fori_loop(0, 160, lambda _, s: step(s, params), s))(begin)
    # The vortex needs 2 time units to the end, and is gone after 8 but for a few per cent that the end reflects.
    assert jnp.max(jnp.abs(begin.velocity[1])) > 0.09
    assert jnp.max(jnp.abs(state.velocity[1])) < 0.05 * jnp.max(jnp.abs(begin.velocity[1]))


@dataclasses.dataclass(frozen=True)
class RoughWall(Side):
    """A wall whose stress grows as the square of the velocity in the nearest cells."""

    kind = "rough"

    def share(self, component, place, values):
        return None

    def slope(self, f, component, given, place, values):
        u = place.nearest(f)
        return -place.outward * 0.5 * jnp.abs(u) * u


on_each_scheme = pytest.mark.parametrize("scheme", SCHEMES)
on_every_method = pytest.mark.parametrize("scheme", [name for name in SCHEMES if not name.endswith("across")])


def channel(sides, cells=(4, 8), stretched=False):
    across = uneven_axis(cells[1]) if stretched else bounded_axis(cells[1], 2.0, -1.0)
    return domain((periodic_axis(cells[0], 2.0), across), (None, sides))


@functools.cache
def own_runner(place, scheme, boundary=None):
    """``run(velocity, params, steps) -> state``, compiled once for any number of steps."""
    start, step = stepper(equations_of_own_sides(place, scheme, boundary))

    @jax.jit
    def run(velocity, params, steps):
        return jax.lax.fori_loop(0, steps, lambda _, s: step(s, params), start(velocity, params))

    return run


SLIPPERY_CHANNEL = channel((SLIP, SLIP))


@on_each_scheme
def test_flow_past_walls_with_a_slip_length_is_couette_poiseuille_flow_with_slip(scheme):
    # The slowest mode decays at a rate of 1.4, k tan(k) = 1/0.3; implicit steps as long as the first are not stable.
    time_step = 0.1 if scheme.endswith("implicit") and scheme.startswith("adams") else 0.01
    run, steps = own_runner(SLIPPERY_CHANNEL, scheme), round(25 / time_step)
    for slip in (0.0, 0.3, 2.0) if scheme.endswith("implicit across") else (0.3,):
        params = params_of_own_sides(slip_length=slip, time_step=time_step)
        begin = (
            still(SLIPPERY_CHANNEL)
            if slip == 0.3
            else (exact(SLIPPERY_CHANNEL, slip) + 0.01, still(SLIPPERY_CHANNEL)[1])
        )
        found = run(begin, params, steps).velocity[0]
        # exp(-1.4 * 25) = 6e-16, and for a slip length of 2, at a rate of 0.45, 0.01 * 1e-5.
        limit = 1e-12 if slip < 2 else 1e-6
        assert jnp.max(jnp.abs(found - exact(SLIPPERY_CHANNEL, slip))) < limit


def exact(place, slip):
    """Poiseuille flow with slip on both walls, u = G/(2 nu) (1 - y^2 + 2 length), and Couette flow likewise."""
    y = place.grid.axes[1].centers
    u = OWN_PARAMS["force"] / 2 * (1 - y**2 + 2 * slip) + OWN_PARAMS["upper"] * (1 + y + slip) / (2 + 2 * slip)
    return jnp.broadcast_to(jnp.asarray(u), place.grid.cells)


@on_every_method
def test_wind_over_a_film_drives_the_flow_of_its_stress(scheme):
    place = channel(("wall", Wind()), stretched=True)
    time_step = 0.1 if scheme == "adams_bashforth, implicit" else 0.004
    params = params_of_own_sides(force=0.0, stress=0.4, viscosity=0.5, time_step=time_step)
    line = 0.8 * (1 + jnp.asarray(place.grid.axes[1].centers))
    begin = jnp.broadcast_to(line, place.grid.cells), jnp.zeros(place.grid.shape(1))
    state = own_runner(place, scheme, lambda p, t: no_motion(place))(begin, params, 50)
    # The slope 0.4/0.5 is exact on any grid.
    assert jnp.max(jnp.abs(state.velocity[0] - begin[0])) < 1e-13


@pytest.mark.parametrize("method", ["runge_kutta", "adams_bashforth"])
def test_rough_wall_carries_the_force_and_is_refused_by_implicit_friction_alone(method):
    place = channel((RoughWall(), RoughWall()))
    run = own_runner(place, method, lambda p, t: no_motion(place))
    u = run(still(place), params_of_own_sides(), 6000).velocity[0]
    # Both walls carry the force 0.6 on a height of 2: 0.5 u^2 = 0.6.
    np.testing.assert_allclose(u[:, [0, -1]] ** 2, 1.2, rtol=1e-6)
    start, _ = stepper(equations_of_own_sides(place, method, lambda p, t: no_motion(place), implicit=(0,)))
    assert jax.eval_shape(start, still(place), params_of_own_sides())
    _, step = stepper(equations_of_own_sides(place, method, lambda p, t: no_motion(place), implicit=(1,)))
    with pytest.raises(UserError, match=r"the lower side of axis y has a slope that is not linear.* leave y out of"):
        jax.eval_shape(step, jax.eval_shape(start, still(place), params_of_own_sides()), params_of_own_sides())
