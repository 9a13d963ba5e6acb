"""Pair interactions over a list and over all pairs, and against published numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.potentials import lennard_jones, soft_sphere
from tests.tables import every

PARTICLES = 48
METHODS = ["all_pairs", "neighbor_list"]
CUTOFF = 1.4
SPECIES = np.arange(PARTICLES) % 2


def params():
    table = jnp.array([[1.0, 1.1], [1.1, 1.3]])
    return {"epsilon": 0.7 * table, "sigma": table, "unused": jnp.asarray(1.0)}


def spheres(method, cutoff=CUTOFF, **options):
    """Return Hertzian spheres of two sizes; smooth enough for two derivatives at the cut-off."""
    options = {"capacity": PARTICLES, "species": SPECIES, **options}
    return pair_interaction(soft_sphere(3.0), cutoff=cutoff, method=method, **options)


def configuration(kind, dimension, seed=0):
    side = {2: 5.0, 3: 3.6}[dimension]
    cell = side * np.array([[1.0, 0, 0], [0.2, 1.1, 0], [-0.1, 0.3, 1.2]])[:dimension, :dimension]
    position = np.random.default_rng(seed).uniform(-0.3, 1.1, (PARTICLES, dimension)) @ cell
    chosen = {"free": None, "orthorhombic": jnp.asarray(np.diag(cell)), "triclinic": jnp.asarray(cell)}
    return jnp.asarray(position), chosen[kind]


def energy_of(interaction, position, cell, params):
    return interaction.energy(position, cell, params, interaction.prepare(position, cell, params))


@every(
    ("options", "message"),
    [
        ({"method": "verlet"}, "is unknown"),
        ({"skin": 0.0}, "skin"),
        ({"capacity": 0}, "capacity"),
        ({"cutoff": -1.0}, "positive length"),
        ({"cutoff": None, "method": "neighbor_list"}, "cutoff = None; give a positive length"),
    ],
)
def test_impossible_arguments_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        pair_interaction(lennard_jones(), **{"cutoff": 2.5, **options})


def test_species_must_fit_particles_and_tables(x64):
    position, cell = configuration("orthorhombic", 2)
    with pytest.raises(UserError, match="species names 2 particles"):
        energy_of(spheres("all_pairs", species=[0, 1]), position, cell, params())
    with pytest.raises(UserError, match="give species, one index"):
        energy_of(spheres("all_pairs", species=None), position, cell, params())


def check_derivatives(dimension, kind):
    """Hold lists against all pairs, and forces and stresses against derivatives of the energy."""
    position, cell = configuration(kind, dimension)
    full = None if cell is None else spaces.lattice_vectors(cell)

    @jax.jit
    def computed(position):
        found = []
        for method in METHODS:
            interaction = spheres(method)

            def energy(position, strain, interaction=interaction):
                at = position + position @ strain, None if full is None else full + full @ strain
                return energy_of(interaction, *at, params())

            slopes = jax.value_and_grad(energy, (0, 1))(position, jnp.zeros((dimension, dimension)))
            neighbors = interaction.prepare(position, cell, params())
            force = interaction.force(position, cell, params(), neighbors)
            stress = () if cell is None else (interaction.stress(position, cell, params(), neighbors),)
            found.append((*slopes, force, *stress))
        return found

    every_pair, listed = computed(position)
    # Some tens of terms of order 0.1, added in another order.
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-12), listed, every_pair)
    energy, (gradient, strained), force, *stress = listed
    assert float(energy) > 0.2
    assert float(energy) == pytest.approx(float(every_pair[0]), rel=1e-13)
    assert float(jnp.abs(force).max()) > 0.1
    np.testing.assert_allclose(force, -gradient, rtol=1e-8, atol=1e-12)
    # Newton's third law.
    np.testing.assert_allclose(force.sum(axis=0), 0, atol=1e-12)
    if full is not None:
        np.testing.assert_allclose(stress[0], strained / spaces.of_cell(full, dimension).volume, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(stress[0], stress[0].T)


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
