"""Hessians and normal modes: second derivatives of the energy, zero modes, and frequencies in closed form."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular.analysis.elasticity import hessian, hessian_vector_product, mass_weighted, normal_modes
from simkit.molecular.interactions.interaction import user_energy
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.potentials import energy_shifted, lennard_jones
from tests.molecular.analysis.test_normal_modes import BOND, PARAMS, spring
from tests.tables import every


def scattered(dimension, count=10):
    """Return positions of particles that are not at rest, none closer than 0.7."""
    side = int(np.ceil(count ** (1 / dimension)))
    sites = np.stack(np.meshgrid(*[np.arange(side)] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)[:count]
    return jnp.asarray(sites + np.random.default_rng(0).uniform(-0.15, 0.15, sites.shape))


def truncated(method):
    return pair_interaction(energy_shifted(lennard_jones()), cutoff=2.4, parameters=tables, method=method)


def tables(params):
    return {**params, "cutoff": jnp.asarray(2.4)}


@every("inner", [jax.jacfwd, jax.jacrev])
def test_second_derivatives_of_frequencies_equal_central_differences(x64, inner):
    position, cell = scattered(2, 4), jnp.full(2, 5.0)

    def frequencies(mass):
        modes = normal_modes(truncated("all_pairs"), position, cell, PARAMS, mass=mass)
        return jnp.where(modes.is_zero, 0, modes.frequency)

    mass, h = jnp.array([1.0, 1.7, 2.9, 0.8]), 1e-5
    derive = jax.jit(inner(frequencies))
    differences = [(derive(mass + h * e) - derive(mass - h * e)) / (2 * h) for e in jnp.eye(4)]
    found = jax.jit(jax.jacfwd(inner(frequencies)))(mass)
    assert np.abs(found).max() > 1
    # Truncation of h^2 and cancellation of 1e-16 / h in derivatives of up to 100.
    np.testing.assert_allclose(found, np.stack(differences, axis=-1), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("dimension", [2, 3])
def test_hessian_is_the_second_derivative_of_the_energy(x64, dimension):
    position, cell = scattered(dimension), jnp.full(dimension, 5.0)
    interaction = truncated("all_pairs")
    expected = jax.jit(jax.hessian(lambda x: interaction.energy(x, cell, PARAMS, ())))(position)
    expected = np.asarray(expected).reshape(position.size, position.size)
    found = jax.jit(functools.partial(hessian, interaction))(position, cell, PARAMS)
    # Sums of the same ten terms per row, in another order.
    close = functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-12 * np.abs(expected).max())
    close(found, expected)
    np.testing.assert_array_equal(found, found.T)
    over_list = jax.jit(functools.partial(hessian, truncated("neighbor_list")))(position, cell, PARAMS)
    close(over_list, expected)
    displacement = jax.random.normal(jax.random.key(1), position.shape)
    product = hessian_vector_product(interaction, position, cell, PARAMS)(displacement)
    close(product.ravel(), expected @ displacement.ravel())


@pytest.fixture(scope="module")
def icosahedron():
    with jax.enable_x64(True):
        golden = (1 + 5**0.5) / 2
        shell = [(0, a, b * golden) for a in (-1, 1) for b in (-1, 1)]
        corners = [corner[-turn:] + corner[:-turn] for turn in range(3) for corner in shell]
        sites = jnp.asarray([(0.0, 0.0, 0.0), *corners]) * 0.57
        interaction = pair_interaction(lennard_jones(), cutoff=None)
        params = {"epsilon": jnp.asarray(1.0), "sigma": jnp.asarray(1.0)}
        step = jax.jit(lambda x: x - newton(interaction, x, params))
        for _ in range(8):
            sites = step(sites)
        assert float(jnp.abs(interaction.force(sites, None, params, ())).max()) < 1e-11
        return interaction, sites, params


def newton(interaction, position, params):
    force = interaction.force(position, None, params, ())
    inverse = jnp.linalg.pinv(hessian(interaction, position, None, params), rtol=1e-6)
    return -(inverse @ force.ravel()).reshape(position.shape)


def test_the_icosahedron_has_six_zero_modes_and_is_a_minimum(x64, icosahedron):
    interaction, position, params = icosahedron
    modes = jax.jit(lambda x: normal_modes(interaction, x, None, params))(position)
    assert int(modes.zero_modes) == 6
    assert not modes.is_zero[6:].any()
    assert float(modes.lowest(1).frequency[0]) > 1
    # Icosahedral symmetry: every mode belongs to a representation of dimension 1, 3, 4 or 5.
    others = np.asarray(modes.lowest(33).frequency)
    groups = np.split(others, np.flatnonzero(np.diff(others) > 1e-6) + 1)
    assert {len(group) for group in groups} <= {1, 3, 4, 5}


def test_modes_are_orthonormal_in_the_mass_and_solve_the_eigenvalue_problem(x64, icosahedron):
    interaction, position, params = icosahedron
    mass = jnp.linspace(0.5, 2.0, 13)
    modes = jax.jit(lambda x: normal_modes(interaction, x, None, params, mass=mass))(position)
    overlap = jnp.einsum("ind,n,jnd->ij", modes.vector, mass, modes.vector)
    # Orthogonality of 39 eigenvectors to round-off.
    np.testing.assert_allclose(overlap, np.eye(39), atol=1e-13)
    product = jax.vmap(hessian_vector_product(interaction, position, None, params))(modes.vector)
    expected = modes.frequency[:, None, None] ** 2 * mass[:, None] * modes.vector
    # The largest squared frequency is below 2000.
    np.testing.assert_allclose(product[6:], expected[6:], atol=1e-10)
    matrix = mass_weighted(hessian(interaction, position, None, params), mass)
    assert float(jnp.trace(matrix)) == pytest.approx(float(jnp.sum(modes.frequency**2)), rel=1e-12)


def test_a_saddle_has_a_negative_frequency(x64):
    # Three atoms in a row, the ends at the distance that leaves no force: it bends without resistance, to a triangle.
    params = {"epsilon": 1.0, "sigma": 1.0}
    interaction = pair_interaction(lennard_jones(), cutoff=None)

    def row(bond):
        return jnp.stack([jnp.zeros(3), jnp.array([bond, 0, 0]), jnp.array([2 * bond, 0, 0])])

    bond = jnp.asarray(BOND)
    energy = jax.jit(jax.grad(lambda b: interaction.energy(row(b), None, params, ())))
    slope = jax.jit(jax.grad(energy))
    for _ in range(8):
        bond = bond - energy(bond) / slope(bond)
    modes = jax.jit(lambda x: normal_modes(interaction, x, None, params))(row(bond))
    assert int(modes.zero_modes) == 5
    # Bending in both planes across.
    assert int((modes.frequency < 0).sum() - (modes.is_zero & (modes.frequency < 0)).sum()) == 2
    assert float(modes.lowest(2).frequency[1]) < -0.1


def test_second_derivatives_of_equal_frequencies_are_nan(x64, icosahedron):
    def frequencies(epsilon):
        modes = normal_modes(*icosahedron[:2], None, {"epsilon": epsilon, "sigma": 1.0})
        return jnp.where(modes.is_zero, 0, modes.frequency)

    found = jax.jit(jax.jacfwd(jax.jacfwd(frequencies)))(1.0)
    modes = normal_modes(*icosahedron[:2], None, {"epsilon": 1.0, "sigma": 1.0})
    squared = np.asarray(modes.frequency) ** 2
    alone = np.sum(np.isclose(squared[:, None], squared, rtol=1e-9), axis=1) == 1
    # The breathing mode is the only one that has no equal; its frequency goes with the root of epsilon.
    np.testing.assert_allclose(found[alone], -modes.frequency[alone] / 4, rtol=1e-9)
    assert np.all(np.isnan(found[~alone & ~modes.is_zero])) and alone.sum() == 1


@every(("dimension", "rigid"), [(2, 3), (3, 5)])
def test_diatomic_vibrates_at_the_root_of_stiffness_over_reduced_mass(x64, dimension, rigid):
    k, mass = 7.0, jnp.array([1.0, 15.0])
    axis = jnp.array([1.0, 2.0, -0.5])[:dimension]
    position = jnp.stack([jnp.zeros(dimension), 1.2 * axis / jnp.linalg.norm(axis)])
    modes = jax.jit(lambda x: normal_modes(spring(k, 1.2), x, None, {}, mass=mass))(position)
    # Two translations and one rotation; three and two in space, where one about the axis moves nothing.
    assert int(modes.zero_modes) == rigid
    reduced = float(mass[0] * mass[1] / mass.sum())
    assert float(modes.frequency[-1]) == pytest.approx(np.sqrt(k / reduced), rel=1e-8)
    # The light particle moves more; the center of mass does not.
    np.testing.assert_allclose(mass @ modes.vector[-1], 0, atol=1e-12)


def test_ring_of_springs_in_a_cell_has_the_dispersion_of_a_chain(x64):
    count, k, mass = 8, 3.0, 0.5

    # Springs along x between neighbors; nothing pushes along y but a spring to the axis, twice as stiff.
    def energy(position, cell, params):
        stretch = jnp.roll(position[:, 0], -1) - position[:, 0] - 1
        stretch = stretch - cell[0, 0] * jnp.round(stretch / cell[0, 0])
        return params["k"] * (jnp.sum(stretch**2) / 2 + jnp.sum(position[:, 1] ** 2))

    position = jnp.stack([jnp.arange(count, dtype=float), jnp.zeros(count)], axis=-1)
    params = {"k": jnp.asarray(k)}
    modes = jax.jit(lambda x: normal_modes(user_energy(energy), x, jnp.eye(2) * count, params, mass=mass))(position)
    along = 2 * np.sqrt(k / mass) * np.abs(np.sin(np.pi * np.arange(count) / count))
    expected = np.sort(np.concatenate([along, np.full(count, np.sqrt(2 * k / mass))]))
    # The root of the one zero, 1e-15, is 3e-8.
    np.testing.assert_allclose(modes.frequency, expected, rtol=1e-8, atol=1e-6)
    assert int(modes.zero_modes) == 1
    np.testing.assert_allclose(modes.lowest(3).frequency, expected[1:4], rtol=1e-8)


def test_frequency_is_differentiable(x64):
    interaction = pair_interaction(lennard_jones(), cutoff=None)

    def frequency(epsilon):
        params = {"epsilon": epsilon, "sigma": 1.0}
        position = jnp.array([[0.0, 0.0], [BOND, 0.0]])
        return normal_modes(interaction, position, None, params).frequency[-1]

    value, slope = jax.jit(jax.value_and_grad(frequency))(2.0)
    # Proportional to the square root of epsilon.
    assert float(slope) == pytest.approx(float(value) / 4, rel=1e-12)


def test_invalid_masses_and_counts_are_refused(x64):
    position = jnp.array([[0.0, 0.0], [1.0, 0.0]])
    with pytest.raises(UserError, match="one number or one for each of 2"):
        normal_modes(spring(1.0, 1.0), position, None, {}, mass=jnp.ones(3))
    with pytest.raises(UserError, match="count = 5; the system has 4 modes"):
        normal_modes(spring(1.0, 1.0), position, None, {}).lowest(5)
