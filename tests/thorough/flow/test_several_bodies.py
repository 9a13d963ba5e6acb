"""Several bodies in one flow, and bodies that rotate or grow."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain
from simkit.flow.diagnosis.measures import integral
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.obstacles import Body, Motion, ball, bodies_in, points_around
from simkit.flow.operators.differences import divergence
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step

pytestmark = pytest.mark.usefixtures("x64")

METHODS = ("immersed_boundary", "direct_forcing")
TUNNEL = domain(
    (bounded_axis(24, 3.0), bounded_axis(24, 3.0, -1.5)), (("inflow", "outflow"), ("free_slip", "free_slip"))
)


def disk(x, y, radius=0.35, **options):
    return Body(
        lambda p: ball((x, y), radius), lambda p: (x, y), points=points_around(2 * np.pi * radius, 1 / 8), **options
    )


def stream(speed):
    still = (0.0, 0.0)
    return lambda params, time: (((speed, 0.0), still), (still, still))


@functools.cache
def side_by_side(method):
    """The last state of a stream past two cylinders, one above the other, and the obstacle."""
    pair = bodies_in(TUNNEL, method, {"upper": disk(1.0, 0.6), "lower": disk(1.0, -0.6)}, 0.02)
    start, step = stepper(Equations(TUNNEL, 0.02, fixed_time_step, boundary=stream(1.0), obstacle=pair))
    params = {"time_step": jnp.asarray(0.02)}
    pair.check(params)
    velocity = jnp.ones(TUNNEL.grid.shape(0)), jnp.zeros(TUNNEL.grid.shape(1))
    advance = jax.jit(lambda s: jax.lax.scan(lambda s, _: (step(s, params), None), s, None, length=40)[0])
    return pair, advance(start(velocity, params))


@pytest.mark.parametrize("method", METHODS)
def test_cylinders_side_by_side_have_equal_drag_and_opposite_lift(method):
    pair, state = side_by_side(method)
    upper, lower = (pair.load_on(name, state.load) for name in ("upper", "lower"))
    assert upper[0] > 0.1 and upper[1] > 0.01
    np.testing.assert_allclose(upper, lower * jnp.array([1, -1, -1]), atol=1e-10)
    assert jnp.max(jnp.abs(divergence(state.velocity, TUNNEL.grid))) < 1e-11


def test_bodies_that_overlap_or_nearly_touch_are_refused_by_name():
    for gap, message in ((-0.1, "'one' and 'other' overlap"), (0.2, "'one' and 'other' come within 0.2.* two cells")):
        pair = bodies_in(TUNNEL, "direct_forcing", {"one": disk(1.0, 0.0), "other": disk(1.7 + gap, 0.0)}, 0.02)
        with pytest.raises(UserError, match=message):
            pair.check({})
    apart = Motion(lambda p, t: (1.95 - 0.2 * t, 0.0))
    shape = ball((0.0, 0.0), 0.35)
    moving = Body(lambda p: shape, lambda p: (0.0, 0.0), motion=apart)
    pair = bodies_in(TUNNEL, "direct_forcing", {"one": disk(1.0, 0.0), "other": moving}, 0.02)
    pair.check({})
    with pytest.raises(UserError, match=r"at time 1: obstacles 'one' and 'other' come within 0\.06"):
        pair.check({}, (0.0, 1.0))
    with pytest.raises(UserError, match="bodies is empty"):
        bodies_in(TUNNEL, "direct_forcing", {}, 0.02)
    with pytest.raises(UserError, match="points = None of body 'one'; an immersed boundary needs"):
        bodies_in(TUNNEL, "immersed_boundary", {"one": moving}, 0.02)


@pytest.mark.parametrize("method", METHODS)
def test_a_growing_body_displaces_the_fluid_out_of_the_domain(method):
    rate = 0.1
    growing = Motion(lambda p, t: (1.5, 0.0), size=lambda p, t: 1 + rate * t)
    body = Body(lambda p: ball((0.0, 0.0), 0.4), lambda p: (0.0, 0.0), motion=growing, points=points_around(2.6, 1 / 8))
    held = bodies_in(TUNNEL, method, {"disk": body}, 0.05)
    start, step = stepper(Equations(TUNNEL, 0.05, fixed_time_step, boundary=stream(0.0), obstacle=held))
    params = {"time_step": jnp.asarray(0.02)}
    velocity = tuple(jnp.zeros(TUNNEL.grid.shape(i)) for i in range(2))
    state = jax.jit(lambda: jax.lax.scan(lambda s, _: (step(s, params), None), start(velocity, params), None, 20)[0])()
    source = held.source(params, state.time[0])
    swept = 2 * np.pi * 0.4**2 * (1 + rate * 0.4) * rate
    # The area of a disk of 6 x 6 cells, on the grid.
    assert integral(source, TUNNEL.grid) == pytest.approx(swept, rel=2e-3)
    assert jnp.max(jnp.abs(divergence(state.velocity, TUNNEL.grid) - source)) < 1e-12
    assert jnp.sum(state.velocity[0][-1]) / 8 == pytest.approx(swept, rel=2e-3)
    # Beyond the kernel the fluid flows away from it, on both sides alike: there is no force across.
    distance = held.distance(params, state.time[0])
    assert jnp.max(jnp.abs(source[distance > 0.23])) == 0
    assert jnp.abs(state.load[1]) < 1e-10
    closed = domain((periodic_axis(24, 3.0), periodic_axis(24, 3.0)), (None, None))
    held = bodies_in(closed, method, {"disk": body}, 0.05)
    with pytest.raises(UserError, match=r"changes its size, but no fluid can leave.* make one side an outflow"):
        stepper(Equations(closed, 0.05, fixed_time_step, obstacle=held))
