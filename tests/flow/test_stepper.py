import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.accelerations import explicit_terms
from simkit.flow.boundary.domain import no_motion
from simkit.flow.boundary.ghost_layers import surround
from simkit.flow.diagnosis.measures import kinetic_energy
from simkit.flow.eddies import random_eddies
from simkit.flow.equations import Equations
from simkit.flow.operators.differences import divergence, gradient
from simkit.flow.operators.diffusion import laplacian
from simkit.flow.stepping.stepper import FlowState, stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.flows import CHANNELS, DOMAINS, SCHEMES, on_every_domain, solenoidal_noise, uniform_channel

on_every_scheme = pytest.mark.parametrize("scheme", SCHEMES)
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


def difference(a: FlowState, b: FlowState) -> float:
    return max(float(jnp.max(jnp.abs(x - y))) for x, y in zip(a.velocity, b.velocity, strict=True))


@on_every_scheme
@pytest.mark.parametrize("walls", [(0.0, 0.0), (-0.5, 1.0)], ids=["walls at rest", "moving walls"])
def test_velocity_has_the_order_of_its_method_in_time(scheme, walls, x64):
    velocity = eddies(CHANNEL)
    # With implicit friction, of second order, Runge-Kutta's third-order error still dominates at these steps.
    least, most = {"runge_kutta": (3, 3), "runge_kutta, implicit": (2, 3)}.get(scheme, (2, 2))

    def after(steps):
        return flow(CHANNEL, scheme, velocity, steps, time_step=0.5 / steps, force=0.06, lower=walls[0], upper=walls[1])

    runs = [after(steps) for steps in (40, 80, 160)]
    order = np.log2(difference(runs[0], runs[1]) / difference(runs[1], runs[2]))
    # The next term of the error is smaller by the largest rate times the step: eddies turn at a rate of about 5, and
    # 5 * 0.5/80 = 0.03 shifts the measured order by less than log2(1 + 0.03).
    assert least - 0.05 < order < most + 0.05


# The pressure belongs to the middle of the last stage: half a step before the end, or a sixth.
@pytest.mark.parametrize(("scheme", "before"), [("adams_bashforth, implicit", 1 / 2), ("runge_kutta, implicit", 1 / 6)])
def test_pressure_is_second_order_in_time(scheme, before, x64):
    velocity = eddies(CHANNEL)

    def at_half(steps):
        params = {"time_step": 0.5 / steps, "force": 0.06, "upper": 1.0}
        early, late = (flow(CHANNEL, scheme, velocity, n, **params).pressure for n in (steps, steps + 1))
        return (1 - before) * early + before * late

    runs = [at_half(steps) for steps in (40, 80, 160)]
    changes = [float(jnp.max(jnp.abs(a - b))) for a, b in itertools.pairwise(runs)]
    # As for the velocity.
    assert np.log2(changes[0] / changes[1]) == pytest.approx(2, abs=0.05)


@on_every_domain
def test_initial_pressure_makes_the_acceleration_solenoidal(place, x64):
    velocity = solenoidal_noise(place.grid, 0)
    state = flow(place, "runge_kutta", velocity, 0, force=1.0)
    model = equations(place, "runge_kutta")
    params = {"viscosity": 0.02, "force": 1.0, "lower": 0.0, "upper": 0.0}
    terms = explicit_terms(velocity, (), model, params, jnp.zeros(()))
    acceleration = jax.tree.map(jnp.subtract, terms, gradient(state.pressure, place.grid))
    # Rounding of advection and friction, below 1e3, over cells above 0.05.
    assert jnp.max(jnp.abs(divergence(acceleration, place.grid))) < 1e-10


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("scheme", ["runge_kutta", "adams_bashforth, implicit"])
@on_every_domain
def test_divergence_is_round_off_in_every_cell_after_any_number_of_steps(place, scheme, precision, x64):
    dtype = jnp.dtype(precision)
    velocity = jax.tree.map(lambda w: (0.2 * w).astype(dtype), solenoidal_noise(place.grid, 1))
    width = min(a.widths.min() for a in place.grid.axes)
    for steps in (0, 1, 300):
        state = flow(place, scheme, velocity, steps, viscosity=0.01, time_step=0.005, force=0.01, upper=1.0)
        assert state.velocity[0].dtype == dtype
        # Differences of velocities of size 1, each known to eps, over cells of width w; up to six faces per cell and a
        # few roundings each. It does not grow with the number of steps, since every step projects the whole velocity.
        assert jnp.max(jnp.abs(divergence(state.velocity, place.grid))) < 20 * jnp.finfo(dtype).eps / width


@pytest.mark.parametrize(("scheme", "order"), [("runge_kutta", 3), ("adams_bashforth", 2)])
@pytest.mark.parametrize("name", ["stretched", "periodic", "cavity", "box 3-D"])
def test_kinetic_energy_is_conserved_without_viscosity_but_for_the_time_step(name, scheme, order, x64):
    place = DOMAINS[name]
    velocity = solenoidal_noise(place.grid, 0)

    def gain(steps):
        state = flow(place, scheme, velocity, steps, viscosity=0.0, time_step=0.01 / steps)
        return float(kinetic_energy(state.velocity, place.grid) / kinetic_energy(velocity, place.grid)) - 1

    # The semi-discrete equations conserve energy exactly, so what is gained is the error of the scheme.
    assert gain(40) / gain(20) == pytest.approx(2.0**-order, rel=0.2)
    assert abs(gain(40)) < 1e-3


@on_every_scheme
def test_kinetic_energy_decays_by_viscosity(scheme, x64):
    velocity = eddies(CHANNEL)
    states = [flow(CHANNEL, scheme, velocity, steps) for steps in range(0, 100, 20)]
    energies = [float(kinetic_energy(state.velocity, CHANNEL.grid)) for state in states]
    assert energies == sorted(energies, reverse=True)
    assert energies[-1] < 0.9 * energies[0]


@pytest.mark.parametrize("scheme", ["runge_kutta, implicit", "adams_bashforth, implicit"])
def test_very_viscous_flow_is_stable_at_any_time_step(scheme, x64):
    # Here viscosity * time_step/dy^2 = 36000; an explicit scheme bears 1/4.
    state = flow(CHANNEL, scheme, eddies(CHANNEL), 200, viscosity=1e3, time_step=1.0)
    assert kinetic_energy(state.velocity, CHANNEL.grid) < 1


def test_impulsively_started_wall_leaves_no_oscillation(x64):
    walls = uniform_channel((4, 64), 1.0)
    rest = tuple(jnp.zeros(walls.grid.shape(i)) for i in range(2))
    for steps in range(1, 6):
        state = flow(walls, "adams_bashforth, implicit", rest, steps, viscosity=1.0, upper=1.0)
        profile = state.velocity[0][0]
        # From the lower wall to the moving one the exact velocity grows monotonically. Steps of Crank-Nicolson's kind
        # alone would overshoot: viscosity * time_step/dy^2 = 10, where the kink of the start flips its sign each step.
        assert jnp.all(jnp.diff(profile) > 0)
        assert profile[-1] < 1


def test_steps_of_changing_length_are_of_second_order(x64):
    velocity = eddies(CHANNEL)

    def after(steps):
        lengths = 0.5 / steps * (1 + 0.5 * jnp.sin(2 * jnp.pi * (jnp.arange(steps) + 0.5) / steps))
        model = equations(CHANNEL, "adams_bashforth")
        start, step = stepper(model)
        params = {"viscosity": 0.02, "force": 0.06, "lower": 0.0, "upper": 0.0}
        state = start(velocity, params | {"time_step": lengths[0]})
        state, _ = jax.lax.scan(lambda s, h: (step(s, params | {"time_step": h}), None), state, lengths)
        return state

    runs = [jax.jit(after, static_argnums=0)(steps) for steps in (40, 80, 160)]
    assert difference(runs[0], runs[1]) > 0
    # As above; a first-order error would show as 1.
    assert np.log2(difference(runs[0], runs[1]) / difference(runs[1], runs[2])) == pytest.approx(2, abs=0.1)


def test_time_has_no_rounding_error_that_grows():
    state = flow(uniform_channel((4, 4)), "adams_bashforth", eddies(uniform_channel((4, 4)), jnp.float32), 20000)
    # The sum of 20000 numbers of float32 would be off by up to 1e-3 of itself; compensated, by two roundings.
    assert float(state.time[0]) == pytest.approx(20000 * float(jnp.float32(0.01)), rel=2.5e-7)


@pytest.mark.parametrize("method", ["runge_kutta", "adams_bashforth"])
def test_held_flow_rate_is_exact_and_its_drive_balances_the_friction(method, x64):
    place = CHANNELS["stretched"]
    model = dataclasses.replace(equations(place, method), force=None, flow_rate=lambda params, time: params["rate"])
    start, step = stepper(model)
    params = {"viscosity": 0.5, "time_step": 2e-3, "rate": 0.7, "lower": 0.0, "upper": 0.0}
    params = jax.tree.map(jnp.asarray, params)
    rest = tuple(jnp.zeros(place.grid.shape(i)) for i in range(2))
    state = jax.jit(lambda: jax.lax.fori_loop(0, 4000, lambda _, s: step(s, params), start(rest, params)))()
    u = state.velocity[0]
    heights = place.grid.axes[1].widths
    # The mean of 12 * 17 numbers, rounded.
    assert jnp.sum(u * heights) / 24 == pytest.approx(0.7, rel=1e-13)
    friction = -0.5 * jnp.sum(laplacian(surround(state.velocity, no_motion(place), place), place)[0] * heights) / 24
    # What is left of the start decays as exp(-pi^2/4 nu t) = 5e-5 times the plug's friction, squared by its symmetry.
    assert state.drive == pytest.approx(float(friction), rel=1e-3)
    # Poiseuille: G = 3 nu U, but for the second-order error of 17 uneven cells.
    assert state.drive == pytest.approx(3 * 0.5 * 0.7, rel=0.02)
