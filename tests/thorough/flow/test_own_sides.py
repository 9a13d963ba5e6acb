"""Kinds of sides defined outside the package: each in one class, supported everywhere or refused by name."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain, no_motion
from simkit.flow.boundary.scalar_sides import ScalarSide
from simkit.flow.boundary.sides import Side
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.scalar import TransportedScalar
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.differences import central_difference
from tests.flow.flows import SCHEMES, WALLS, noise, uneven_axis
from tests.flow.test_own_sides import PARAMS, SLIP, NavierSlip, Wind, equations, params_of, still

pytestmark = pytest.mark.usefixtures("x64")


@dataclasses.dataclass(frozen=True)
class RoughWall(Side):
    """A wall whose stress grows as the square of the velocity in the nearest cells."""

    kind = "rough"

    def share(self, component, place, values):
        return None

    def slope(self, f, component, given, place, values):
        u = place.nearest(f)
        return -place.outward * 0.5 * jnp.abs(u) * u


@dataclasses.dataclass(frozen=True)
class Cooled(ScalarSide):
    """A side that gives heat to surroundings at a given temperature: -D dT/dn = transfer (T - T_outside)."""

    kind = "cooled"
    takes = True

    def values(self, params, time):
        return params["diffusivity"] / params["transfer"]

    def share(self, place, values):
        near, far = place.weights
        return 1 / (1 + values * (near - far))


on_every_scheme = pytest.mark.parametrize("scheme", SCHEMES)
on_every_method = pytest.mark.parametrize("scheme", [name for name in SCHEMES if not name.endswith("across")])


def channel(sides, cells=(4, 8), stretched=False):
    across = uneven_axis(cells[1]) if stretched else bounded_axis(cells[1], 2.0, -1.0)
    return domain((periodic_axis(cells[0], 2.0), across), (None, sides))


@functools.cache
def runner(place, scheme, boundary=None):
    """``run(velocity, params, steps) -> state``, compiled once for any number of steps."""
    start, step = stepper(equations(place, scheme, boundary))

    @jax.jit
    def run(velocity, params, steps):
        return jax.lax.fori_loop(0, steps, lambda _, s: step(s, params), start(velocity, params))

    return run


SLIPPERY = channel((SLIP, SLIP))


@on_every_scheme
def test_flow_past_walls_with_a_slip_length_is_couette_poiseuille_flow_with_slip(scheme):
    # The slowest mode decays at a rate of 1.4, k tan(k) = 1/0.3; implicit steps as long as the first are not stable.
    time_step = 0.1 if scheme.endswith("implicit") and scheme.startswith("adams") else 0.01
    run, steps = runner(SLIPPERY, scheme), round(25 / time_step)
    for slip in (0.0, 0.3, 2.0) if scheme.endswith("implicit across") else (0.3,):
        params = params_of(slip_length=slip, time_step=time_step)
        begin = still(SLIPPERY) if slip == 0.3 else (exact(SLIPPERY, slip) + 0.01, still(SLIPPERY)[1])
        found = run(begin, params, steps).velocity[0]
        # exp(-1.4 * 25) = 6e-16, and for a slip length of 2, at a rate of 0.45, 0.01 * 1e-5.
        limit = 1e-12 if slip < 2 else 1e-6
        assert jnp.max(jnp.abs(found - exact(SLIPPERY, slip))) < limit


def exact(place, slip):
    """Poiseuille flow with slip on both walls, u = G/(2 nu) (1 - y^2 + 2 length), and Couette flow likewise."""
    y = place.grid.axes[1].centers
    u = PARAMS["force"] / 2 * (1 - y**2 + 2 * slip) + PARAMS["upper"] * (1 + y + slip) / (2 + 2 * slip)
    return jnp.broadcast_to(jnp.asarray(u), place.grid.cells)


@on_every_method
def test_derivative_with_respect_to_the_slip_length_equals_central_differences(scheme):
    run = runner(SLIPPERY, scheme)
    waves = jax.tree.map(lambda f: 0.1 * f, noise(SLIPPERY.grid, 0))

    @jax.jit
    def bulk(params):
        state = run(waves, params, 20)
        return jnp.mean(state.velocity[0]) + jnp.sum(state.velocity[1] ** 2)

    params = params_of()
    derivative = jax.jacfwd(lambda slip: bulk(params | {"slip_length": slip}))(params["slip_length"])
    expected = central_difference(bulk, params, ["slip_length"])["slip_length"]
    # Differences of float64 numbers of about 1 over steps of 1e-5 are right to 1e-10 of them.
    assert derivative == pytest.approx(float(expected), rel=1e-7, abs=1e-10)
    assert abs(derivative) > 0.01


@pytest.mark.parametrize("scheme", ["adams_bashforth, implicit", "adams_bashforth"])
def test_slip_length_and_wall_that_change_in_time_keep_the_order_of_the_method(scheme):
    changing = NavierSlip(lambda params, time: params["slip_length"] * (1 + 0.5 * jnp.sin(9 * time)))
    place = channel((changing, "wall"), stretched=True)

    def boundary(params, time):
        return None, ((params["upper"] * jnp.sin(7 * time), 0.0), (0.0, 0.0))

    run = runner(place, scheme, boundary)
    runs = [run(still(place), params_of(time_step=0.4 / n), n).velocity[0] for n in (100, 200, 400)]
    changes = [float(jnp.max(jnp.abs(a - b))) for a, b in itertools.pairwise(runs)]
    # The next term is smaller by the rate of the change times the step, 9 * 0.004.
    assert np.log2(changes[0] / changes[1]) == pytest.approx(2, abs=0.1)


@on_every_method
def test_wind_over_a_film_drives_the_flow_of_its_stress(scheme):
    place = channel(("wall", Wind()), stretched=True)
    time_step = 0.1 if scheme == "adams_bashforth, implicit" else 0.004
    params = params_of(force=0.0, stress=0.4, viscosity=0.5, time_step=time_step)
    line = 0.8 * (1 + jnp.asarray(place.grid.axes[1].centers))
    begin = jnp.broadcast_to(line, place.grid.cells), jnp.zeros(place.grid.shape(1))
    state = runner(place, scheme, lambda p, t: no_motion(place))(begin, params, 50)
    # The slope 0.4/0.5 is exact on any grid.
    assert jnp.max(jnp.abs(state.velocity[0] - begin[0])) < 1e-13


@pytest.mark.parametrize("method", ["runge_kutta", "adams_bashforth"])
def test_rough_wall_carries_the_force_and_is_refused_by_implicit_friction_alone(method):
    place = channel((RoughWall(), RoughWall()))
    run = runner(place, method, lambda p, t: no_motion(place))
    u = run(still(place), params_of(), 6000).velocity[0]
    # Both walls carry the force 0.6 on a height of 2: 0.5 u^2 = 0.6.
    np.testing.assert_allclose(u[:, [0, -1]] ** 2, 1.2, rtol=1e-6)
    start, _ = stepper(equations(place, method, lambda p, t: no_motion(place), implicit=(0,)))
    assert jax.eval_shape(start, still(place), params_of())
    _, step = stepper(equations(place, method, lambda p, t: no_motion(place), implicit=(1,)))
    with pytest.raises(
        UserError, match=r"the lower side of axis y has a slope that is not linear.* leave 1 out of imp"
    ):
        jax.eval_shape(step, jax.eval_shape(start, still(place), params_of()), params_of())


@pytest.mark.parametrize("implicit", [(), (0, 1)])
def test_slab_cooled_through_one_side_has_its_linear_profile_and_derivative(implicit):
    place = domain((uneven_axis(7, 0.0, 1.0), periodic_axis(4, 1.0)), (WALLS, None))
    scalar = TransportedScalar(
        place,
        (("value", Cooled()), None),
        lambda params: params["diffusivity"],
        values=lambda params, time: ((1.0, 0.2), None),
    )
    start, step = stepper(Equations(place, lambda p: 0.1, fixed_time_step, scalar=scalar, implicit=implicit))

    @jax.jit
    def mean(params):
        begin = start(still(place), params, jnp.zeros(place.grid.cells))
        return jax.lax.fori_loop(0, 1500, lambda _, s: step(s, params), begin).scalar.mean(axis=1)

    params = {"diffusivity": jnp.asarray(0.5), "transfer": jnp.asarray(0.8), "time_step": jnp.asarray(0.008)}
    # T = 1 + slope x with -D slope = transfer (T(1) - 0.2).
    slope = -0.8 * 0.8 / (0.5 + 0.8)
    # The slowest mode, at a rate of 0.5 * 1.9^2, keeps 4e-10.
    np.testing.assert_allclose(mean(params), 1 + slope * place.grid.axes[0].centers, rtol=0, atol=1e-8)
    expected = central_difference(lambda p: jnp.sum(mean(p)), params, ["transfer"])["transfer"]
    found = jax.jacfwd(lambda transfer: jnp.sum(mean(params | {"transfer": transfer})))(params["transfer"])
    assert found == pytest.approx(float(expected), rel=1e-7)
