import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.diagnosis.measures import kinetic_energy
from simkit.flow.equations import explicit_terms
from simkit.flow.operators.differences import divergence, gradient
from simkit.flow.stepping.stepper import stepper
from tests.flow.flows import DOMAINS, over, solenoidal_noise, uniform_channel
from tests.flow.test_stepper import CHANNEL, difference, eddies, equations, flow


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


@pytest.mark.usefixtures("x64")
@over(DOMAINS)
def test_initial_pressure_makes_the_acceleration_solenoidal(place):
    velocity = solenoidal_noise(place.grid, 0)
    state = flow(place, "runge_kutta", velocity, 0, force=1.0)
    model = equations(place, "runge_kutta")
    params = {"viscosity": 0.02, "force": 1.0, "lower": 0.0, "upper": 0.0}
    terms = explicit_terms(velocity, (), model, params, jnp.zeros(()))
    acceleration = jax.tree.map(jnp.subtract, terms, gradient(state.pressure, place.grid))
    # Rounding of advection and friction, below 1e3, over cells above 0.05.
    assert jnp.max(jnp.abs(divergence(acceleration, place.grid))) < 1e-10


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
