"""A transported scalar: conserved, bounded, of second order, with exact fluxes through its sides."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.scalar import TransportedScalar, mean_scalar, scalar_variance
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.flows import DOMAINS, WALLS, solenoidal_noise, uneven_axis

pytestmark = pytest.mark.usefixtures("x64")

ZERO = jnp.zeros(())


def scalar_in(place, kind="insulated", **options) -> TransportedScalar:
    sides = tuple(None if pair is None else (kind, kind) for pair in place.sides)
    return TransportedScalar(place, sides, lambda params: params["diffusivity"], **options)


def rate(scalar, c, velocity, diffusivity=0.0):
    return scalar.rate(c, velocity, {"diffusivity": jnp.asarray(diffusivity)}, ZERO, (0, 1, 2))


def random_scalar(place, seed=1):
    return jax.random.normal(jax.random.key(seed), place.grid.cells)


SOME = pytest.mark.parametrize(
    "place",
    [DOMAINS[name] for name in ("stretched", "periodic", "cavity", "channel 3-D")],
    ids=["stretched", "periodic", "cavity", "channel 3-D"],
)


@SOME
@pytest.mark.parametrize("scheme", ["central", "bounded"])
def test_insulated_scalar_is_conserved(place, scheme):
    c, velocity = random_scalar(place), solenoidal_noise(place.grid, 0)
    change = rate(scalar_in(place, scheme=scheme), c, velocity, 0.3)
    # Fluxes cancel in pairs: what remains is the rounding of at most 240 terms of this size.
    assert abs(mean_scalar(change, place.grid)) < 1e-14 * float(jnp.max(jnp.abs(change)))


@SOME
def test_central_advection_conserves_the_variance(place):
    c, velocity = random_scalar(place), solenoidal_noise(place.grid, 0)
    change = rate(scalar_in(place), c, velocity)
    production, size = mean_scalar(c * change, place.grid), mean_scalar(jnp.abs(c * change), place.grid)
    assert size > 0.1
    # Rounding of a mean of terms of this size, and the divergence that rounding leaves in the velocity.
    assert abs(production) < 1e-13 * size


@SOME
def test_constant_scalar_stays_constant(place):
    ones, velocity = jnp.ones(place.grid.cells), solenoidal_noise(place.grid, 3)
    for scheme in ("central", "bounded"):
        # Divergence of the velocity: rounding of differences of numbers of order 1 over cells of about 0.1.
        assert jnp.max(jnp.abs(rate(scalar_in(place, scheme=scheme), ones, velocity))) < 1e-12


@SOME
def test_bounded_advection_never_raises_a_maximum_nor_lowers_a_minimum(place):
    velocity, scalar = solenoidal_noise(place.grid, 4), scalar_in(place, scheme="bounded")
    for seed in range(5):
        c = random_scalar(place, seed)
        change = np.asarray(rate(scalar, c, velocity)).ravel()
        # The divergence left by rounding, 1e-13, times the scalar.
        assert change[int(jnp.argmax(c))] < 1e-12
        assert change[int(jnp.argmin(c))] > -1e-12
    # The central scheme does, in at least one of the same cases: the test can fail.
    central = [np.asarray(rate(scalar_in(place), random_scalar(place, s), velocity)).ravel() for s in range(5)]
    assert max(r[int(jnp.argmax(random_scalar(place, s)))] for s, r in enumerate(central)) > 0.1


@SOME
def test_diffusion_lowers_the_variance(place):
    at_rest = jax.tree.map(jnp.zeros_like, solenoidal_noise(place.grid, 0))
    for kind in ("insulated", "value"):
        c = random_scalar(place)
        assert mean_scalar(c * rate(scalar_in(place, kind), c, at_rest, 1.0), place.grid) < 0


def test_linear_profile_between_given_value_and_flux_is_steady_on_any_grid():
    place = domain((uneven_axis(9, 0, 2), periodic_axis(6, 1.0)), (WALLS, None))
    scalar = TransportedScalar(
        place,
        (("value", "flux"), None),
        lambda params: params["diffusivity"],
        values=lambda params, time: ((1.5, 0.6), None),
    )
    # Heat 0.6 enters through the upper side at diffusivity 0.2: the slope is 3.
    params = {"diffusivity": jnp.asarray(0.2)}
    c = jnp.broadcast_to(jnp.asarray(1.5 + 3 * place.grid.axes[0].centers)[:, None], place.grid.cells)
    at_rest = (jnp.zeros(place.grid.shape(0)), jnp.zeros(place.grid.shape(1)))
    # Rounding of numbers up to 7.5, 1e-15, over the square of cells of at least 0.1, times the weights.
    assert jnp.max(jnp.abs(scalar.rate(c, at_rest, params, ZERO, (0, 1)))) < 1e-11
    np.testing.assert_allclose(scalar.side_flux(c, params, ZERO, 0, 0), -0.6, rtol=0, atol=1e-13)
    assert jnp.all(scalar.side_flux(c, params, ZERO, 0, 1) == 0.6)


@functools.cache
def carried(cells, scheme="central"):
    """``(steps, diffusivity) -> (error, variance kept)`` of a wave advected by a quarter period."""
    place = domain((periodic_axis(cells, 1.0), periodic_axis(4, 1.0)), (None, None))
    scalar = scalar_in(place, scheme=scheme)
    start, step = stepper(Equations(place, lambda params: jnp.zeros(()), fixed_time_step, scalar=scalar))
    time, k = 0.25, 2 * jnp.pi

    def wave(shift):
        c = jnp.sin(k * (jnp.asarray(place.grid.axes[0].centers) - shift))
        return jnp.broadcast_to(c[:, None], place.grid.cells)

    @jax.jit
    def run(steps, diffusivity):
        params = {"diffusivity": diffusivity, "time_step": time / steps}
        uniform = (jnp.ones(place.grid.cells), jnp.zeros(place.grid.cells))
        state = jax.lax.fori_loop(0, steps, lambda _, s: step(s, params), start(uniform, params, wave(0.0)))
        # The amplitude falls at the rate of the second difference: only advection and the time step are inexact.
        left = jnp.exp(-diffusivity * (2 - 2 * jnp.cos(k / cells)) * cells**2 * time)
        error = jnp.mean(jnp.abs(state.scalar - left * wave(time)))
        return error, scalar_variance(state.scalar, place.grid) / (left**2 * scalar_variance(wave(0.0), place.grid))

    return lambda steps, diffusivity=0.0: [float(x) for x in run(steps, diffusivity)]


def test_carried_wave_is_of_second_order_in_space():
    # Each step crosses 1/8 of a cell. A flow of third order in time leaves 1e-3 of the error of the grid.
    central, bounded = ([carried(n, scheme)(2 * n)[0] for n in (16, 32)] for scheme in ("central", "bounded"))
    # But for (k h)^2/20 = 1 % of it.
    assert np.log2(central[0] / central[1]) == pytest.approx(2, abs=0.05)
    # The limiter flattens extrema to first order, in a share of the cells that falls as fast: 2 in the mean, slowly.
    assert np.log2(bounded[0] / bounded[1]) > 1.7


def test_carried_wave_keeps_its_variance_to_third_order_in_time():
    coarse, fine = (1 - carried(16)(steps)[1] for steps in (16, 32))
    # With z = k dt = 0.1 of the coarse steps, each keeps 1 - z^4/12 of the variance: 16 of them lose 1.2e-4.
    assert 1e-5 < coarse < 2e-4
    assert np.log2(coarse / fine) == pytest.approx(3, abs=0.05)


def test_mode_decays_at_the_rate_of_the_discrete_laplacian():
    # Each of 100 steps is in error by z^4/24 with z = dt (k + D k^2) = 0.03: 4e-6 in all.
    kept = carried(16)(100, 0.1)[1]
    assert kept == pytest.approx(1, abs=4e-6)
    place = DOMAINS["periodic"]
    x = jnp.asarray(place.grid.axes[0].centers)
    mode = jnp.broadcast_to(jnp.cos(2 * jnp.pi * x / 3)[:, None], place.grid.cells)
    at_rest = jax.tree.map(jnp.zeros_like, solenoidal_noise(place.grid, 0))
    exact = -0.7 * (2 - 2 * np.cos(2 * np.pi / 12)) * 4**2
    # Rounding of numbers of order 1 over the square of a cell of 1/4.
    np.testing.assert_allclose(rate(scalar_in(place), mode, at_rest, 0.7), exact * mode, rtol=0, atol=1e-13)


def test_wave_between_walls_decays_at_the_analytic_rate_to_second_order():
    def error(cells):
        place = domain((bounded_axis(cells, 1.0, 0.0, 1.0), periodic_axis(4, 1.0)), (WALLS, None))
        scalar = scalar_in(place, "value")
        start, step = stepper(Equations(place, lambda params: jnp.ones(()), fixed_time_step, scalar=scalar))
        params = {"diffusivity": jnp.asarray(1.0), "time_step": jnp.asarray(0.05 / 400)}
        mode = jnp.broadcast_to(jnp.sin(jnp.pi * jnp.asarray(place.grid.axes[0].centers))[:, None], place.grid.cells)
        at_rest = tuple(jnp.zeros(place.grid.shape(i)) for i in range(2))

        @jax.jit
        def run():
            return jax.lax.fori_loop(0, 400, lambda _, s: step(s, params), start(at_rest, params, mode))

        state = run()
        exact = jnp.exp(-(jnp.pi**2) * 0.05)
        flux = scalar.side_flux(state.scalar, params, ZERO, 0, 0)
        return float(jnp.max(jnp.abs(state.scalar - exact * mode))), float(jnp.max(jnp.abs(flux + jnp.pi * exact)))

    coarse, fine = error(12), error(24)
    for a, b in zip(coarse, fine, strict=True):
        # The next term is a factor h = 1/12 smaller where it is one-sided.
        assert np.log2(a / b) > 1.8
    assert fine[0] < 2e-3


@pytest.mark.parametrize("method", ["runge_kutta", "adams_bashforth"])
@pytest.mark.parametrize("place", [DOMAINS["periodic"], DOMAINS["cavity"]], ids=["periodic", "cavity"])
def test_implicit_diffusion_is_stable_at_any_time_step_and_conserves_the_mean(place, method):
    dimension = place.grid.dimension
    every = tuple(range(dimension))
    start, step = stepper(
        Equations(
            place,
            lambda params: params["diffusivity"],
            fixed_time_step,
            scalar=scalar_in(place),
            method=method,
            implicit=every,
        )
    )
    c, at_rest = random_scalar(place), tuple(jnp.zeros(place.grid.shape(i)) for i in every)
    # An explicit step bears diffusivity * time_step up to about 1e-3 on these grids. Crank-Nicolson turns the shortest
    # waves over and leaves 1 - 4/z of them, with z up to about 200: 45 % of the amplitude in 40 steps, less of others.
    params = {"diffusivity": jnp.asarray(1.0), "time_step": jnp.asarray(0.3)}
    state = jax.jit(lambda: jax.lax.fori_loop(0, 40, lambda _, s: step(s, params), start(at_rest, params, c)))()
    assert scalar_variance(state.scalar, place.grid) < 0.1 * scalar_variance(c, place.grid)
    # Rounding of at most 400 numbers, 40 times.
    assert mean_scalar(state.scalar, place.grid) == pytest.approx(float(mean_scalar(c, place.grid)), abs=1e-13)


def test_implicit_diffusion_between_a_value_and_a_flux_converges_to_a_linear_profile():
    place = domain((uneven_axis(9, 0, 2), periodic_axis(6, 1.0)), (WALLS, None))
    scalar = TransportedScalar(
        place,
        (("value", "flux"), None),
        lambda params: params["diffusivity"],
        values=lambda params, time: ((1.5, params["heating"]), None),
    )
    at_rest = tuple(jnp.zeros(place.grid.shape(i)) for i in range(2))
    start, step = stepper(
        Equations(place, lambda params: jnp.ones(()), fixed_time_step, scalar=scalar, implicit=(0, 1))
    )

    @jax.jit
    def end_of_run(diffusivity, heating):
        params = {"diffusivity": diffusivity, "heating": heating, "time_step": jnp.asarray(1.0)}
        state = start(at_rest, params, jnp.zeros(place.grid.cells))
        return jax.lax.scan(lambda s, _: (step(s, params), None), state, length=150)[0].scalar

    x = place.grid.axes[0].centers[:, None]
    # What is left of the start: exp(-pi^2/16 0.2 t) at t = 150.
    np.testing.assert_allclose(end_of_run(0.2, 0.6), np.broadcast_to(1.5 + 3 * x, (9, 6)), rtol=0, atol=1e-7)
    slopes = jax.jacfwd(end_of_run, argnums=(0, 1))(0.2, 0.6)
    np.testing.assert_allclose(slopes[0], np.broadcast_to(-15 * x, (9, 6)), rtol=0, atol=1e-5)
    np.testing.assert_allclose(slopes[1], np.broadcast_to(5 * x, (9, 6)), rtol=0, atol=1e-6)


def test_front_advected_through_the_domain_conserves_the_scalar():
    place = domain((bounded_axis(32, 2.0), bounded_axis(6, 1.0)), (("inflow", "outflow"), ("free_slip", "free_slip")))
    scalar = TransportedScalar(
        place,
        (("value", "insulated"), ("insulated", "insulated")),
        lambda params: jnp.zeros(()),
        values=lambda params, time: ((1.0, 0.0), (0.0, 0.0)),
        scheme="bounded",
    )

    def boundary(params, time):
        rest = ((0.0, 0.0), (0.0, 0.0))
        return ((1.0, 0.0), (0.0, 0.0)), rest

    equations = Equations(place, lambda params: jnp.zeros(()), fixed_time_step, boundary=boundary, scalar=scalar)
    start, step = stepper(equations)
    params = {"time_step": jnp.asarray(0.02)}
    uniform = (jnp.ones(place.grid.shape(0)), jnp.zeros(place.grid.shape(1)))

    @functools.partial(jax.jit, static_argnums=0)
    def after(steps):
        return jax.lax.fori_loop(
            0, steps, lambda _, s: step(s, params), start(uniform, params, jnp.zeros(place.grid.cells))
        )

    # By t = 1 the front has filled half of the domain and touched no other side: exactly the inflow has entered.
    half = after(50).scalar
    assert mean_scalar(half, place.grid) == pytest.approx(0.5, abs=1e-12)
    # The weights of the Runge-Kutta stages are not all positive, so the bounds hold but for a part of the last front.
    assert float(half.min()) > -1e-3
    assert float(half.max()) < 1 + 1e-3
    # Three times the way through: the tail of the front, some cells wide, has left too.
    np.testing.assert_allclose(after(300).scalar, 1.0, rtol=0, atol=1e-6)


def test_source_is_added_and_buoyancy_depends_on_the_scalar():
    place = domain((periodic_axis(8, 1.0), periodic_axis(8, 1.0)), (None, None))
    scalar = TransportedScalar(
        place,
        (None, None),
        lambda params: jnp.zeros(()),
        source=lambda c, velocity, params, time: params["heating"] * c,
    )
    equations = Equations(
        place,
        lambda params: jnp.zeros(()),
        fixed_time_step,
        force=lambda velocity, c, params, time: (0.0, c),
        scalar=scalar,
    )
    start, step = stepper(equations)
    params = {"heating": jnp.asarray(2.0), "time_step": jnp.asarray(0.01)}
    at_rest = (jnp.zeros(place.grid.cells),) * 2
    state = jax.lax.fori_loop(0, 50, lambda _, s: step(s, params), start(at_rest, params, jnp.ones(place.grid.cells)))
    # c = exp(2 t) and v = (exp(2 t) - 1)/2 at t = 1/2; each step of third order is in error by (2 dt)^4/24 = 7e-9.
    np.testing.assert_allclose(state.scalar, np.e, rtol=1e-6)
    np.testing.assert_allclose(state.velocity[1], (np.e - 1) / 2, rtol=1e-6)


def test_derivatives_through_a_carried_scalar_equal_central_differences():
    place = DOMAINS["cavity"]
    velocity, c = solenoidal_noise(place.grid, 5), random_scalar(place)

    def loss(diffusivity, wall, scheme):
        scalar = scalar_in(place, "value", scheme=scheme, values=lambda params, time: ((wall, 0.0), (0.0, wall)))
        change = scalar.rate(c, velocity, {"diffusivity": diffusivity}, ZERO, (0, 1))
        return jnp.mean(change**2)

    for scheme in ("central", "bounded"):
        found = jax.jit(jax.grad(loss, (0, 1)), static_argnums=2)(0.3, 0.7, scheme)
        h = 1e-4
        by_diffusivity = (loss(0.3 + h, 0.7, scheme) - loss(0.3 - h, 0.7, scheme)) / (2 * h)
        by_wall = (loss(0.3, 0.7 + h, scheme) - loss(0.3, 0.7 - h, scheme)) / (2 * h)
        # The loss is quadratic in both: no truncation, and rounding 1e-16/1e-4.
        np.testing.assert_allclose(found, (by_diffusivity, by_wall), rtol=1e-9)


@pytest.mark.parametrize(
    ("place", "sides", "scheme", "message"),
    [
        ("even", (None, ("value", "hot")), "central", "side 'hot' of the scalar on axis y is unknown"),
        ("even", (("value", "value"), None), "central", "give two for each bounded axis"),
        ("even", (None, ("value", "value")), "upwind", "scheme = 'upwind' is unknown"),
    ],
)
def test_mistakes_are_refused(place, sides, scheme, message):
    with pytest.raises(UserError, match=message):
        TransportedScalar(DOMAINS[place], sides, lambda params: jnp.ones(()), scheme=scheme)


def test_inflow_needs_a_value():
    place = domain((bounded_axis(8, 2.0), bounded_axis(6, 1.0)), (("inflow", "outflow"), WALLS))
    with pytest.raises(UserError, match="flows in along x is not given"):
        TransportedScalar(place, (("insulated", "insulated"),) * 2, lambda params: jnp.ones(()))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((None, None), r"needs two values on axis y, for its sides \('value', 'insulated'\); give a pair"),
        ((None, (1.0,)), "needs two values on axis y"),
        (((1.0, 1.0), (0.0, 0.0)), "is given values on axis x, which is periodic; give None"),
        ((None, (1.0, 5.0)), "is given a value on an insulated side of axis y, which does not use it"),
        ((None, (1.0, 0.0), None), "are for 3 axes; give a pair or None for each axis"),
    ],
)
def test_values_that_a_side_does_not_use_are_refused(values, message):
    place = DOMAINS["even"]
    scalar = TransportedScalar(
        place, (None, ("value", "insulated")), lambda params: jnp.ones(()), values=lambda params, time: values
    )
    with pytest.raises(UserError, match=message):
        scalar.rate(random_scalar(place), solenoidal_noise(place.grid, 5), {}, ZERO, (0, 1))
