"""Pair potentials and their sums over all pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.neighbors import pairs
from simkit.molecular.neighbors.cell_list import split_over_cores
from simkit.molecular.potentials import mean_diameter, soft_sphere


def test_split_over_cores_returns_its_number_under_vmap_too():
    def total(x):
        return jax.lax.fori_loop(0, 5, lambda k, sums: sums + split_over_cores(k) * x, jnp.zeros_like(x))

    numbers = jnp.arange(6.0).reshape(3, 2)
    # 0 + 1 + 2 + 3 + 4, exact in binary.
    np.testing.assert_array_equal(jax.jit(jax.vmap(total))(numbers), 10 * numbers)


def overlapping(dimension, count=24, seed=0):
    rng = np.random.default_rng(seed)
    box = jnp.asarray(rng.uniform(3.0, 4.0, dimension))
    position = jnp.asarray(rng.uniform(-1, 2, (count, dimension))) * box
    diameter = jnp.where(jnp.arange(count) < count // 2, 1.0, 1.4)
    return position, spaces.periodic(box), {"epsilon": 1.3, "sigma": mean_diameter(diameter)}


def energy_of(position, space, potential, parameters):
    return pairs.energy_per_particle(pairs.all_pairs(position, space), potential, **parameters).sum()


def forces_of(position, space, potential, parameters):
    return pairs.forces(pairs.all_pairs(position, space), potential, **parameters)


def test_energy_does_not_change_under_translation_or_permutation(x64):
    position, space, parameters = overlapping(2)
    potential = soft_sphere(2.5)
    computed = jax.jit(lambda position, parameters: energy_of(position, space, potential, parameters))
    energy = float(computed(position, parameters))
    moved = computed(position + jnp.array([0.3, 11.0]), parameters)
    # Coordinates of order 20 lose 4e-15, which contacts with forces of order one turn into energy, some 50 times.
    assert float(moved) == pytest.approx(energy, abs=1e-12)
    order = np.random.default_rng(4).permutation(len(position))
    shuffled = {**parameters, "sigma": parameters["sigma"][order][:, order]}
    assert float(computed(position[order], shuffled)) == pytest.approx(energy, abs=1e-13)


def test_an_exponent_without_finite_stiffness_is_refused():
    for exponent in (1.5, float("nan")):
        with pytest.raises(UserError, match=r"below its lower bound 2|is not a finite number"):
            soft_sphere(exponent)
