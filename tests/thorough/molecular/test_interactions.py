"""Interactions of pairs, of angles and of a user's energy: forces and stresses against differences."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.buffers import enlarged, sized_like
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import user_energy
from simkit.molecular.interactions.stillinger_weber import stillinger_weber
from simkit.molecular.neighbors.pair_sums import PerParticle
from simkit.molecular.structures import lattices
from tests.molecular.test_interactions import (
    CUTOFF,
    INTERACTION,
    METHODS,
    SPECIES,
    check_derivatives,
    cluster,
    configuration,
    energy_of,
    gaussians,
    params,
    random_particles,
    silicon,
    spheres,
)

KINDS = ["free", "orthorhombic", "triclinic"]


@pytest.mark.parametrize("kind", ["free", "triclinic"])
def test_second_derivatives_through_the_list_equal_those_over_all_pairs(x64, kind):
    position, cell = configuration(kind, 2)
    position, half = position[:16], {"species": SPECIES[:16]}
    every, some = (spheres(method, **half) for method in METHODS)

    def derivatives(interaction):
        neighbors = interaction.prepare(position, cell, params())

        def energy(x, c, p):
            return interaction.energy(x, c, p, neighbors)

        def force(x, c, p):
            return interaction.force(x, c, p, neighbors)

        arguments = (0, 2) if cell is None else (0, 1, 2)
        hessian = jax.jacfwd(jax.grad(energy, argnums=arguments), argnums=arguments)
        forward, reverse = jax.jacfwd(force, argnums=arguments), jax.jacrev(force, argnums=arguments)
        return jax.jit(lambda *at: (hessian(*at), forward(*at), reverse(*at)))(position, cell, params())

    found, expected = derivatives(some), derivatives(every)
    assert float(jnp.abs(expected[0][0][0]).max()) > 0.1
    # Sums of some hundred terms of order one.
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=2e-12), found, expected)
    hessian, forward, reverse = found
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=2e-12), forward, reverse)
    np.testing.assert_allclose(hessian[0][0], -forward[0], rtol=0, atol=2e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", [2, 3])
def test_lists_equal_all_pairs_and_forces_and_stress_the_derivatives_of_the_energy(x64, dimension, kind):
    check_derivatives(dimension, kind)


@pytest.mark.parametrize("method", METHODS)
def test_a_parameter_may_be_computed_from_one_number_per_particle(x64, method):
    position, cell = configuration("orthorhombic", 2)
    diameter = jnp.asarray([1.0, 1.3])[SPECIES]

    def by_particle(params):
        return {"epsilon": params["unused"], "sigma": PerParticle(params["diameter"], lambda a, b: (a + b) / 2)}

    mixed = spheres(method, parameters=by_particle, species=None)
    tables = {"epsilon": jnp.asarray(1.0), "sigma": jnp.array([[1.0, 1.15], [1.15, 1.3]])}
    expected = energy_of(spheres(method), position, cell, tables)
    found = {"unused": jnp.asarray(1.0), "diameter": diameter}
    assert float(energy_of(mixed, position, cell, found)) == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_a_cutoff_beyond_half_the_cell_is_refused_or_gives_nan(x64, method):
    position, cell = configuration("triclinic", 2)
    interaction = spheres(method)
    small = cell * 2 * CUTOFF / spaces.of_cell(cell, 2).widths.min()
    with pytest.raises(UserError, match="reaches beyond half the cell"):
        interaction.prepare(position, 0.999 * small, params())
    energy = jax.jit(lambda cell: energy_of(interaction, position, cell, params()))
    assert bool(jnp.isfinite(energy(small)))
    assert bool(jnp.isnan(energy(0.999 * small)))


def test_an_overflowed_list_gives_nan_until_it_is_enlarged(x64):
    position, cell = configuration("orthorhombic", 2)
    interaction = spheres("neighbor_list", capacity=2)
    neighbors = interaction.prepare(position, cell, params())
    assert bool(neighbors.overflowed)
    for value in (interaction.energy, interaction.force, interaction.stress):
        assert bool(jnp.isnan(value(position, cell, params(), neighbors)).all())
    sparse = interaction.prepare(3 * position, 9 * cell, params())
    example = enlarged(neighbors)
    larger = interaction.sized_like(example)
    wider = sized_like(dataclasses.replace(sparse, needed=jnp.int32(0)), example)
    assert wider.index.shape[0] >= int(neighbors.needed)
    expected = energy_of(spheres("all_pairs"), position, cell, params())
    found = larger.energy(position, cell, params(), larger.refresh(wider, position, cell, params()))
    assert float(found) == pytest.approx(float(expected), rel=1e-13)
    assert float(energy_of(larger, position, cell, params())) == pytest.approx(float(expected), rel=1e-13)


ENERGY, FORCE, STRESS = jax.jit(INTERACTION.energy), jax.jit(INTERACTION.force), jax.jit(INTERACTION.stress)
PREPARE = jax.jit(INTERACTION.prepare)


def neighbors_of(position, cell, params):
    neighbors = PREPARE(position, cell, params)
    assert not bool(neighbors.overflowed)
    return neighbors


BOND = 2.3517


def shaken_crystal(amplitude=0.3, seed=0):
    """Return positions and cell of 64 atoms around the sites of silicon, the cell sheared and stretched."""
    rng = np.random.default_rng(seed)
    lattice = lattices.diamond((2, 2, 2), spacing=BOND)
    deformation = jnp.eye(3) + jnp.asarray(rng.uniform(-0.04, 0.04, (3, 3)))
    position = lattice.position @ deformation + jnp.asarray(rng.normal(scale=amplitude, size=(64, 3)))
    return position, lattice.cell @ deformation


def test_stress_is_the_strain_derivative_of_the_energy(x64):
    params, (position, cell) = silicon(), shaken_crystal()
    neighbors = neighbors_of(position, cell, params)

    def strained(strain):
        deformation = jnp.eye(3) + strain
        return ENERGY(position @ deformation, cell @ deformation, params, neighbors)

    expected = jax.jit(jax.grad(strained))(jnp.zeros((3, 3))) / jnp.abs(jnp.linalg.det(cell))
    stress = STRESS(position, cell, params, neighbors)
    assert float(jnp.abs(stress).max()) > 1e-3
    # Two orders of summing some thousand terms.
    np.testing.assert_allclose(stress, expected, atol=1e-12 * float(jnp.abs(stress).max()))
    np.testing.assert_allclose(stress, stress.T, atol=1e-12 * float(jnp.abs(stress).max()))


def test_derivatives_are_finite_where_atoms_coincide_or_bonds_end(x64):
    params = silicon()
    reach = 1.8 * 2.0951
    position = jnp.array([[0, 0, 0], [0, 0, 0], [reach - 1e-9, 0, 0], [0, reach, 0], [0, 0, 0.985 * reach]])
    neighbors = neighbors_of(position, None, params)
    for derivative in (jax.grad(ENERGY, argnums=(0, 2)), jax.jacfwd(FORCE, argnums=(0, 2))):
        leaves = jax.tree.leaves(jax.jit(derivative)(position, None, params, neighbors))
        assert all(bool(jnp.isfinite(leaf).all()) for leaf in leaves)


def test_overlapping_starts_have_finite_forces_in_single_precision():
    params = silicon()
    position = jnp.array([[0, 0, 0], [0, 0, 1e-20], [0, 1e-5, 0], [1e-2, 0, 0], [0.3, 0, 0]], dtype=jnp.float32)
    neighbors = neighbors_of(position, None, params)
    force = FORCE(position, None, params, neighbors)
    assert force.dtype == jnp.float32
    # Minimizers square forces and sum over thousands of particles.
    assert bool(jnp.isfinite(1e4 * force**2).all())
    assert bool(jnp.isfinite(ENERGY(position, None, params, neighbors)))


def test_parameter_derivatives_equal_central_differences(x64):
    params, (position, cell) = silicon(), shaken_crystal(0.1)
    neighbors = neighbors_of(position, cell, params)
    gradient = jax.jit(jax.grad(INTERACTION.energy, argnums=2))(position, cell, params, neighbors)
    for name, value in params.items():
        step = 1e-5 * value
        ahead, behind = (ENERGY(position, cell, {**params, name: value + s}, neighbors) for s in (step, -step))
        # Round-off 200 * 2e-15 / 2e-5 = 2e-8 beside derivatives of order 100; truncation 1e-10 relative.
        assert float(gradient[name]) == pytest.approx(float((ahead - behind) / (2 * step)), rel=1e-7)


def test_a_cell_too_small_for_the_nearest_image_gives_nan(x64):
    params, small = silicon(), lattices.diamond((2, 2, 1), spacing=BOND)
    neighbors = PREPARE(*small, params)
    for function in (ENERGY, FORCE, STRESS):
        assert bool(jnp.isnan(function(*small, params, neighbors)).all())


def test_two_dimensions_and_impossible_settings_are_refused():
    with pytest.raises(UserError, match="capacity"):
        stillinger_weber(capacity=0)
    with pytest.raises(UserError, match="skin"):
        stillinger_weber(skin=0.0)
    params, flat = silicon(), jnp.ones((4, 2))
    with pytest.raises(UserError, match="three dimensions"):
        INTERACTION.prepare(flat, None, params)
    position = cluster()
    with pytest.raises(UserError, match="no volume"):
        STRESS(position, None, params, neighbors_of(position, None, params))


@pytest.mark.parametrize("shape", ["edges", "vectors"])
def test_stress_is_the_central_difference_under_strain(x64, shape):
    interaction, (position, cell, params) = user_energy(gaussians), random_particles()
    if shape == "edges":
        cell = jnp.array([4.0, 4.2, 4.4])
    vectors = spaces.lattice_vectors(cell)
    strain, step = jnp.asarray(np.random.default_rng(2).normal(size=(3, 3))), 1e-6

    def at(amount):
        deformation = jnp.eye(3) + amount * strain
        return interaction.energy(position @ deformation, vectors @ deformation, params, ())

    slope = (at(step) - at(-step)) / (2 * step) / jnp.abs(jnp.linalg.det(vectors))
    assert float(jnp.sum(interaction.stress(position, cell, params, ()) * strain)) == pytest.approx(
        float(slope), rel=1e-6
    )


def test_declared_parameters_are_all_that_the_energy_takes(x64):
    _, (position, cell, params) = user_energy(gaussians), random_particles()
    declared, everything = user_energy(gaussians, parameters=["width", "height"]), user_energy(gaussians)
    beside = {**params, "mass": jnp.asarray(1.0)}
    for name in ("energy", "force", "stress"):
        found, expected = (getattr(which, name)(position, cell, beside, ()) for which in (declared, everything))
        np.testing.assert_array_equal(found, expected)
