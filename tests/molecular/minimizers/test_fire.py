"""FIRE on problems with known answers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.minimizers import Scale, fire, largest_norm, start, step
from simkit.molecular.minimizers.fire import DEFAULTS

UNITS = Scale(length=1.0, stiffness=1.0)


def evaluation(force):
    """Return ``position -> (energy, force)``; FIRE looks at forces alone."""
    return lambda position: (jnp.zeros((), position.dtype), force(position))


def relax(force, position, *, scale=UNITS, tolerance=1e-12, steps=2000):
    """Return FIRE's state when no force exceeds ``tolerance`` in units of the scale."""

    def unfinished(state):
        largest = tolerance * scale.stiffness * scale.length
        return (largest_norm(state.force) > largest) & (state.iteration < steps)

    def advance(state):
        return step(fire(), state, evaluation(force), scale)

    return jax.lax.while_loop(unfinished, advance, start(fire(), position, evaluation(force), scale))


def anisotropic_well(position):
    return -jnp.array([1.0, 0.05]) * position


def test_fire_finds_the_minimum_of_a_well(x64):
    state = relax(anisotropic_well, jnp.array([[1.0, -2.0], [0.5, 0.7]]))
    assert int(state.iteration) < 1000
    # The softest spring, 0.05, turns the tolerance 1e-12 into a distance.
    np.testing.assert_allclose(state.position, 0, atol=1e-12 / 0.05)


@pytest.mark.parametrize(("length", "energy"), [(2.0**10, 2.0**-30), (2.0**-40, 2.0**-7)])
def test_iterates_scale_with_the_units(x64, length, energy):
    # One program for both units: compiled apart, they would round apart.
    @jax.jit
    def run(length, energy):
        def scaled_well(position):
            return energy / length * anisotropic_well(position / length)

        position = length * jnp.array([[1.0, -2.0], [0.5, 0.7]])
        return relax(scaled_well, position, scale=Scale(length=length, stiffness=energy / length**2))

    reference, state = run(1.0, 1.0), run(length, energy)
    # Powers of two scale without rounding, so the iterates are the same numbers.
    assert int(state.iteration) == int(reference.iteration)
    np.testing.assert_array_equal(state.position / length, reference.position)


def test_a_steep_start_does_not_fly_apart(x64):
    def steep(position):
        # A twelfth-power repulsion from the origin at a hundredth of its range, inside a weak well.
        distance = jnp.linalg.norm(position, axis=-1, keepdims=True)
        return position / distance**14 - 0.1 * position

    before = start(fire(), jnp.array([[0.01, 0.0]]), evaluation(steep), UNITS)
    assert float(largest_norm(before.force)) > 1e25
    first = step(fire(), before, evaluation(steep), UNITS)
    moved = float(largest_norm(first.position - before.position))
    # The clamp, and one rounding.
    assert moved <= DEFAULTS.maximum_displacement * (1 + 1e-14)
    state = relax(steep, before.position, tolerance=1e-10)
    # Balance of r^-13 and 0.1 r.
    assert float(largest_norm(state.position)) == pytest.approx(10 ** (1 / 14), abs=1e-9)


def test_a_start_at_rest_stays_at_rest(x64):
    state = relax(anisotropic_well, jnp.zeros((3, 2)))
    stepped = step(fire(), state, evaluation(anisotropic_well), UNITS)
    np.testing.assert_array_equal(stepped.position, 0)
    np.testing.assert_array_equal(stepped.velocity, 0)


def test_stored_force_is_that_at_the_stored_position(x64):
    state = start(fire(), jnp.array([[1.0, -2.0]]), evaluation(anisotropic_well), UNITS)
    for _ in range(20):
        state = step(fire(), state, evaluation(anisotropic_well), UNITS)
        np.testing.assert_array_equal(state.force, anisotropic_well(state.position))


def test_longest_vector_has_a_finite_derivative_at_zero(x64):
    assert float(largest_norm(jnp.array([[3.0, 4.0], [0.0, 1.0]]))) == 5.0
    gradient = jax.grad(largest_norm)(jnp.zeros((3, 2)))
    np.testing.assert_array_equal(gradient, 0)
