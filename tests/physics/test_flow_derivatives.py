"""Derivatives through any flow against central differences, and parameters whose change compiles nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from simkit.flow.boundary.domain import domain, prescribe
from simkit.flow.diagnosis.measures import kinetic_energy
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import adaptive_time_step, fixed_time_step
from tests.flow.flows import solenoidal_noise
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

STEPS = 6
# Through the left side flows a profile, out of the right one whatever comes; the upper wall moves.
PLACE = domain((bounded_axis(8, 2.0), bounded_axis(7, 1.0, 0.0, 1.0)), (("inflow", "outflow"), ("free_slip", "wall")))
HEIGHTS = PLACE.grid.axes[1].centers
PARAMS = {
    "viscosity": 0.03,
    "force": 0.4,
    "wall_velocity": 0.7,
    "amplitude": 1.0,
    "profile": 1 + 0.5 * np.sin(2 * HEIGHTS + 0.3),
    "initial": 0.2,
    "time_step": 0.02,
    "courant_number": 0.5,
}
SCHEMES = {
    "Runge-Kutta": {},
    "Runge-Kutta, implicit, adaptive": {"implicit": (1,), "adaptive": True},
    "Adams-Bashforth": {"method": "adams_bashforth"},
    "Adams-Bashforth, implicit": {"method": "adams_bashforth", "implicit": (0, 1)},
    "Adams-Bashforth, adaptive": {"method": "adams_bashforth", "adaptive": True},
}


def measure(*, adaptive=False, method="runge_kutta", implicit=()):
    """A number that depends on all parameters through a few steps of a nonlinear flow."""

    def viscosity(params):
        return params["viscosity"]

    def boundary(params, time):
        entering = (params["amplitude"] * params["profile"])[None, :], 0.0
        return (entering, (0.0, 0.0)), ((0.0, 0.0), (params["wall_velocity"], 0.0))

    equations = Equations(
        domain=PLACE,
        viscosity=viscosity,
        time_step=adaptive_time_step() if adaptive else fixed_time_step,
        boundary=boundary,
        force=lambda velocity, scalar, params, time: (params["force"] * jnp.cos(9 * time), params["force"]),
        method=method,
        implicit=implicit,
    )
    start, step = stepper(equations)
    direction = solenoidal_noise(PLACE.grid, 5)

    def run(params):
        velocity = tuple(params["initial"] * f for f in direction)
        velocity = prescribe((velocity[0] + params["amplitude"], velocity[1]), boundary(params, 0.0), PLACE)
        state = start(velocity, params)
        state, _ = jax.lax.scan(lambda state, _: (step(state, params), None), state, None, length=STEPS)
        return kinetic_energy(state.velocity, PLACE.grid) + state.velocity[1][3, 4] + state.pressure[4, 2] / 10

    return run


@every(["Runge-Kutta", "Adams-Bashforth, adaptive"])
def test_derivatives_equal_central_differences(scheme):
    run = measure(**SCHEMES[scheme])
    # A longest step that none of the others reaches.
    longest = {"time_step": 0.1} if SCHEMES[scheme].get("adaptive") else {}
    params = jax.tree.map(jnp.asarray, PARAMS | longest)
    derivatives = jax.jit(jax.grad(run))(params)
    assert len(set(map(float, derivatives["profile"]))) == len(HEIGHTS)
    # What sets the time step: the flow, friction (for the last scheme), or the parameter alone.
    assert (derivatives["courant_number"] != 0) == (scheme == "Runge-Kutta, implicit, adaptive")
    assert (derivatives["time_step"] != 0) == (not SCHEMES[scheme].get("adaptive"))

    flat, unravel = ravel_pytree(params)
    steps = 1e-3 * np.maximum(np.abs(np.asarray(flat)), 0.02)
    offsets = np.concatenate([k * np.diag(steps) for k in (-2, -1, 1, 2)])
    values = np.asarray(jax.jit(jax.vmap(lambda offset: run(unravel(flat + offset))))(jnp.asarray(offsets)))
    lowest, low, high, highest = values.reshape(4, -1)
    # Of fourth order: the step, 1e-3 of each parameter, leaves 1e-12 of it, and rounding 1e-15 / 2e-5.
    expected = (8 * (high - low) - (highest - lowest)) / (12 * steps)
    np.testing.assert_allclose(ravel_pytree(derivatives)[0], expected, rtol=1e-6, atol=1e-9)
