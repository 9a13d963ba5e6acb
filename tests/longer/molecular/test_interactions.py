"""Interactions of pairs, of angles and of a user's energy: sums, forces, stress, parameters."""

import dataclasses
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import spaces
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.interactions.stillinger_weber import Shape
from simkit.molecular.potentials import lennard_jones
from tests.molecular.test_interactions import (
    INTERACTION,
    METHODS,
    UNIT,
    cluster,
    lennard_jones_without,
    silicon,
)

PRIMITIVE = {
    "fcc": np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]]) / 2,
    "bcc": np.array([[-1, 1, 1], [1, -1, 1], [1, 1, -1]]) / 2,
}


def lattice_sum(vectors, cutoff):
    """Return the Lennard-Jones energy per particle of a crystal, site by site."""
    steps = np.stack(np.meshgrid(*[np.arange(-9, 10)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    r = np.linalg.norm(steps[steps.any(axis=1)] @ vectors, axis=1)
    return (2 * (r**-12 - r**-6))[r < cutoff].sum()


def test_supercells_of_a_primitive_cell_have_the_energy_of_the_crystal_and_no_force(x64):
    # Differences of positions are exactly half a lattice vector of a cell repeated an even number of times.
    params, cutoff, constant = {"epsilon": jnp.ones(()), "sigma": jnp.ones(())}, 1.735, 1.547
    interactions = [pair_interaction(lennard_jones(), cutoff=cutoff, method=method) for method in METHODS]

    @jax.jit
    def computed(position, cell):
        neighbors = [each.prepare(position, cell, params) for each in interactions]
        pairs = list(zip(interactions, neighbors, strict=True))
        energies = [each.energy(position, cell, params, near) for each, near in pairs]
        return energies, [each.force(position, cell, params, near) for each, near in pairs]

    for vectors in PRIMITIVE.values():
        cell = 6 * constant * vectors
        sites = np.stack(np.meshgrid(*[np.arange(6)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
        for position in (sites @ cell / 6, (sites + 0.37) @ cell / 6):
            energies, forces = computed(jnp.asarray(position), jnp.asarray(cell))
            # Some twenty terms of order one per particle.
            np.testing.assert_allclose(np.divide(energies, 216), lattice_sum(constant * vectors, cutoff), rtol=1e-12)
            np.testing.assert_allclose(forces, 0, atol=1e-12)


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


def excluded_case(kind):
    """Return positions, cell, images of the cell, and pairs of which a chain of 5 bonds and others are excluded."""
    random = np.random.default_rng(5)
    side = {"free": 3.0, "cell": 4.2, "block": 2.3}[kind]
    position = jnp.asarray(random.uniform(0, side, (12, 3)))
    close = position.at[6].set(position[0] + 0.1)  # bonded particles may be far closer than others
    return close, None if kind == "free" else jnp.full(3, side), (2, 2, 2) if kind == "block" else None


CHAIN = [[0, 6], [1, 7], [2, 8], [3, 9], [0, 11]]


def summed_by_hand(position, cell, excluded, cutoff):
    """Return the Lennard-Jones energy within a cut-off, of nearest images or of all images of a small cell."""
    total, shifts = 0.0, itertools.product(range(-2, 3) if cell is not None else [0], repeat=3)
    sides = np.zeros(3) if cell is None else np.asarray(cell)
    bonded = {tuple(sorted(pair)) for pair in excluded}
    for shift in shifts:
        for i, j in itertools.product(range(len(position)), repeat=2):
            r = np.linalg.norm(position[i] - position[j] + np.array(shift) * sides)
            is_bonded = tuple(sorted((i, j))) in bonded and (cell is None or r < sides.min() / 2)
            if 0 < r < cutoff and not is_bonded:
                total += 2 * (r**-12 - r**-6)
    return total


@pytest.mark.parametrize("kind", ["free", "cell", "block"])
def test_excluded_pairs_do_not_interact(x64, kind):
    position, cell, images = excluded_case(kind)
    # In the block every pair of particles has several images within the cut-off, of which one is bonded.
    nearest = np.linalg.norm(spaces.displacement(spaces.of_cell(cell, 3), position[:, None], position[None]), axis=-1)
    excluded = [pair for pair in CHAIN if kind != "block" or nearest[tuple(pair)] < 1.1]
    assert len(excluded) >= 2
    by_hand = summed_by_hand(np.asarray(position), cell, excluded, 2.0)
    every = lennard_jones_without(excluded, images, "all_pairs")
    energy, slope = jax.jit(jax.value_and_grad(lambda x: every.energy(x, cell, UNIT, ())))(position)
    np.testing.assert_allclose(energy, by_hand, rtol=1e-12)
    listed = lennard_jones_without(excluded, images, "neighbor_list")

    @jax.jit
    def force(x):
        neighbors = listed.prepare(x, cell, UNIT)
        return listed.energy(x, cell, UNIT, neighbors), listed.force(x, cell, UNIT, neighbors)

    values = force(position)
    np.testing.assert_allclose(values[0], by_hand, rtol=1e-12)
    np.testing.assert_allclose(values[1], -slope, rtol=1e-9, atol=1e-10 * np.abs(slope).max())


def test_excluded_pairs_stay_so_in_lists_that_grow_and_are_rebuilt_member_by_member(x64):
    position, cell, _ = excluded_case("cell")
    pairs = lennard_jones_without(CHAIN, None, "neighbor_list", capacity=2)
    full = pairs.prepare(position, cell, UNIT)
    assert full.overflowed
    grown = full.enlarged()
    lists, both = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), grown), jnp.stack([position, position[::-1]])

    @jax.jit
    @jax.vmap
    def at(x, neighbors):
        def energy(x):
            return pairs.energy(x, cell, UNIT, neighbors)

        neighbors = pairs.refresh(dataclasses.replace(neighbors, needed=jnp.int32(0)), x, cell, UNIT)
        return *jax.value_and_grad(energy)(x), pairs.force(x, cell, UNIT, neighbors)

    energy, slope, force = at(both, dataclasses.replace(lists, reach=jnp.zeros(2)))
    expected = [summed_by_hand(np.asarray(x), cell, CHAIN, 2.0) for x in both]
    np.testing.assert_allclose(energy, expected, rtol=1e-12)
    np.testing.assert_allclose(force, -slope, rtol=1e-9, atol=1e-10 * np.abs(slope).max())
