"""Pair potentials and their sums over all pairs."""

import jax
import jax.numpy as jnp
import pytest

from simkit.molecular import spaces
from simkit.molecular.neighbors import pairs
from simkit.molecular.potentials import per_pair, soft_sphere
from tests.molecular.neighbors.test_pairs import energy_of, forces_of, overlapping
from tests.molecular.potentials.test_potentials import EVERY


@pytest.mark.parametrize("name", EVERY)
def test_second_derivatives_and_those_with_respect_to_parameters_are_finite(x64, name):
    potential, parameters = EVERY[name]
    # Distances of every kind: none, overlap, the core's edge, ordinary, beyond every cut-off.
    distance = jnp.array([0.0, 1e-6, 0.05, 0.09, 0.3, 0.9, 1.0, 1.6, 2.0, 2.4, 50.0])

    def total(distance, parameters):
        return (potential.energy(distance, **parameters) + potential.force(distance, **parameters)).sum()

    given = {name: jnp.asarray(value) for name, value in parameters.items()}
    # No infinity can hide in the sum: one less another is not finite either.
    for derivative in (jax.grad(total, (0, 1)), jax.jacfwd(jax.grad(total, (0, 1)), (0, 1))):
        assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(derivative(distance, given)))


def test_particles_that_coincide_give_finite_derivatives(x64):
    position, space, parameters = overlapping(2)
    position = position.at[1].set(position[0])
    potential = soft_sphere(2.0)
    apart = pairs.all_pairs(position, space)
    assert float(apart.distance[0, 1]) == 0.0
    assert float(potential.energy(apart.distance, **parameters)[0, 1]) == pytest.approx(1.3 / 2)
    assert bool(jnp.isfinite(jax.grad(energy_of)(position, space, potential, parameters)).all())
    assert bool(jnp.isfinite(forces_of(position, space, potential, parameters)).all())
    curvature = jax.jacfwd(forces_of)(position, space, potential, parameters)
    assert bool(jnp.isfinite(curvature).all())


def test_species_may_have_a_table_of_parameters(x64):
    position, space, _ = overlapping(2)
    species = jnp.arange(len(position)) % 2
    epsilon = per_pair(jnp.array([[1.0, 0.5], [0.5, 2.0]]), species)
    sigma = per_pair(jnp.array([[1.0, 1.1], [1.1, 1.4]]), species)
    found = energy_of(position, space, soft_sphere(2.0), {"epsilon": epsilon, "sigma": sigma})
    total = 0.0
    for i in range(len(position)):
        for j in range(i):
            r = float(jnp.linalg.norm(spaces.displacement(space, position[i], position[j])))
            a, b = int(species[i]), int(species[j])
            e, s = [[1.0, 0.5], [0.5, 2.0]][a][b], [[1.0, 1.1], [1.1, 1.4]][a][b]
            total += e / 2 * max(1 - r / s, 0) ** 2
    # 276 pairs of order 0.1, summed in another order.
    assert float(found) == pytest.approx(total, rel=1e-13)
