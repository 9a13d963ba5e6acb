"""Stillinger-Weber interaction: sums against the published formula, forces and stress against derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.buffers import enlarged, sized_like
from simkit.errors import UserError
from simkit.molecular.interactions.stillinger_weber import stillinger_weber
from simkit.molecular.structures import lattices
from tests.molecular.interactions.test_stillinger_weber import (
    INTERACTION,
    cluster,
    published_energy,
    silicon,
)

ENERGY, FORCE, STRESS = jax.jit(INTERACTION.energy), jax.jit(INTERACTION.force), jax.jit(INTERACTION.stress)
PREPARE = jax.jit(INTERACTION.prepare)


def neighbors_of(position, cell, params):
    neighbors = PREPARE(position, cell, params)
    assert not bool(neighbors.overflowed)
    return neighbors


def test_forces_and_torques_sum_to_zero(x64):
    params, position = silicon(), cluster()
    force = FORCE(position, None, params, neighbors_of(position, None, params))
    scale = float(jnp.abs(force).max())
    # Fourteen forces, each with a rounding per bond; arms of 5 angstrom.
    np.testing.assert_allclose(force.sum(axis=0), 0, atol=1e-13 * scale)
    np.testing.assert_allclose(jnp.cross(position, force).sum(axis=0), 0, atol=1e-12 * scale)


def test_energy_does_not_change_under_rotation_translation_or_permutation(x64):
    params, position = silicon(), cluster()
    energy = float(ENERGY(position, None, params, neighbors_of(position, None, params)))
    rotation, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))
    order = np.random.default_rng(6).permutation(len(position))
    for moved in (position @ rotation, position + jnp.array([3.0, -40.0, 7.0]), position[order]):
        neighbors = neighbors_of(moved, None, params)
        # Coordinates of 40 lose 7e-15, forces of up to 1e3 eV / angstrom turn it into energy.
        assert float(ENERGY(moved, None, params, neighbors)) == pytest.approx(energy, rel=1e-11)


def test_energy_scales_with_epsilon_and_sigma(x64):
    params, position = silicon(), cluster()
    energy = ENERGY(position, None, params, neighbors_of(position, None, params))
    # In meters and joules, where squares of lengths are 1e-20.
    scaled = {**params, "epsilon": params["epsilon"] * 1.6e-19, "sigma": params["sigma"] * 1e-10}
    other = ENERGY(position * 1e-10, None, scaled, neighbors_of(position * 1e-10, None, scaled))
    assert float(other / 1.6e-19) == pytest.approx(float(energy), rel=1e-12)


BOND = 2.3517


def shaken_crystal(amplitude=0.3, seed=0):
    """Return positions and cell of 64 atoms around the sites of silicon, the cell sheared and stretched."""
    rng = np.random.default_rng(seed)
    lattice = lattices.diamond((2, 2, 2), spacing=BOND)
    deformation = jnp.eye(3) + jnp.asarray(rng.uniform(-0.04, 0.04, (3, 3)))
    position = lattice.position @ deformation + jnp.asarray(rng.normal(scale=amplitude, size=(64, 3)))
    return position, lattice.cell @ deformation


@pytest.mark.parametrize("seed", range(4))
def test_energy_is_the_published_sum_over_pairs_and_angles(x64, seed):
    position, params = cluster(seed=seed), {**silicon(), "tetrahedral_strength": jnp.asarray(25.0)}
    expected = published_energy(position, 2.1683, 2.0951, 25.0)
    neighbors = neighbors_of(position, None, params)
    # Overlapping atoms at 1e3 eV set the scale: a hundred roundings.
    assert float(ENERGY(position, None, params, neighbors)) == pytest.approx(expected, rel=1e-12)


def test_a_tetrahedron_of_bonds_costs_no_angular_energy(x64):
    corners = jnp.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / jnp.sqrt(3)
    position = jnp.concatenate([jnp.zeros((1, 3)), BOND * corners])
    strong = {**silicon(), "tetrahedral_strength": jnp.asarray(1e3)}
    none = {**silicon(), "tetrahedral_strength": jnp.asarray(0.0)}
    energies = [float(ENERGY(position, None, p, neighbors_of(position, None, p))) for p in (strong, none)]
    # The corners are out of each other's reach (3.84 > 3.77); sums of order one cancel to round-off, times 1e3.
    assert energies[0] == pytest.approx(energies[1], abs=1e-11)


def test_force_is_minus_the_gradient_of_the_energy(x64):
    params = silicon()
    for position, cell in [shaken_crystal(), (cluster(), None)]:
        neighbors = neighbors_of(position, cell, params)
        force = FORCE(position, cell, params, neighbors)
        gradient = jax.jit(jax.grad(INTERACTION.energy))(position, cell, params, neighbors)
        scale = float(jnp.abs(force).max())
        assert scale > 1
        # Closed expressions of some hundred operations.
        np.testing.assert_allclose(force, -gradient, atol=1e-12 * scale)


def test_force_is_minus_the_central_difference_of_the_energy(x64):
    params, (position, cell) = silicon(), shaken_crystal(0.15)
    neighbors = neighbors_of(position, cell, params)
    direction = jnp.asarray(np.random.default_rng(3).normal(size=position.shape))
    step = 1e-5
    ahead, behind = (ENERGY(position + s * direction, cell, params, neighbors) for s in (step, -step))
    power = -jnp.sum(FORCE(position, cell, params, neighbors) * direction)
    # Round-off 200 eV * 2e-15 / 1e-5 = 4e-8; truncation 1e-10 times third derivatives of order 1e3 * 64.
    assert float(power) == pytest.approx(float((ahead - behind) / (2 * step)), rel=1e-6)


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


def test_hessian_is_symmetric(x64):
    params, position = silicon(), cluster(8)
    neighbors = neighbors_of(position, None, params)
    hessian = -jax.jit(jax.jacfwd(FORCE))(position, None, params, neighbors).reshape(24, 24)
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-12 * float(jnp.abs(hessian).max()))


def test_parameter_derivatives_equal_central_differences(x64):
    params, (position, cell) = silicon(), shaken_crystal(0.1)
    neighbors = neighbors_of(position, cell, params)
    gradient = jax.jit(jax.grad(INTERACTION.energy, argnums=2))(position, cell, params, neighbors)
    for name, value in params.items():
        step = 1e-5 * value
        ahead, behind = (ENERGY(position, cell, {**params, name: value + s}, neighbors) for s in (step, -step))
        # Round-off 200 * 2e-15 / 2e-5 = 2e-8 beside derivatives of order 100; truncation 1e-10 relative.
        assert float(gradient[name]) == pytest.approx(float((ahead - behind) / (2 * step)), rel=1e-7)


def test_members_of_a_batch_equal_single_runs(x64):
    params = silicon()
    positions = jnp.stack([cluster(seed=seed) for seed in range(3)])

    def force(position):
        return INTERACTION.force(position, None, params, INTERACTION.prepare(position, None, params))

    batched = jax.jit(jax.vmap(force))(positions)
    for position, member in zip(positions, batched, strict=True):
        alone = FORCE(position, None, params, neighbors_of(position, None, params))
        np.testing.assert_allclose(member, alone, rtol=1e-12, atol=1e-12 * float(jnp.abs(alone).max()))


def test_an_overflow_is_reported_and_the_list_can_be_enlarged(x64):
    params, position = silicon(), cluster()
    cramped = stillinger_weber(capacity=4)
    neighbors = cramped.prepare(position, None, params)
    assert bool(neighbors.overflowed)
    assert bool(jnp.isnan(cramped.energy(position, None, params, neighbors)))
    far = position * 3
    example = enlarged(neighbors)
    larger, room = cramped.sized_like(example), sized_like(cramped.prepare(far, None, params), example)
    found = larger.refresh(room, position, None, params)
    assert not bool(found.overflowed)
    expected = FORCE(position, None, params, neighbors_of(position, None, params))
    np.testing.assert_allclose(larger.force(position, None, params, found), expected, rtol=1e-10)


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
