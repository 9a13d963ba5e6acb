"""FIRE on problems with known answers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.minimizers import Scale, fire, largest_norm, start, step
from simkit.molecular.minimizers.fire import DEFAULTS, LEAST, STABLE, longest_time_step
from tests.tables import every

UNITS = Scale(length=1.0, stiffness=1.0)


def evaluation(force):
    """Return ``position -> (energy, force)``; FIRE looks at forces alone."""
    return lambda position: (jnp.zeros((), position.dtype), force(position))


def relax(force, position, *, scale=UNITS, tolerance=1e-12, steps=2000, minimizer=None):
    """Return the state of FIRE, or of another minimizer, when no force exceeds ``tolerance`` in units of the scale."""

    def unfinished(state):
        largest = tolerance * scale.stiffness * scale.length
        return (largest_norm(state.force) > largest) & (state.iteration < steps)

    minimizer = minimizer or fire()

    def advance(state):
        return step(minimizer, state, evaluation(force), scale)

    @jax.jit
    def run(position):
        return jax.lax.while_loop(unfinished, advance, start(minimizer, position, evaluation(force), scale))

    return run(position)


def anisotropic_well(position):
    return -jnp.array([1.0, 0.05]) * position


def test_fire_finds_the_minimum_of_a_well(x64):
    state = relax(anisotropic_well, jnp.array([[1.0, -2.0], [0.5, 0.7]]))
    assert int(state.iteration) < 1000
    # The softest spring, 0.05, turns the tolerance 1e-12 into a distance.
    np.testing.assert_allclose(state.position, 0, atol=1e-12 / 0.05)


@every(("length", "energy"), [(2.0**10, 2.0**-30), (2.0**-40, 2.0**-7)])
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


def test_curvatures_of_opposite_sign_do_not_cancel_to_a_small_bound_on_the_time_step(x64):
    curvatures, move = jnp.array([[1.0, -1.0]]), jnp.array([[1.0, 1.0 - 1e-9]])
    before = start(fire(), jnp.zeros((1, 2)), evaluation(lambda x: -curvatures * x), UNITS)
    before = dataclasses.replace(before, longest_time_step=10.0, trial=move)
    assert float(longest_time_step(before, -curvatures * move, UNITS, 10.0)) == pytest.approx(STABLE, rel=1e-6)


@every("force", [1e8, 1e20])
def test_the_curvature_of_an_overlap_leaves_the_bound_on_the_time_step(force):
    """Also one whose square overflows in single precision."""
    before = start(fire(), jnp.full((2, 2), 0.01, jnp.float32), evaluation(lambda x: -force * x), UNITS)
    found = float(longest_time_step(before, -100 * before.force, UNITS, DEFAULTS.maximum_time_step))
    assert found == pytest.approx(DEFAULTS.maximum_time_step) and force > (STABLE / LEAST) ** 2


def test_a_start_at_rest_stays_at_rest(x64):
    state = relax(anisotropic_well, jnp.zeros((3, 2)))
    stepped = jax.jit(lambda state: step(fire(), state, evaluation(anisotropic_well), UNITS))(state)
    np.testing.assert_array_equal(stepped.position, 0)
    np.testing.assert_array_equal(stepped.velocity, 0)


def test_stored_force_is_that_at_the_stored_position(x64):
    state = start(fire(), jnp.array([[1.0, -2.0]]), evaluation(anisotropic_well), UNITS)
    advance = jax.jit(lambda state: step(fire(), state, evaluation(anisotropic_well), UNITS))
    for _ in range(20):
        state = advance(state)
        np.testing.assert_array_equal(state.force, anisotropic_well(state.position))


def test_longest_vector_has_a_finite_derivative_at_zero(x64):
    assert float(largest_norm(jnp.array([[3.0, 4.0], [0.0, 1.0]]))) == 5.0
    gradient = jax.grad(largest_norm)(jnp.zeros((3, 2)))
    np.testing.assert_array_equal(gradient, 0)


def test_the_derivative_of_unrolled_iterations_is_that_of_the_minimum(x64):
    """In a double well, concave near its middle, where no time step follows from the curvature."""

    def reached(stretch):
        def force(position):
            return position - stretch * position**3

        def advance(state, _):
            return step(fire(), state, evaluation(force), UNITS), None

        state = start(fire(), jnp.array([[0.1, -0.2], [0.15, 0.07], [0.03, 0.1]]), evaluation(force), UNITS)
        return jnp.sum(jax.lax.scan(advance, state, length=400)[0].position ** 2)

    # Each of the six coordinates ends at stretch**(-1/2).
    value, slope = jax.jit(jax.value_and_grad(reached))(0.3)
    assert float(value) == pytest.approx(6 / 0.3, rel=1e-10)
    assert float(slope) == pytest.approx(-6 / 0.3**2, rel=1e-6)
