"""A transported scalar: conserved, bounded, of second order, with exact fluxes through its sides."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.boundary.domain import domain
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.scalar import TransportedScalar, mean_scalar
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.flows import WALLS
from tests.flow.test_scalar import ZERO, scalar_in

pytestmark = pytest.mark.usefixtures("x64")


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
