"""Velocity Verlet: second order, reversible, without drift, and its derivatives."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.rollout import segment
from simkit.molecular.dynamics import velocity_verlet
from tests.molecular.dynamics.moving import oscillators, tetramer

KEY = 0


@functools.cache
def program():
    """Return the tetramer and the compiled ``(state, params, steps) -> state`` of any number of steps."""
    simulation = tetramer()

    def run(state, params, steps):
        return jax.lax.fori_loop(0, steps, lambda _, state: simulation.step(state, params), state)

    return simulation, jax.jit(simulation.init), jax.jit(run)


def test_error_falls_with_the_square_of_the_time_step(x64):
    (simulation, init, run), ends = program(), []
    for steps in (100, 200, 400):
        params = {**simulation.params, "time_step": jnp.asarray(1.0 / steps)}
        ends.append(run(init(params, jax.random.key(KEY)), params, steps))
    for name in ("position", "velocity"):
        coarse, middle, fine = (np.asarray(getattr(end, name)) for end in ends)
        order = np.log2(np.linalg.norm(coarse - middle) / np.linalg.norm(middle - fine))
        assert 1.95 < order < 2.05, name


def test_motion_is_reversible(x64):
    simulation, init, run = program()
    start = init(simulation.params, jax.random.key(KEY))
    there = run(start, simulation.params, 400)
    back = run(dataclasses.replace(there, velocity=-there.velocity), simulation.params, 400)
    assert float(jnp.abs(there.position - start.position).max()) > 0.1
    # 800 steps of round-off 1e-16 each, of which neighbors that attract each other multiply some by a few.
    np.testing.assert_allclose(back.position, start.position, rtol=0, atol=1e-12)
    np.testing.assert_allclose(back.velocity, -start.velocity, rtol=0, atol=1e-12)


def test_frequency_is_that_of_the_harmonic_well_to_second_order(x64):
    # Velocity Verlet turns by arccos(1 - (omega h)^2 / 2) in each step, exactly.
    simulation = oscillators(velocity_verlet, 1, stiffness=4.0, mass=1.0, time_step=0.1)
    start = simulation.init(simulation.params, jax.random.key(KEY))
    start = dataclasses.replace(start, position=jnp.array([[1.0, 0.5]]), velocity=jnp.zeros((1, 2)))
    start = dataclasses.replace(start, force=-4.0 * start.position)
    steps = 1000
    end = jax.jit(segment(simulation, steps))(start, simulation.params)
    angle = steps * np.arccos(1 - (2.0 * 0.1) ** 2 / 2)
    # A thousand roundings.
    np.testing.assert_allclose(end.position[0], np.cos(angle) * np.array([1.0, 0.5]), rtol=0, atol=1e-12)
