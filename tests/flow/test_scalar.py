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
from tests.flow.flows import DOMAINS, WALLS, scalar_noise, solenoidal_noise, some, uneven_axis
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

ZERO = jnp.zeros(())


def scalar_in(place, kind="insulated", **options) -> TransportedScalar:
    sides = tuple(None if pair is None else (kind, kind) for pair in place.sides)
    return TransportedScalar(place, sides, lambda params: params["diffusivity"], **options)


def random_scalar(place, seed=1):
    return scalar_noise(place.grid, seed)


@functools.cache
def rate(place, kind="insulated", scheme="central"):
    """``(scalar, velocity, diffusivity) -> (change, its mean, the means of c times it and of the magnitude)``."""
    scalar, axes = scalar_in(place, kind, scheme=scheme), tuple(range(place.grid.dimension))

    @jax.jit
    def rates(c, velocity, diffusivity):
        change = scalar.rate(c, velocity, {"diffusivity": diffusivity}, ZERO, axes)
        means = (mean_scalar(f, place.grid) for f in (change, c * change, jnp.abs(c * change)))
        return change, *means

    return lambda c, velocity, diffusivity=0.0: [np.asarray(x) for x in rates(c, velocity, diffusivity)]


SOME = some(DOMAINS, "stretched", "cavity")


@every(SOME)
def test_central_advection_conserves_the_variance(place):
    _, _, production, size = rate(place)(random_scalar(place), solenoidal_noise(place.grid, 0))
    assert size > 0.1
    # Rounding of a mean of terms of this size, and the divergence that rounding leaves in the velocity.
    assert abs(production) < 1e-13 * size


@every(SOME)
def test_bounded_advection_never_raises_a_maximum_nor_lowers_a_minimum(place):
    velocity, risen = solenoidal_noise(place.grid, 4), []
    for seed in range(12):
        c = random_scalar(place, seed)
        bounded, central = (rate(place, scheme=scheme)(c, velocity)[0].ravel() for scheme in ("bounded", "central"))
        # The divergence left by rounding, 1e-13, times the scalar.
        assert bounded[np.argmax(c)] < 1e-12
        assert bounded[np.argmin(c)] > -1e-12
        risen.append(central[np.argmax(c)])
    # The central scheme does, in at least one of the same cases: the test can fail.
    assert max(risen) > 0.1


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

    @jax.jit
    def rate_and_fluxes(c):
        return scalar.rate(c, at_rest, params, ZERO, (0, 1)), *(scalar.side_flux(c, params, ZERO, 0, s) for s in (0, 1))

    change, lower, upper = (np.asarray(f) for f in rate_and_fluxes(c))
    # Rounding of numbers up to 7.5, 1e-15, over the square of cells of at least 0.1, times the weights.
    assert np.abs(change).max() < 1e-11
    np.testing.assert_allclose(lower, -0.6, rtol=0, atol=1e-13)
    assert np.all(upper == 0.6)


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


def test_carried_wave_keeps_its_variance_to_third_order_in_time():
    coarse, fine = (1 - carried(16)(steps)[1] for steps in (16, 32))
    # With z = k dt = 0.1 of the coarse steps, each keeps 1 - z^4/12 of the variance: 16 of them lose 1.2e-4.
    assert 1e-5 < coarse < 2e-4
    assert np.log2(coarse / fine) == pytest.approx(3, abs=0.05)


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
        value = jax.jit(loss, static_argnums=2)
        by_diffusivity = (value(0.3 + h, 0.7, scheme) - value(0.3 - h, 0.7, scheme)) / (2 * h)
        by_wall = (value(0.3, 0.7 + h, scheme) - value(0.3, 0.7 - h, scheme)) / (2 * h)
        # The loss is quadratic in both: no truncation, and rounding 1e-16/1e-4.
        np.testing.assert_allclose(found, (by_diffusivity, by_wall), rtol=1e-9)


@every(
    [
        ("even", (None, ("value", "hot")), "central", "side 'hot' of the scalar on axis y is unknown"),
        ("even", (("value", "value"), None), "central", "give two for each bounded axis"),
        ("even", (None, ("value", "value")), "upwind", "scheme = 'upwind' is unknown"),
    ]
)
def test_mistakes_are_refused(place, sides, scheme, message):
    with pytest.raises(UserError, match=message):
        TransportedScalar(DOMAINS[place], sides, lambda params: jnp.ones(()), scheme=scheme)


def test_inflow_needs_a_value():
    place = domain((bounded_axis(8, 2.0), bounded_axis(6, 1.0)), (("inflow", "outflow"), WALLS))
    with pytest.raises(UserError, match="flows in along x is not given"):
        TransportedScalar(place, (("insulated", "insulated"),) * 2, lambda params: jnp.ones(()))


@every(
    [
        ((None, None), "the scalar gives 2 entries, with .0, 0. of their own; give one for each axis"),
        ((None, (1.0,)), "the scalar gives 2 entries, with .0, 1. of their own"),
        (
            ((1.0, 1.0), (0.0, 0.0)),
            "the scalar gives 2 entries, with .2, 2. of their own; give one for each axis: None for a",
        ),
        ((None, (1.0, 5.0)), "is given a value on an insulated side of axis y, which does not use it"),
        ((None, (1.0, 0.0), None), "the scalar gives 3 entries"),
    ]
)
def test_values_that_a_side_does_not_use_are_refused(values, message):
    place = DOMAINS["even"]
    scalar = TransportedScalar(
        place, (None, ("value", "insulated")), lambda params: jnp.ones(()), values=lambda params, time: values
    )
    with pytest.raises(UserError, match=message):
        jax.eval_shape(
            lambda c: scalar.rate(c, solenoidal_noise(place.grid, 5), {}, ZERO, (0, 1)), random_scalar(place)
        )
