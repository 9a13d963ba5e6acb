"""Derivatives of the hopper through landings, beside central differences."""

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


STEPS = 32


def test_controls_of_32_steps_have_the_derivatives_of_central_differences():
    """It falls by 2 cm, lands and leaves the floor. Differences of 1e-4 rad change no contact and are exact to 1e-9.

    Larger ones, of 1e-3 rad, cross the edge between open, sticking and sliding contacts in some starts.
    """
    with jax.enable_x64(True):
        hopper = simkit.build("hopper")
        params = dict(hopper.params)
        params["initial_position"] = params["initial_position"].at[1].add(0.02)

        def end(controls):
            """Return what follows from controls (32, 3), and how many points touch in each step."""

            def step(state, control):
                touches = jnp.sum(jnp.any(state.memory.impulses.contact != 0, axis=1))
                return hopper.step(state, {**params, "control": control}), touches

            last, touching = jax.lax.scan(step, hopper.init(params, jax.random.key(0)), controls)
            return last.memory.position[0] + last.memory.velocity[1], touching

        noise = 0.1 * np.random.default_rng(0).normal(size=(STEPS, 3))
        controls = params["control"] + noise
        (_, touching), found = jax.jit(jax.value_and_grad(end, has_aux=True))(controls)
        assert 0 < np.count_nonzero(touching) < STEPS
        value, wanted = jax.jit(end), np.zeros((STEPS, 3))
        for place in np.ndindex(STEPS, 3):
            high, low = (value(controls.at[place].add(sign * 1e-4))[0] for sign in (1, -1))
            wanted[place] = (high - low) / 2e-4
        assert np.abs(found - wanted).max() < 1e-8 * np.abs(wanted).max()
    jax.clear_caches()
