"""Viscosity as a field of the velocity: non-Newtonian fluids and turbulence models."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import no_motion, prescribe
from simkit.flow.diagnosis.statistics import ChannelStatistics
from simkit.flow.equations import Equations, explicit_terms
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.direct_forcing import DirectForcing
from simkit.flow.obstacles.immersed_boundary import ImmersedBoundary
from simkit.flow.obstacles.shapes import ball
from simkit.flow.operators.differences import divergence, gradient
from simkit.flow.operators.diffusion import squared_shear_rate
from simkit.flow.solvers.pressure import pressure_solver
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.differences import central_difference
from tests.flow.flows import DOMAINS, noise, solenoidal_noise, uniform_channel
from tests.flow.test_operators import one, still
from tests.flow.test_sides import DUCTS, profile
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

SCHEMES = {
    "runge_kutta": {"method": "runge_kutta"},
    "adams_bashforth": {"method": "adams_bashforth"},
    "adams_bashforth, implicit": {"method": "adams_bashforth", "implicit": (0, 1), "implicit_viscosity": "bound"},
    "adams_bashforth, implicit across": {"method": "adams_bashforth", "implicit": (1,), "implicit_viscosity": "bound"},
}


def params_of(**values):
    return {name: jnp.asarray(value) for name, value in values.items()}


def power_law(place):
    """Nu = (shear rate)^(n - 1), bounded where there is no shear."""

    def viscosity(velocity, params):
        rate = squared_shear_rate(velocity, no_motion(place), place)
        return (rate + params["least_rate"] ** 2) ** ((params["exponent"] - 1) / 2)

    return viscosity


@functools.cache
def power_law_flow(cells, scheme):
    """``run(velocity, params, steps)`` of the flow that a unit force drives between two walls."""
    place = uniform_channel((4, cells), 2.0)
    start, step = stepper(
        Equations(
            place,
            power_law(place),
            fixed_time_step,
            force=lambda velocity, scalar, params, time: (params["force"], 0.0),
            **SCHEMES[scheme],
        )
    )

    @jax.jit
    def run(velocity, params, steps):
        return jax.lax.fori_loop(0, steps, lambda _, s: step(s, params), start(velocity, params)).velocity

    return place, run


def exact_power_law(y, n=0.5):
    """Poiseuille flow of a power-law fluid under a unit force: n/(n + 1) (1 - |y|^(1 + 1/n))."""
    return n / (n + 1) * (1 - np.abs(y) ** (1 + 1 / n))


def test_power_law_fluid_has_its_poiseuille_profile_to_second_order():
    errors = []
    for cells in (16, 32, 64):
        place, run = power_law_flow(cells, "adams_bashforth, implicit")
        # The bound on the viscosity, 1e-4^(-1/2), bends the profile by 1e-6. Steps are 800 to 12,000 times as long as
        # explicit friction of that viscosity would bear.
        params = params_of(exponent=0.5, least_rate=1e-4, force=1.0, bound=100.0, time_step=0.03)
        y = place.grid.axes[1].centers
        begin = jnp.broadcast_to(jnp.asarray(exact_power_law(y)), place.grid.cells), still(place)[1]
        u, v = run(begin, params, 1800)
        again = run((u, v), params, 200)[0]
        assert jnp.max(jnp.abs(again - u)) < 1e-6
        errors.append(float(jnp.max(jnp.abs(u[0] - exact_power_law(y)))))
    # The viscosity on the wall, that of the nearest cells, and the mean of two cells each leave up to h^2/4.
    assert errors[1] < 2 * (2 / 32) ** 2 / 4
    # The next term, of third order, takes 1.5 h of it away: orders of 1.83 and 1.92.
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert 1.8 < orders[0] < orders[1] < 2
    assert orders[1] > 1.9


@pytest.mark.parametrize("scheme", ["runge_kutta", "adams_bashforth, implicit"])
def test_derivative_with_respect_to_the_exponent_equals_central_differences(scheme):
    place, run = power_law_flow(8, scheme)
    waves = jax.tree.map(lambda f: 0.1 * f, solenoidal_noise(place.grid, 0))
    params = params_of(exponent=0.7, least_rate=0.1, force=1.0, bound=2.0, time_step=0.003)

    @jax.jit
    def flow_rate(params):
        return jnp.mean(run(waves, params, 40)[0])

    expected = central_difference(flow_rate, params, ["exponent"])["exponent"]
    found = jax.jacfwd(lambda n: flow_rate(params | {"exponent": n}))(params["exponent"])
    assert found == pytest.approx(float(expected), rel=1e-7)
    assert abs(found) > 1e-4


def test_direct_forcing_supports_a_field_and_the_immersed_boundary_refuses_it():
    place, center = uniform_channel((12, 12), 2.0), (0.9, 0.1)
    bodies = {"body": Body(lambda params: ball(center, 0.5), lambda params: center, points=16)}
    body = DirectForcing(place, bodies)
    params, velocity = params_of(time_step=0.002), jax.tree.map(lambda f: 0.1 * f, solenoidal_noise(place.grid, 0))
    loads = []
    for viscosity in (0.05, lambda velocity, params: jnp.full(place.grid.cells, 0.05)):
        start, step = stepper(Equations(place, viscosity, fixed_time_step, obstacle=body, method="adams_bashforth"))
        loads.append(jax.jit(lambda s=start, t=step: t(s(velocity, params), params).load)())
    assert jnp.max(jnp.abs(loads[0])) > 1e-3
    np.testing.assert_allclose(loads[1], loads[0], rtol=1e-10, atol=1e-12)
    immersed = ImmersedBoundary(place, bodies, 0.05)
    with pytest.raises(UserError, match="an immersed boundary does not support a viscosity that varies; choose"):
        immersed.check_equations(Equations(place, one, fixed_time_step))


@every(["cavity", "uneven"])
def test_friction_of_a_uniform_field_is_that_of_its_value(name):
    place = (DOMAINS | DUCTS)[name]
    boundary = profile(place)[1] if name in DUCTS else no_motion(place)
    velocity = jax.jit(lambda: solenoidal(prescribe(noise(place.grid, 0), boundary, place), place))()
    found = []
    for viscosity in (0.3, lambda velocity, params: jnp.full(place.grid.cells, 0.3)):
        model = Equations(place, viscosity, fixed_time_step, boundary=lambda params, time: boundary)
        found.append(jax.jit(lambda v, model=model: explicit_terms(v, (), model, {}, jnp.zeros(())))(velocity))
    for a, b in zip(*found, strict=True):
        # Rounding of differences of numbers of about 3 over the square of cells above 0.05.
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11)


def solenoidal(velocity, place):
    pressure = pressure_solver(place.grid)(divergence(velocity, place.grid))
    return jax.tree.map(jnp.subtract, velocity, gradient(pressure, place.grid))


def test_invalid_viscosities_are_refused_when_they_are_used():
    place = uniform_channel((4, 8))
    for viscosity, message in (
        ("viscositi", r"viscosity = 'viscositi' is unknown; did you mean 'viscosity'"),
        (lambda velocity, params: velocity[1], r"viscosity has shape \(4, 9\); give one number"),
    ):
        with pytest.raises(UserError, match=message):
            explicit_terms(
                still(place), (), Equations(place, viscosity, fixed_time_step), {"viscosity": 1.0}, jnp.zeros(())
            )
    with pytest.raises(UserError, match="the balance of a channel's statistics needs a uniform viscosity, not a f"):
        ChannelStatistics(place, one).numbers({}, {})
