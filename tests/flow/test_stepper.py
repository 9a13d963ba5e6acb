import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.boundary.domain import no_motion
from simkit.flow.boundary.ghost_layers import surround
from simkit.flow.diagnosis.measures import kinetic_energy
from simkit.flow.eddies import random_eddies
from simkit.flow.equations import Equations
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.direct_forcing import DirectForcing
from simkit.flow.obstacles.shapes import ball
from simkit.flow.operators.differences import divergence
from simkit.flow.operators.diffusion import laplacian
from simkit.flow.scalar import TransportedScalar
from simkit.flow.stepping.stepper import FlowState, stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.flows import CHANNELS, DOMAINS, SCHEMES, solenoidal_noise, uniform_channel
from tests.tables import every

CHANNEL = uniform_channel((16, 12), 4.0)


def equations(place, scheme, **options) -> Equations:
    boundary = None
    if place.sides[0] is None and place.sides[1] is not None:

        def boundary(params, time):
            rest = (0.0,) * (place.grid.dimension - 1)
            sides = ((params["lower"], *rest), (params["upper"], *rest))
            return (None, sides, *place.sides[2:])

    return Equations(
        domain=place,
        viscosity=lambda params: params["viscosity"],
        time_step=fixed_time_step,
        boundary=boundary,
        force=lambda velocity, scalar, params, time: (params["force"], *(0.0,) * (place.grid.dimension - 1)),
        **SCHEMES[scheme] | options,
    )


@functools.partial(jax.jit, static_argnames=("place", "scheme"))
def run(place, scheme, velocity, params, steps):
    """The state after some steps."""
    start, step = stepper(equations(place, scheme))
    return jax.lax.fori_loop(0, steps, lambda _, state: step(state, params), start(velocity, params))


def flow(place, scheme, velocity, steps, **params) -> FlowState:
    defaults = {"viscosity": 0.02, "time_step": 0.01, "force": 0.0, "lower": 0.0, "upper": 0.0}
    dtype = velocity[0].dtype
    return run(place, scheme, velocity, {n: jnp.asarray(x, dtype) for n, x in (defaults | params).items()}, steps)


def eddies(place, dtype=jnp.float64):
    return random_eddies(place.grid, jax.random.key(0), dtype)


@pytest.mark.usefixtures("x64")
@every([("cavity", "runge_kutta", "float32")])
def test_divergence_is_round_off_in_every_cell_after_any_number_of_steps(name, scheme, precision):
    place, dtype = DOMAINS[name], jnp.dtype(precision)
    velocity = jax.tree.map(lambda w: (0.2 * w).astype(dtype), solenoidal_noise(place.grid, 1))
    width = min(a.widths.min() for a in place.grid.axes)
    for steps in (0, 1, 300):
        state = flow(place, scheme, velocity, steps, viscosity=0.01, time_step=0.005, force=0.01, upper=1.0)
        assert state.velocity[0].dtype == dtype
        # Differences of velocities of size 1, each known to eps, over cells of width w; up to six faces per cell and a
        # few roundings each. It does not grow with the number of steps, since every step projects the whole velocity.
        assert jnp.max(jnp.abs(divergence(state.velocity, place.grid))) < 20 * jnp.finfo(dtype).eps / width


@pytest.mark.usefixtures("x64")
@every(["adams_bashforth, implicit"])
def test_kinetic_energy_decays_by_viscosity(scheme):
    velocity = eddies(CHANNEL)
    states = [flow(CHANNEL, scheme, velocity, steps) for steps in range(0, 100, 20)]
    energies = [float(kinetic_energy(state.velocity, CHANNEL.grid)) for state in states]
    assert energies == sorted(energies, reverse=True)
    assert energies[-1] < 0.9 * energies[0]


@pytest.mark.usefixtures("x64")
@every(["adams_bashforth, implicit"])
def test_very_viscous_flow_is_stable_at_any_time_step(scheme):
    # Here viscosity * time_step/dy^2 = 36000; an explicit scheme bears 1/4.
    state = flow(CHANNEL, scheme, eddies(CHANNEL), 200, viscosity=1e3, time_step=1.0)
    assert kinetic_energy(state.velocity, CHANNEL.grid) < 1


@pytest.mark.usefixtures("x64")
@every(["adams_bashforth"])
def test_held_flow_rate_is_exact_and_its_drive_balances_the_friction(method):
    place = CHANNELS["stretched"]
    model = dataclasses.replace(equations(place, method), force=None, flow_rate=lambda params, time: params["rate"])
    start, step = stepper(model)
    params = {"viscosity": 0.5, "time_step": 2e-3, "rate": 0.7, "lower": 0.0, "upper": 0.0}
    params = jax.tree.map(jnp.asarray, params)
    rest = tuple(jnp.zeros(place.grid.shape(i)) for i in range(2))
    state = jax.jit(lambda: jax.lax.fori_loop(0, 4000, lambda _, s: step(s, params), start(rest, params)))()
    u, heights = np.asarray(state.velocity[0]), place.grid.axes[1].widths
    # The mean of 12 * 17 numbers, rounded.
    assert np.sum(u * heights) / 24 == pytest.approx(0.7, rel=1e-13)
    around = jax.jit(lambda v: laplacian(surround(v, no_motion(place), place), place)[0])(state.velocity)
    friction = -0.5 * np.sum(around * heights) / 24
    # What is left of the start decays as exp(-pi^2/4 nu t) = 5e-5 times the plug's friction, squared by its symmetry.
    assert state.drive == pytest.approx(float(friction), rel=1e-3)
    # Poiseuille: G = 3 nu U, but for the second-order error of 17 uneven cells.
    assert state.drive == pytest.approx(3 * 0.5 * 0.7, rel=0.02)


def warm(place):
    """A scalar that diffuses between sides of value 0 and 1."""
    sides = tuple(pair and ("value", "value") for pair in place.sides)
    values = tuple(pair and (0.0, 1.0) for pair in place.sides)
    return TransportedScalar(place, sides, lambda params: params["viscosity"], lambda params, time: values)


BOX = DOMAINS["channel 3-D"]
DISK = Body(lambda params: ball((1.5, 0.0), 0.5), lambda params: (1.5, 0.0))
# Steps of different kinds: of the even channel the eigenvectors are even and odd, and those of v are odd in number.
KINDS = {
    "friction along both axes": (CHANNELS["even"], "adams_bashforth, implicit", {}),
    "three dimensions, a scalar": (BOX, "adams_bashforth, implicit across", {"scalar": warm(BOX)}),
    "explicit stages, upwind": (DOMAINS["slip"], "runge_kutta", {"scheme": "upwind"}),
    "a body": (CHANNELS["even"], "runge_kutta", {"obstacle": DirectForcing(CHANNELS["even"], {"disk": DISK})}),
}
