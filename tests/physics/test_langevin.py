"""Langevin dynamics: canonical distribution, diffusion, and velocity Verlet without friction."""

import functools

import jax
import jax.numpy as jnp
import pytest

from simkit.core.rollout import segment
from simkit.molecular.dynamics import langevin
from tests.molecular.dynamics.moving import oscillators


@functools.cache
def mean_squares(count, settle, steps):
    """Return the compiled ``params -> (<x^2>, <v^2>)`` over many oscillators and the steps after the first ones."""
    simulation = oscillators(langevin, count)

    def run(params, key):
        state = segment(simulation, settle)(simulation.init(params, key), params)

        def step(state, _):
            state = simulation.step(state, params)
            return state, (jnp.mean(state.position**2), jnp.mean(state.velocity**2))

        return jax.tree.map(jnp.mean, jax.lax.scan(step, state, None, length=steps)[1])

    return jax.jit(run)


@pytest.mark.parametrize("step", [0.2, 1.0, 1.9])
def test_positions_in_a_harmonic_well_are_exact_at_any_stable_time_step(x64, step):
    stiffness, mass, temperature = 3.0, 0.75, 0.4
    frequency = (stiffness / mass) ** 0.5
    values = {"stiffness": stiffness, "mass": mass, "temperature": temperature, "friction": 2.0}
    values |= {"time_step": step / frequency}
    params = oscillators(langevin, 1, **values).params
    position, velocity = mean_squares(10_000, 60, 200)(params, jax.random.key(1))
    # 20,000 components, each worth at least ten independent squares in 200 steps (20 relaxation times at the shortest
    # step): sqrt(2 / 200,000) = 0.0032 of relative standard deviation; four of them. The half steps of velocity Verlet
    # with friction around it would give 1 / (1 - (omega h)^2 / 4): 1.01, 1.33 and 10 times as much.
    assert float(position) == pytest.approx(temperature / stiffness, rel=0.013)
    # The velocities pay for it: T / m (1 - (omega h)^2 / 4).
    assert float(velocity) == pytest.approx(temperature / mass * (1 - step**2 / 4), rel=0.013)
