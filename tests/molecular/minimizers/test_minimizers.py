"""Contract of every minimizer, on small clusters and packings."""

import jax
import jax.numpy as jnp
import pytest

from simkit.errors import UserError
from simkit.molecular import minimizers
from simkit.molecular.minimizers import Scale, largest_norm
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


def test_unknown_methods_and_settings_are_refused():
    with pytest.raises(UserError, match="did you mean 'lbfgs'"):
        minimizers.by_name("lbfg")
    with pytest.raises(UserError, match="memory = 0 is not an integer of 1 to 100"):
        minimizers.lbfgs(memory=0)
    with pytest.raises(UserError, match="below its lower bound 1e-06"):
        minimizers.lbfgs(maximum_displacement=0.0)
    with pytest.raises(UserError, match="below its lower bound 1e-06"):
        minimizers.conjugate_gradient(maximum_displacement=-1.0)
    with pytest.raises(UserError, match="below its lower bound 1e-06"):
        minimizers.gradient_descent(maximum_displacement=0.0)
