"""Elastic constants against finite strains of relaxed systems, also under pressure, and moduli."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import spaces
from simkit.molecular.analysis.elasticity import (
    bulk_modulus,
    directional_shear_modulus,
    elastic_constants,
    pressure,
    shear_modulus,
)
from simkit.molecular.analysis.order import contact_network, load_bearing
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.neighbors import pairs
from simkit.molecular.potentials import pair_potential, soft_sphere
from simkit.molecular.structures import lattices
from tests.molecular.analysis.test_elasticity import floats
from tests.physics.test_strained_glass import LARGE, Disordered, difference_of_stress, unit_strains
from tests.tables import every


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
    derivative = float(jax.jit(jax.grad(shear))(ratio))
    far2, far1, next1, next2 = map(float, jax.vmap(jax.jit(shear))(ratio + step * jnp.array([-2, -1, 1, 2])))
    expected = (8 * (next1 - far1) - (next2 - far2)) / (12 * step)
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


def isotropic(bulk, shear, dimension):
    count = 3 if dimension == 2 else 6
    stiffness = np.diag([2.0 * shear] * dimension + [1.0 * shear] * (count - dimension))
    stiffness[:dimension, :dimension] += bulk - 2 * shear / dimension
    return jnp.asarray(stiffness)


@every("dimension", [2, 3])
def test_moduli_of_an_isotropic_material_are_those_of_its_stiffness(x64, dimension):
    stiffness = isotropic(5.0, 2.0, dimension)
    np.testing.assert_allclose(bulk_modulus(stiffness), [5, 5], rtol=1e-12)
    np.testing.assert_allclose(shear_modulus(stiffness), [2, 2], rtol=1e-12)
    slide, normal = np.eye(dimension)[0] + 0.5 * np.eye(dimension)[1], np.eye(dimension)[0] - 2 * np.eye(dimension)[1]
    assert float(directional_shear_modulus(stiffness, slide, normal)) == pytest.approx(2, rel=1e-12)


def test_moduli_of_a_cubic_crystal_are_the_textbook_ones(x64):
    c11, c12, c44 = 151.4, 76.4, 56.4
    stiffness = jnp.diag(jnp.array([c11 - c12] * 3 + [c44] * 3)).at[:3, :3].add(c12)
    np.testing.assert_allclose(bulk_modulus(stiffness), [(c11 + 2 * c12) / 3] * 2, rtol=1e-12)
    shear = shear_modulus(stiffness)
    assert float(shear.voigt) == pytest.approx((c11 - c12 + 3 * c44) / 5, rel=1e-12)
    assert float(shear.reuss) == pytest.approx(5 / (4 / (c11 - c12) + 3 / c44), rel=1e-12)
    assert float(shear.hill) == pytest.approx((float(shear.voigt) + float(shear.reuss)) / 2, rel=1e-12)
    softest = directional_shear_modulus(stiffness, [1, -1, 0], [1, 1, 0])
    assert float(softest) == pytest.approx((c11 - c12) / 2, rel=1e-12)
    assert float(directional_shear_modulus(stiffness, [1, 0, 0], [0, 0, 1])) == pytest.approx(c44, rel=1e-12)
