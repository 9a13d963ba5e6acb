"""Derivatives of the hopper through a landing and through a stance, beside central differences."""

import jax
import jax.numpy as jnp
import numpy as np

import simkit

# Of coordinates and rates: 1e-7 / 2 ms changes a speed by less than a step of gravity, so that no contact opens.
SMALL = 1e-7


def test_a_step_and_the_gradient_of_32_actions_equal_central_differences():
    """The foot is 10 um above the floor, and lands in the step."""
    with jax.enable_x64(True):
        hopper = simkit.build("hopper")
        params = hopper.params
        start = params["initial_position"].at[1].add(1e-5)

        def after(values):
            """Return coordinates and velocities after a step, from those before and controls, (15,)."""
            state = hopper.init(
                {**params, "initial_position": values[:6], "initial_velocity": values[6:12]}, jax.random.key(0)
            )
            memory = hopper.step(state, {**params, "control": values[12:]}).memory
            return jnp.concatenate([memory.position, memory.velocity]), jnp.sum(memory.impulses.contact[:, 2] > 0)

        here = jnp.concatenate([start, jnp.zeros(6), params["control"]])
        step, jacobian = jax.jit(after), jax.jit(jax.jacfwd(after, has_aux=True))
        found, landed = jacobian(here)
        assert landed > 0
        shifts = SMALL * np.eye(15)
        wanted = np.stack([(step(here + a)[0] - step(here - a)[0]) / (2 * SMALL) for a in shifts], axis=1)
        assert np.abs(found - wanted).max() < 1e-8 * np.abs(wanted).max()

        def far(actions):
            """Return how far the hip has come after 32 steps."""
            state = hopper.init({**params, "initial_position": start}, jax.random.key(0))

            def one(state, action):
                return hopper.step(state, {**params, "control": action, "control_amplitude": jnp.zeros(3)}), None

            return jax.lax.scan(one, state, actions)[0].memory.position[0]

        actions = jnp.tile(params["control"], (32, 1))
        gradient, value = jax.jit(jax.grad(far))(actions), jax.jit(far)
        way = jnp.asarray(np.random.default_rng(0).normal(size=(32, 3)))
        # A change of 1e-4 rad of all servos moves the hip by about 1e-7 m, and has a truncation error of 1e-8 of that.
        ends = [value(actions + length * way) for length in (-2e-4, -1e-4, 1e-4, 2e-4)]
        difference = (8 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / 12e-4
        np.testing.assert_allclose(jnp.sum(gradient * way), difference, rtol=1e-6)
        assert np.abs(gradient).min() > 0
    jax.clear_caches()
