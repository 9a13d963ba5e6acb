"""Viscosity as a field of the velocity: non-Newtonian fluids and turbulence models."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.flow.boundary.domain import domain, no_motion
from simkit.flow.boundary.ghost_layers import surround
from simkit.flow.equations import Equations
from simkit.flow.operators.diffusion import divergence_of_stress, squared_shear_rate
from simkit.flow.stepping.time_step import adaptive_time_step, fixed_time_step
from tests.flow.flows import DOMAINS, inner, noise, scalar_noise, uniform_channel
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


def still(place):
    return tuple(jnp.zeros(place.grid.shape(i)) for i in range(place.grid.dimension))


@every(["cavity"])
def test_friction_of_a_field_is_self_adjoint_and_dissipates_energy(name):
    place = domain(DOMAINS[name].grid.axes, DOMAINS[name].sides, "symmetric")
    grid = place.grid
    field = jnp.exp(scalar_noise(grid, 2))

    @jax.jit
    def products(u, v):
        around = (divergence_of_stress(surround(w, no_motion(place), place), field, place) for w in (u, v))
        friction, of_other = around
        return inner(v, friction, grid), inner(u, of_other, grid), inner(u, friction, grid)

    one, other, own = products(noise(grid, 0), noise(grid, 1))
    # Rounding of sums of up to 400 terms.
    assert one == pytest.approx(float(other), abs=1e-13 * abs(float(own)))
    assert own < 0


def test_friction_of_a_field_conserves_momentum():
    place = DOMAINS["periodic"]
    field = jnp.exp(scalar_noise(place.grid, 2))
    stress = jax.jit(lambda v: divergence_of_stress(surround(v, no_motion(place), place), field, place))
    for f in stress(noise(place.grid, 0)):
        assert abs(np.sum(f)) < 1e-11


def test_shear_rate_of_a_shear_flow_is_its_velocity_gradient():
    place = DOMAINS["stretched"]
    boundary = (None, ((-0.7, 0.0), (0.7, 0.0)))
    u = jnp.broadcast_to(jnp.asarray(0.7 * place.grid.axes[1].centers), place.grid.cells)
    found = jax.jit(lambda u: squared_shear_rate((u, jnp.zeros(place.grid.shape(1))), boundary, place))(u)
    np.testing.assert_allclose(found, 0.49, rtol=1e-12)


def test_adaptive_step_is_stable_at_the_largest_viscosity():
    place = uniform_channel((4, 8), 2.0)
    field = jnp.ones(place.grid.cells).at[1, 2].set(5.0)
    params = {"courant_number": 0.8, "time_step": 10.0, "viscosity": 5.0}
    steps = [
        Equations(place, viscosity, adaptive_time_step()).step_length(still(place), (), params, 0.0)
        for viscosity in (lambda velocity, params: field, 5.0, "viscosity", lambda params: params["viscosity"])
    ]
    assert steps[0] == pytest.approx(2.51 / 2 / 5 / (4 / 0.5**2 + 4 / 0.25**2), rel=1e-12)
    assert steps[1] == steps[2] == steps[3] == steps[0]


def one(velocity, params):
    return jnp.ones((4, 8))


@every(
    [
        (one, {"implicit": (1,)}, r"implicit friction needs a number; give implicit_viscosity"),
        (one, {"implicit": (1,), "implicit_viscosity": 1.0}, r"method 'runge_kutta' does not support implicit"),
        (one, {"implicit_viscosity": 1.0}, "implicit_viscosity is given, but the viscosity is one number, or no axis"),
        (0.1, {"implicit_viscosity": 1.0, "implicit": (1,)}, "implicit_viscosity is given"),
        (lambda a, b, c: 1.0, {}, "viscosity is a function of 3 arguments; give a number, the name of a parameter"),
        (None, {}, "viscosity = None is no viscosity; give a number"),
    ]
)
def test_unsupported_viscosities_are_refused_by_name(viscosity, options, message):
    with pytest.raises(UserError, match=message) as caught:
        Equations(uniform_channel((4, 8)), viscosity, fixed_time_step, **options)
    assert "\n" not in str(caught.value)
