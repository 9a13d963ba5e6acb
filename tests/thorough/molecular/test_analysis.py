"""Analysis: bond order, contacts, radial distributions, elastic constants and normal modes."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import spaces
from simkit.molecular.analysis import order
from simkit.molecular.analysis.elasticity import (
    bulk_modulus,
    elastic_constants,
    hessian,
    hessian_vector_product,
    mass_weighted,
    normal_modes,
    pressure,
    shear_modulus,
)
from simkit.molecular.analysis.order import contact_network, load_bearing
from simkit.molecular.interactions.interaction import user_energy
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.neighbors import neighbor_list, pairs
from simkit.molecular.potentials import energy_shifted, lennard_jones, pair_potential, soft_sphere
from simkit.molecular.structures import lattices
from tests.differences import fourth_order
from tests.molecular.dynamics.moving import floats
from tests.molecular.test_analysis import (
    BOND,
    PARAMS,
    bond_order,
    bonds,
    disordered,
    distribution,
    icosahedron,
    third_order,
)
from tests.physics.test_strained_glass import LARGE, Disordered, difference_of_stress, unit_strains
from tests.tables import every


def cubic(sites, repeats=4):
    """Return a cubic crystal of unit cells of side 1 with the given sites."""
    corners = np.array(list(itertools.product(range(repeats), repeat=3)), dtype=float)
    return (corners[:, None] + np.array(sites)).reshape(-1, 3), jnp.full(3, float(repeats))


def crystals():
    simple, body = cubic([(0, 0, 0)]), cubic([(0, 0, 0), (0.5, 0.5, 0.5)])
    cubes, hexagons = lattices.face_centered_cubic((3, 3, 3)), lattices.hexagonal_close_packed((4, 3, 3))
    # The second shell of the body-centered lattice is at 1, the first at 0.866.
    return {
        "face_centered_cubic": (cubes.position, cubes.cell, 1.2),
        "hexagonal_close_packed": (hexagons.position, hexagons.cell, 1.2),
        "body_centered_cubic_8": (*body, 0.93),
        "body_centered_cubic_14": (*body, 1.2),
        "simple_cubic": (*simple, 1.2),
    }


# Steinhardt, Nelson, Ronchetti 1983; Mickel et al., J. Chem. Phys. 138, 044501 (2013). Five digits each.
PUBLISHED = {
    "face_centered_cubic": (12, 0.19094, 0.57452, -0.15932, -0.01316),
    "hexagonal_close_packed": (12, 0.09722, 0.48476, 0.13410, -0.01244),
    "body_centered_cubic_8": (8, 0.50918, 0.62854, -0.15932, 0.01316),
    "body_centered_cubic_14": (14, 0.03637, 0.51069, 0.15932, 0.01316),
    "simple_cubic": (6, 0.76376, 0.35355, 0.15932, 0.01316),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_particle_of_a_crystal_has_the_published_bond_order(x64, name):
    found = bonds(*crystals()[name])
    count, q4, q6, w4, w6 = PUBLISHED[name]
    np.testing.assert_array_equal(found.is_pair.sum(axis=1), count)
    # Half of the last digit.
    np.testing.assert_allclose(bond_order(found, 4), q4, atol=5.1e-6)
    np.testing.assert_allclose(bond_order(found, 6), q6, atol=5.1e-6)
    np.testing.assert_allclose(third_order(found, 4), w4, atol=5.1e-6)
    np.testing.assert_allclose(third_order(found, 6), w6, atol=5.1e-6)


def test_derivative_of_bond_order_equals_central_differences_also_along_the_axis_of_the_angles(x64):
    def total(position):
        return jnp.sum(jnp.arange(13.0) * bond_order(bonds(position, None, 1.3), 6))

    # A spoke along z, where angles have no derivative; shaken, so that nothing is stationary.
    position = jnp.asarray(icosahedron()) + 0.03 * jnp.asarray(np.random.default_rng(3).normal(size=(13, 3)))
    position = position.at[0].set(0.0).at[1].set(jnp.array([0.0, 0.0, 1.0]))
    direction = jnp.asarray(np.random.default_rng(4).normal(size=(13, 3)))
    step = 1e-5
    value, slope = jax.jit(total), jax.jit(jax.grad(total))
    difference = (value(position + step * direction) - value(position - step * direction)) / (2 * step)
    derivative = jnp.sum(slope(position) * direction)
    assert abs(float(difference)) > 0.1
    # Truncation (1e-5)^2 times a third derivative of some 100, round-off 1e-15 / 1e-5.
    assert float(derivative) == pytest.approx(float(difference), rel=1e-6)


def test_particles_without_bonds_have_no_order_and_a_derivative_of_zero(x64):
    position = jnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [5.0, 0.0, 0.0]])
    found = bonds(position, None, 1.2)
    for measure in (bond_order, third_order):
        assert float(measure(found, 6)[2]) == 0
        slope = jax.jit(jax.grad(lambda x, measure=measure: measure(bonds(x, None, 1.2), 6)[2]))(position)
        np.testing.assert_array_equal(slope, 0)
    # One bond: |q_lm|^2 sums to (2 l + 1) / 4 pi.
    np.testing.assert_allclose(bond_order(found, 6)[:2], 1, rtol=1e-14)


def test_lattices_in_the_plane_have_perfect_order_of_their_own_fold(x64):
    triangles, squares = lattices.triangular((6, 4)), lattices.square((6, 6))
    for lattice, fold, other in ((triangles, 6, 4), (squares, 4, 6)):
        apart = bonds(*lattice, 1.2)
        np.testing.assert_allclose(order.polygon_order(apart, apart.is_pair, fold), 1, atol=1e-13)
        np.testing.assert_allclose(order.polygon_order(apart, apart.is_pair, other), 0, atol=1e-13)


def test_bond_order_equals_the_sum_of_legendre_polynomials_of_all_angles(x64):
    position, cutoff = disordered(), 1.0
    found = bonds(position, None, cutoff)
    for degree in (0, 1, 6):
        legendre = np.polynomial.legendre.Legendre.basis(degree)
        expected = []
        for i in range(len(position)):
            arms = np.delete(position, i, axis=0) - position[i]
            distance = np.linalg.norm(arms, axis=1)
            arms = arms[distance < cutoff] / distance[distance < cutoff, None]
            # Addition theorem: (4 pi / (2 l + 1)) sum_m Y_lm(a) Y_lm(b)* = P_l(a . b).
            expected.append(np.sqrt(max(legendre(arms @ arms.T).mean(), 0)) if len(arms) else 0.0)
        # The root of round-off, where Q is small.
        np.testing.assert_allclose(bond_order(found, degree), expected, atol=1e-7)


@pytest.mark.parametrize("dimension", [2, 3])
def test_contacts_of_a_list_are_those_of_all_pairs(x64, dimension):
    cell = jnp.full(dimension, {2: 7.0, 3: 3.2}[dimension])
    position = jax.random.uniform(jax.random.key(0), (60, dimension)) * cell
    space = spaces.of_cell(cell, dimension)
    everyone = pairs.all_pairs(position, space)
    listed = pairs.listed_pairs(position, space, neighbor_list.build(position, cell, 1.2, 60))
    networks = [order.contact_network(apart, 1.0) for apart in (everyone, listed)]
    counts = [network.touching.sum(axis=1) for network in networks]
    assert int(counts[0].max()) > dimension + 1
    np.testing.assert_array_equal(*counts)
    bearing = [order.load_bearing(network, dimension) for network in networks]
    assert 0 < int(bearing[0].sum()) < 60
    np.testing.assert_array_equal(*bearing)
    numbers = [float(order.contact_number(*both)) for both in zip(networks, bearing, strict=True)]
    assert numbers[0] == numbers[1]
    # Contacts in another order: separations are the same to the last bit.
    lengths = [
        jnp.sort(jnp.where(network.touching, apart.distance, 0).ravel())[-100:]
        for network, apart in zip(networks, (everyone, listed), strict=True)
    ]
    np.testing.assert_array_equal(*lengths)


def packing():
    """Harmonic disks, half of them 1.4 times as large, above jamming, one of them a rattler."""

    def tables(params):
        small, large = jnp.ones_like(params["ratio"]), params["ratio"]
        sigma = jnp.stack([jnp.stack([small, (small + large) / 2]), jnp.stack([(small + large) / 2, large])])
        return {"epsilon": params["epsilon"], "sigma": sigma}

    interaction = pair_interaction(
        soft_sphere(), cutoff=lambda p: p["ratio"], parameters=tables, species=LARGE.astype(int), method="all_pairs"
    )
    return interaction, floats(epsilon=1.0, ratio=1.4), 9.05, 1.0


def rattlers(system):
    sizes = jnp.where(LARGE, 1.4, 1.0)
    apart = pairs.all_pairs(system.position, spaces.of_cell(system.cell, 2))
    return ~load_bearing(contact_network(apart, (sizes[:, None] + sizes[None, :]) / 2), 2)


@pytest.fixture(scope="module")
def disks():
    with jax.enable_x64(True):
        return Disordered(packing, 2)


def test_stiffness_of_a_packing_under_pressure_is_that_of_finite_strains(x64, disks):
    found = disks.constants(disks.position, disks.params, rattlers(disks))
    assert float(pressure(found.stress)) > 0.01
    # Forces known to 1e-13, so stresses to 1e-13 over a strain of 1e-6: 1e-7. No contact opens or closes: the least
    # overlap or gap is 7e-5.
    expected = difference_of_stress(disks, 1e-6)
    np.testing.assert_allclose(found.stiffness, expected, rtol=0, atol=1e-6 * expected[0, 0])
    assert float(found.stiffness[2, 2]) == pytest.approx(expected[2, 2], rel=1e-5)
    # What the disks take back is no small part.
    assert float(found.stiffness[2, 2]) < 0.9 * float(found.born[2, 2])


def test_energy_stiffness_is_the_second_derivative_with_respect_to_lagrangian_strain(x64, glassy):
    found = glassy.constants(glassy.position, glassy.params, None)
    assert abs(float(pressure(found.stress))) > 0.1
    size, basis = 3e-4, unit_strains()
    directions = [basis[0], basis[1], basis[2], basis[0] + basis[1], basis[0] + basis[2], basis[1] + basis[2]]
    lagrangian = size * np.stack([k * d for d in directions for k in (-2, -1, 1, 2)] + [0 * basis[0]])
    # eta = e + e^2 / 2, so 1 + e is the root of 1 + 2 eta.
    values, vectors = np.linalg.eigh(np.eye(2) + 2 * lagrangian)
    strains = np.einsum("kai,ki,kbi->kab", vectors, np.sqrt(values), vectors) - np.eye(2)
    energy = np.asarray(glassy.strained(strains)[1])
    far2, far1, next1, next2 = energy[:-1].reshape(6, 4).T
    second = (16 * (far1 + next1) - (far2 + next2) - 30 * energy[-1]) / (12 * size**2) / glassy.side**2
    expected = np.diag(second[:3])
    for value, (a, b) in zip(second[3:], [(0, 1), (0, 2), (1, 2)], strict=True):
        expected[a, b] = expected[b, a] = (value - second[a] - second[b]) / 2
    # Fourth order: 3e-4 over the distance to an instability, some 1e-2, to the fourth; round-off is 1e-13 / 1e-7.
    np.testing.assert_allclose(found.energy_stiffness, expected, rtol=0, atol=1e-6 * expected[0, 0])
    np.testing.assert_allclose(found.energy_stiffness, found.energy_stiffness.T, rtol=1e-9, atol=1e-9)
    # The stress makes a difference that this test would see.
    assert np.abs(found.stiffness - expected).max() > 1e-3 * expected[0, 0]


def test_derivative_of_the_shear_modulus_equals_that_of_relaxed_glasses(x64, glassy):
    def shear(ratio):
        params = {**glassy.params, "ratio": ratio}
        position, cell, _ = glassy.rest(params)
        return elastic_constants(glassy.interaction, position, cell, params).stiffness[2, 2]

    ratio, step = glassy.params["ratio"], 1e-4
    derivative, expected = float(jax.jit(jax.grad(shear))(ratio)), float(fourth_order(jax.jit(shear), ratio, step))
    # Fourth order in 1e-4 times the distance to an instability, some 1e-2; round-off 1e-11 / 1e-4.
    assert derivative == pytest.approx(expected, rel=1e-5)


def test_constants_are_nan_unless_rattlers_are_given(x64, disks):
    mask = rattlers(disks)
    assert mask.any()
    assert np.isfinite(disks.constants(disks.position, disks.params, mask).stiffness).all()
    assert np.isnan(disks.constants(disks.position, disks.params, jnp.zeros_like(mask)).stiffness).all()


def test_constants_are_nan_away_from_equilibrium(x64, disks):
    nudge = 1e-3 * jax.random.normal(jax.random.key(5), disks.position.shape)
    mask = rattlers(disks)
    assert np.isnan(disks.constants(disks.position + nudge, disks.params, mask).stiffness).all()
    assert np.isfinite(disks.constants(disks.position + 1e-3 * nudge, disks.params, mask).stiffness).all()


def springs(lattice, length=1.01):
    """Return the constants of springs of the given length at rest between neighbors at a distance of one."""
    spring = pair_potential(lambda distance, length: (distance / length - 1) ** 2 / 2)
    interaction = pair_interaction(spring, cutoff=1.2, parameters=("length",))
    return jax.jit(lambda x, c, p: elastic_constants(interaction, x, c, p))(*lattice, floats(length=length))


@pytest.mark.parametrize("length", [0.99, 1.0, 1.01])
def test_stiffness_is_nan_where_rows_slide_freely_or_buckle(x64, length):
    # Springs between nearest neighbors of a square lattice do not resist when its rows slide: only tension holds them.
    found = springs(lattices.square((4, 4)), length)
    assert np.isfinite(found.stiffness).all() == (length < 1)


def test_triangular_lattice_has_its_closed_form_constants_under_pressure(x64):
    found = springs(lattices.triangular((4, 3)))
    # Springs of stiffness k = U'' and tension t = U' of length a: with six neighbors, sum n_a n_b n_c n_d over three
    # bonds is 9/8 for xxxx, 3/8 for xxyy and xyxy; the area per particle is sqrt(3) / 2.
    k, tension, area = 1 / 1.01**2, -(1 - 1 / 1.01) / 1.01, np.sqrt(3) / 2
    along, across = 9 / 8 * (k - tension) / area, 3 / 8 * (k - tension) / area
    expected = np.array([[along, across, 0], [across, along, 0], [0, 0, across]])
    np.testing.assert_allclose(found.energy_stiffness, expected, atol=1e-12)
    p = -3 / 2 * tension / area
    assert float(pressure(found.stress)) == pytest.approx(p, rel=1e-12)
    np.testing.assert_allclose(found.stiffness - expected, [[-p, p, 0], [p, -p, 0], [0, 0, -p]], atol=1e-12)
    # A Bravais lattice strains affinely.
    np.testing.assert_allclose(found.nonaffine, 0, atol=1e-12)


def test_moduli_of_a_cubic_crystal_are_the_textbook_ones(x64):
    c11, c12, c44 = 151.4, 76.4, 56.4
    stiffness = jnp.diag(jnp.array([c11 - c12] * 3 + [c44] * 3)).at[:3, :3].add(c12)
    np.testing.assert_allclose(bulk_modulus(stiffness), [(c11 + 2 * c12) / 3] * 2, rtol=1e-12)
    shear = shear_modulus(stiffness)
    assert float(shear.voigt) == pytest.approx((c11 - c12 + 3 * c44) / 5, rel=1e-12)
    assert float(shear.reuss) == pytest.approx(5 / (4 / (c11 - c12) + 3 / c44), rel=1e-12)
    assert float(shear.hill) == pytest.approx((float(shear.voigt) + float(shear.reuss)) / 2, rel=1e-12)


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
def relaxed_icosahedron():
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


def test_the_icosahedron_has_six_zero_modes_and_is_a_minimum(x64, relaxed_icosahedron):
    interaction, position, params = relaxed_icosahedron
    modes = jax.jit(lambda x: normal_modes(interaction, x, None, params))(position)
    assert int(modes.zero_modes) == 6
    assert not modes.is_zero[6:].any()
    assert float(modes.lowest(1).frequency[0]) > 1
    # Icosahedral symmetry: every mode belongs to a representation of dimension 1, 3, 4 or 5.
    others = np.asarray(modes.lowest(33).frequency)
    groups = np.split(others, np.flatnonzero(np.diff(others) > 1e-6) + 1)
    assert {len(group) for group in groups} <= {1, 3, 4, 5}


def test_modes_are_orthonormal_in_the_mass_and_solve_the_eigenvalue_problem(x64, relaxed_icosahedron):
    interaction, position, params = relaxed_icosahedron
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


def test_second_derivatives_of_equal_frequencies_are_nan(x64, relaxed_icosahedron):
    def frequencies(epsilon):
        modes = normal_modes(*relaxed_icosahedron[:2], None, {"epsilon": epsilon, "sigma": 1.0})
        return jnp.where(modes.is_zero, 0, modes.frequency)

    found = jax.jit(jax.jacfwd(jax.jacfwd(frequencies)))(1.0)
    modes = normal_modes(*relaxed_icosahedron[:2], None, {"epsilon": 1.0, "sigma": 1.0})
    squared = np.asarray(modes.frequency) ** 2
    alone = np.sum(np.isclose(squared[:, None], squared, rtol=1e-9), axis=1) == 1
    # The breathing mode is the only one that has no equal; its frequency goes with the root of epsilon.
    np.testing.assert_allclose(found[alone], -modes.frequency[alone] / 4, rtol=1e-9)
    assert np.all(np.isnan(found[~alone & ~modes.is_zero])) and alone.sum() == 1


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


@every(
    ("build", "repeats", "shells"),
    [
        (lattices.face_centered_cubic, (4, 4, 4), {1.0: 12, 2**0.5: 6, 3**0.5: 24, 2.0: 12, 5**0.5: 24}),
        (lattices.diamond, (3, 3, 3), {1.0: 4, (8 / 3) ** 0.5: 12, (11 / 3) ** 0.5: 12}),
        (lattices.triangular, (7, 4), {1.0: 6, 3**0.5: 6, 2.0: 6, 7**0.5: 12}),
        (lattices.square, (7, 7), {1.0: 4, 2**0.5: 4, 2.0: 4, 5**0.5: 8}),
    ],
)
def test_crystal_has_its_shells(x64, build, repeats, shells):
    lattice = build(repeats)
    count, dimension = lattice.position.shape
    reach, bins = float(max(shells)) * 1.02, 80
    volume = float(jnp.diagonal(lattice.cell).prod())
    for cell in (lattice.cell, jnp.diagonal(lattice.cell)):
        # Where the origin is makes no difference, nor how many cells away an atom is.
        moved = lattice.position + 0.123 + jnp.asarray(np.random.default_rng(1).integers(-2, 3, (count, 1))) * cell[0]
        found = np.asarray(distribution(moved if cell.ndim == 2 else lattice.position, cell, reach, bins))
        ball = np.pi if dimension == 2 else 4 / 3 * np.pi
        edges = reach * np.arange(bins + 1) / bins
        neighbors = found * count / volume * ball * np.diff(edges**dimension)
        expected = np.zeros(bins)
        for distance, number in shells.items():
            expected[int(distance / reach * bins)] += number
        # Whole numbers up to the round-off of their normalization.
        np.testing.assert_allclose(neighbors, expected, rtol=0, atol=1e-10)


@every("dimension", [2, 3])
def test_ideal_gas_has_one_less_a_particle_at_every_distance(x64, dimension):
    count, bins, copies, side = 101, 10, 200, 3.0
    position = jax.random.uniform(jax.random.key(0), (copies, count, dimension)) * side
    found = np.asarray(jax.vmap(lambda x: distribution(x, jnp.full(dimension, side), 1.5, bins))(position))
    # The spread of the mean over independent configurations, from their own scatter.
    error = found.std(axis=0, ddof=1) / np.sqrt(copies)
    # The innermost of ten shells in three dimensions holds 1/1000 of a ball of half the volume: 520 pairs in all, 4 %.
    assert error.max() < 0.06
    assert error[-1] < 0.004
    # Ten normal deviates: one in 300 draws has one beyond 3.6.
    assert np.abs((found.mean(axis=0) - (1 - 1 / count)) / error).max() < 3.6
