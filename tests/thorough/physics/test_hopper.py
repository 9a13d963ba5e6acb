"""Derivatives of the hopper through a landing, beside central differences."""

import jax
import jax.numpy as jnp
import numpy as np

import simkit

# Of coordinates and rates: divided by 2 ms it changes speeds by so little that no contact opens.
SMALL = 1e-6


def test_a_step_in_which_the_foot_lands_has_the_derivatives_of_central_differences():
    """The foot is 10 um above the floor, and lands in the step. All numbers are compared to the largest, 1,300."""
    with jax.enable_x64(True):
        hopper = simkit.build("hopper")
        params = hopper.params

        def after(values):
            """Return coordinates and velocities after a step, from those before and controls, (15,)."""
            given = {"initial_position": values[:6], "initial_velocity": values[6:12]}
            state = hopper.init({**params, **given}, jax.random.key(0))
            memory = hopper.step(state, {**params, "control": values[12:]}).memory
            return jnp.concatenate([memory.position, memory.velocity])

        here = jnp.concatenate([params["initial_position"].at[1].add(1e-5), jnp.zeros(6), params["control"]])
        step, found = jax.jit(after), jax.jit(jax.jacfwd(after))(here)
        wanted = np.stack(
            [(step(here + shift) - step(here - shift)) / (2 * SMALL) for shift in SMALL * np.eye(15)], axis=1
        )
        assert np.abs(found - wanted).max() < 1e-8 * np.abs(wanted).max()
    jax.clear_caches()
