"""Stillinger-Weber interaction: sums against the published formula, forces and stress against derivatives."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.interactions.stillinger_weber import SILICON, Shape, stillinger_weber

INTERACTION = stillinger_weber(capacity=40)


def silicon():
    return {name: jnp.asarray(value, dtype=float) for name, value in SILICON.items()}


def cluster(count=14, seed=0):
    """Return the positions of atoms at random in a box that gives each a handful of neighbors."""
    return jnp.asarray(np.random.default_rng(seed).uniform(0, 5.5, (count, 3)))


def published_energy(position, epsilon, sigma, tetrahedral_strength):
    """Return the energy of a cluster as the paper writes it, triple by triple."""
    x = np.asarray(position) / sigma
    shape = Shape()

    def weight(r):
        return math.exp(shape.angular_decay / (r - shape.reach)) if r < shape.reach else 0.0

    energy = 0.0
    for i, j in itertools.combinations(range(len(x)), 2):
        r = np.linalg.norm(x[i] - x[j])
        if r < shape.reach:
            repulsion = shape.repulsion * r**-4
            energy += shape.pair_strength * (repulsion - 1) * math.exp(1 / (r - shape.reach))
    for i in range(len(x)):
        for j, k in itertools.combinations([n for n in range(len(x)) if n != i], 2):
            a, b = x[j] - x[i], x[k] - x[i]
            r, s = np.linalg.norm(a), np.linalg.norm(b)
            energy += tetrahedral_strength * weight(r) * weight(s) * (a @ b / (r * s) + 1 / 3) ** 2
    return epsilon * energy


def test_energy_is_the_published_sum_and_force_minus_its_gradient(x64):
    position, params = cluster(), {**silicon(), "tetrahedral_strength": jnp.asarray(25.0)}

    @jax.jit
    def computed(position):
        neighbors = INTERACTION.prepare(position, None, params)
        arguments = position, None, params, neighbors
        return jax.value_and_grad(INTERACTION.energy)(*arguments), INTERACTION.force(*arguments), neighbors.overflowed

    (energy, gradient), force, overflowed = computed(position)
    assert not bool(overflowed)
    # Overlapping atoms at 1e3 eV set the scale: a hundred roundings.
    assert float(energy) == pytest.approx(published_energy(position, 2.1683, 2.0951, 25.0), rel=1e-12)
    np.testing.assert_allclose(force, -gradient, atol=1e-12 * float(jnp.abs(force).max()))
