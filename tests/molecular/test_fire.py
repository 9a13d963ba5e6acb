"""FIRE on problems with known answers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import fire


def relax(force, position, *, length=1.0, force_scale=1.0, tolerance=1e-12, steps=2000):
    """Return FIRE's state when no force exceeds ``tolerance * force_scale``."""

    def unfinished(state):
        return (fire.largest_norm(state.force) > tolerance * force_scale) & (state.iteration < steps)

    def step(state):
        return fire.step(state, force, length=length, force_scale=force_scale)

    return jax.jit(lambda x: jax.lax.while_loop(unfinished, step, fire.start(x, force)))(position)


def anisotropic_well(position):
    return -jnp.array([1.0, 0.05]) * position


def test_fire_finds_the_minimum_of_a_well(x64):
    state = relax(anisotropic_well, jnp.array([[1.0, -2.0], [0.5, 0.7]]))
    assert int(state.iteration) < 1000
    # The softest spring, 0.05, turns the tolerance 1e-12 into a distance.
    np.testing.assert_allclose(state.position, 0, atol=1e-12 / 0.05)


@pytest.mark.parametrize(("length", "energy"), [(2.0**10, 2.0**-30), (2.0**-40, 2.0**-7)])
def test_iterates_scale_with_the_units(x64, length, energy):
    def scaled_well(position):
        return energy / length * anisotropic_well(position / length)

    position = jnp.array([[1.0, -2.0], [0.5, 0.7]])
    reference = relax(anisotropic_well, position)
    state = relax(scaled_well, length * position, length=length, force_scale=energy / length)
    # Powers of two scale without rounding, so the iterates are the same numbers.
    assert int(state.iteration) == int(reference.iteration)
    np.testing.assert_array_equal(state.position / length, reference.position)


def test_a_steep_start_does_not_fly_apart(x64):
    def steep(position):
        # A twelfth-power repulsion from the origin at a hundredth of its range, inside a weak well.
        distance = jnp.linalg.norm(position, axis=-1, keepdims=True)
        return position / distance**14 - 0.1 * position

    before = fire.start(jnp.array([[0.01, 0.0]]), steep)
    assert float(fire.largest_norm(before.force)) > 1e25
    first = fire.step(before, steep, length=1.0, force_scale=1.0)
    moved = float(fire.largest_norm(first.position - before.position))
    # The clamp, and one rounding.
    assert moved <= fire.DEFAULTS.maximum_displacement * (1 + 1e-14)
    state = relax(steep, before.position, tolerance=1e-10)
    # Balance of r^-13 and 0.1 r.
    assert float(fire.largest_norm(state.position)) == pytest.approx(10 ** (1 / 14), abs=1e-9)


def test_a_start_at_rest_stays_at_rest(x64):
    state = relax(anisotropic_well, jnp.zeros((3, 2)))
    stepped = fire.step(state, anisotropic_well, length=1.0, force_scale=1.0)
    np.testing.assert_array_equal(stepped.position, 0)
    np.testing.assert_array_equal(stepped.velocity, 0)


def test_kept_force_belongs_to_the_kept_position(x64):
    state = fire.start(jnp.array([[1.0, -2.0]]), anisotropic_well)
    for _ in range(20):
        state = fire.step(state, anisotropic_well, length=1.0, force_scale=1.0)
        np.testing.assert_array_equal(state.force, anisotropic_well(state.position))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_step_keeps_every_dtype(x64, dtype):
    state = fire.start(jnp.ones((3, 2), dtype), lambda position: -position)
    stepped = jax.eval_shape(lambda s: fire.step(s, lambda x: -x, length=1.0, force_scale=1.0), state)
    assert jax.tree.map(lambda a: (a.dtype, a.weak_type), stepped) == jax.tree.map(
        lambda a: (a.dtype, a.weak_type), state
    )
    assert state.time_step.dtype == dtype


def test_longest_vector_has_a_finite_derivative_at_zero(x64):
    assert float(fire.largest_norm(jnp.array([[3.0, 4.0], [0.0, 1.0]]))) == 5.0
    gradient = jax.grad(fire.largest_norm)(jnp.zeros((3, 2)))
    np.testing.assert_array_equal(gradient, 0)
