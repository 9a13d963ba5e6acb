"""Contract of every minimizer, on small clusters and packings; FIRE on problems with known answers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import minimizers
from simkit.molecular.minimizers import Scale, fire, largest_norm, start, step
from simkit.molecular.minimizers.fire import DEFAULTS, LEAST, STABLE, longest_time_step
from simkit.molecular.potentials import lennard_jones, morse, soft_sphere
from tests.tables import every

METHODS = ["lbfgs", "fire", "fire2", "conjugate_gradient", "gradient_descent"]
# Curvature of the pair potential at its minimum or contact, in units of energy / length^2.
STIFFNESS = {"lennard_jones": 57.0, "morse": 72.0, "soft_sphere": 1.0}


def cluster(pair, energy_unit=1.0, length_unit=1.0):
    """Return ``position -> (energy, force)`` of 3-D particles in free space, or in a well for soft spheres."""
    potential, parameters = {
        "lennard_jones": (lennard_jones(), {"sigma": length_unit}),
        "morse": (morse(), {"sigma": length_unit, "rho": 6.0}),
        "soft_sphere": (soft_sphere(), {"sigma": length_unit}),
    }[pair]

    def energy(position):
        difference = position[:, None] - position[None, :]
        off_diagonal = ~jnp.eye(len(position), dtype=bool)
        distance = jnp.sqrt(jnp.where(off_diagonal, (difference**2).sum(-1), length_unit**2))
        pairs = potential.energy(distance, epsilon=energy_unit, **parameters)
        # A well that holds together what only repels.
        well = 0.05 * energy_unit * ((position / length_unit) ** 2).sum() if pair == "soft_sphere" else 0.0
        return jnp.where(off_diagonal, pairs, 0).sum() / 2 + well

    def evaluate(position):
        value, gradient = jax.value_and_grad(energy)(position)
        return value, -gradient

    return evaluate, Scale(length=length_unit, stiffness=STIFFNESS[pair] * energy_unit / length_unit**2)


def overlapping(particles, seed=0, dtype=float):
    """Return positions in units of length, drawn uniformly from a cube so small that some particles overlap."""
    side = 1.1 * particles ** (1 / 3)
    return side * jax.random.uniform(jax.random.key(seed), (particles, 3), dtype)


def relax(method, evaluate, scale, position, tolerance, steps=20_000):
    """Return the state when no force exceeds the tolerance."""
    minimizer = minimizers.by_name(method)

    def unfinished(state):
        return (largest_norm(state.force) > tolerance) & (state.iteration < steps)

    def step(state):
        return minimizers.step(minimizer, state, evaluate, scale)

    start = minimizers.start(minimizer, position, evaluate, scale)
    return jax.lax.while_loop(unfinished, step, start)


def well(position):
    return (position**2).sum() / 2, -position


@every("dtype", [jnp.float32, jnp.float64])
@every("method", METHODS)
def test_every_iteration_is_one_evaluation_and_keeps_every_dtype(x64, method, dtype):
    minimizer, one, evaluations = minimizers.by_name(method), jnp.ones((), dtype), []

    def counted(position):
        evaluations.append(1)
        return well(position)

    def states():
        state = minimizers.start(minimizer, jnp.ones((3, 2), dtype), counted, Scale(one, one))
        return state, minimizers.step(minimizer, state, counted, Scale(one, one))

    found = jax.eval_shape(states)
    before, after = (jax.tree.map(lambda a: (a.shape, a.dtype, a.weak_type), tree) for tree in found)
    assert before == after
    assert {a.dtype for a in jax.tree.leaves(found)} == {jnp.dtype(dtype), jnp.dtype(jnp.int32)}
    assert len(evaluations) == 2


@every(
    ("make", "options", "message"),
    [
        (minimizers.by_name, {"name": "lbfg"}, "did you mean 'lbfgs'"),
        (minimizers.lbfgs, {"memory": 0}, "memory = 0 is not an integer from 1 to 100"),
        (minimizers.lbfgs, {"maximum_displacement": 0.0}, "below its lower bound 1e-06"),
        (minimizers.conjugate_gradient, {"maximum_displacement": -1.0}, "below its lower bound 1e-06"),
        (minimizers.gradient_descent, {"maximum_displacement": 0.0}, "below its lower bound 1e-06"),
    ],
)
def test_unknown_methods_and_settings_are_refused(make, options, message):
    with pytest.raises(UserError, match=message):
        make(**options)


UNITS = Scale(length=1.0, stiffness=1.0)


def evaluation(force):
    """Return ``position -> (energy, force)``; FIRE looks at forces alone."""
    return lambda position: (jnp.zeros((), position.dtype), force(position))


def relax_by_fire(force, position, *, scale=UNITS, tolerance=1e-12, steps=2000, minimizer=None):
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
    state = relax_by_fire(anisotropic_well, jnp.array([[1.0, -2.0], [0.5, 0.7]]))
    assert int(state.iteration) < 1000
    # The softest spring, 0.05, turns the tolerance 1e-12 into a distance.
    np.testing.assert_allclose(state.position, 0, atol=1e-12 / 0.05)


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
