"""Crystals: published energies, lattice constants and elastic constants."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.analysis.elasticity import bulk_modulus, elastic_constants, pressure, shear_modulus
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.interactions.stillinger_weber import SILICON, stillinger_weber
from simkit.molecular.potentials import lennard_jones, tail_energy, tail_pressure
from simkit.molecular.structures import lattices

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("method", ["all_pairs", "neighbor_list"])
def test_lennard_jones_reference_configuration_of_nist(x64, method):
    position = jnp.asarray(np.loadtxt(DATA / "nist_lennard_jones_configuration_4.txt"))
    cell, unit = jnp.full(3, 8.0), {"epsilon": jnp.asarray(1.0), "sigma": jnp.asarray(1.0)}
    interaction = pair_interaction(lennard_jones(), cutoff=3.0, method=method)
    neighbors = interaction.prepare(position, cell, unit)
    # The reference is given to the last digit shown.
    assert float(interaction.energy(position, cell, unit, neighbors)) == pytest.approx(-16.790321, abs=1e-6)
    stress = interaction.stress(position, cell, unit, neighbors)
    # NIST's virial is -sum r dU/dr.
    assert float(-jnp.trace(stress) * 8**3) == pytest.approx(-46.249197, abs=1e-6)


# Partners are summed up to this many nearest-neighbor distances, those beyond as a continuum. The continuum begins at
# the radius of the sphere that holds as many particles, within half a spacing of the cut; what is left is how unevenly
# the last shell is filled: it shifts some R^1.3 = 50 particles by half a spacing, at 4 / R^6 (6 / R) each: 6e-7.
RADIUS = 20.0
LENGTHS = {"epsilon": 1.0, "sigma": 1.0}
# Particles per volume times spacing^3, for every close packing.
CLOSE_PACKED = np.sqrt(2)


def reach(partners):
    """Return the radius, in spacings, of a sphere that holds the partners and the particle itself."""
    return (3 * (len(partners) + 1) / (4 * np.pi * CLOSE_PACKED)) ** (1 / 3)


def partners(crystal, repeats):
    """Return the vectors from a particle to all others within the radius, for a spacing of one."""
    lattice = crystal(repeats)
    position = np.asarray(lattice.position)
    center = position[np.linalg.norm(position - np.diag(lattice.cell) / 2, axis=1).argmin()]
    # The sphere fits into the piece of crystal.
    assert min(center.min(), (np.diag(lattice.cell) - center).min()) > RADIUS + 1
    apart = position - center
    distance = np.linalg.norm(apart, axis=1)
    return jnp.asarray(apart[(distance > 0) & (distance <= RADIUS)])


@pytest.fixture(scope="module")
def cubic():
    with jax.enable_x64(True):
        return partners(lattices.face_centered_cubic, (31, 31, 31))


@pytest.fixture(scope="module")
def hexagonal():
    with jax.enable_x64(True):
        return partners(lattices.hexagonal_close_packed, (44, 26, 28))


def energy_per_particle(spacing, partners):
    distance = spacing * jnp.linalg.norm(partners, axis=1)
    near = lennard_jones().energy(distance, **LENGTHS).sum() / 2
    return near + tail_energy(CLOSE_PACKED / spacing**3, cutoff=reach(partners) * spacing, **LENGTHS)


def relaxed(partners):
    """Return the spacing of least energy, by Newton's method, and the energy there."""
    slope = jax.grad(energy_per_particle)
    newton = jax.jit(lambda a: a - slope(a, partners) / jax.grad(slope)(a, partners))
    spacing = jnp.asarray(1.09)
    for _ in range(6):
        spacing = newton(spacing)
    assert abs(float(slope(spacing, partners))) < 1e-10
    return spacing, float(energy_per_particle(spacing, partners))


def test_face_centered_cubic_crystal_has_its_known_energy_and_spacing(x64, cubic):
    spacing, energy = relaxed(cubic)
    assert energy == pytest.approx(-8.610200, abs=1e-5)
    assert float(spacing) == pytest.approx(1.0901730, abs=1e-5)


def test_hexagonal_close_packed_crystal_is_lower_by_one_part_in_ten_thousand(x64, cubic, hexagonal):
    energy = relaxed(hexagonal)[1]
    assert energy == pytest.approx(-8.611070, abs=1e-5)
    lower = relaxed(cubic)[1] - energy
    # 8.7e-4 of 8.6, known to the 1e-5 of each.
    assert lower == pytest.approx(8.70e-4, abs=2e-5)


def test_relaxed_crystal_is_at_zero_pressure_by_the_virial(x64, cubic):
    spacing, _ = relaxed(cubic)
    distance = spacing * jnp.linalg.norm(cubic, axis=1)
    density = CLOSE_PACKED / spacing**3
    virial = (distance * lennard_jones().force(distance, **LENGTHS)).sum() / 2
    pressure = density * virial / 3 + tail_pressure(density, cutoff=reach(cubic) * spacing, **LENGTHS)
    # The derivative of the energy is zero to 1e-10, and this is the same sum of some 5e4 terms.
    assert float(pressure) == pytest.approx(0, abs=1e-9)


def test_elastic_constants_are_the_known_ones(x64, cubic):
    spacing, _ = relaxed(cubic)
    volume = spacing**3 / CLOSE_PACKED

    # Every particle of a Bravais lattice is a center of symmetry, so nothing relaxes inside the strained cell. What
    # lies beyond the radius contributes as its energy does, 1e-4, times some ten: 1e-5 of the constants.
    def strained(strain):
        distance = spacing * jnp.linalg.norm(cubic + cubic @ strain, axis=1)
        return lennard_jones().energy(distance, **LENGTHS).sum() / 2 / volume

    stiffness = jax.hessian(strained)(jnp.zeros((3, 3)))
    assert float(stiffness[0, 0, 0, 0]) == pytest.approx(105.182, rel=1e-3)
    assert float(stiffness[0, 0, 1, 1]) == pytest.approx(60.187, rel=1e-3)
    assert float(stiffness[0, 1, 0, 1]) == pytest.approx(60.187, rel=1e-3)
    bulk = (stiffness[0, 0, 0, 0] + 2 * stiffness[0, 0, 1, 1]) / 3
    assert float(bulk) == pytest.approx(75.185, rel=1e-3)


ATOMS = 64


@pytest.fixture(scope="module")
def crystal():
    """Return the interaction, its parameters, and the relaxed crystal with its neighbors."""
    with jax.enable_x64(True):
        interaction = stillinger_weber()
        params = {name: jnp.asarray(value) for name, value in SILICON.items()}
        start = lattices.diamond((2, 2, 2), spacing=2.35)
        neighbors = jax.jit(interaction.prepare)(start.position, start.cell, params)
        assert not bool(neighbors.overflowed)

        @jax.jit
        def pressure(spacing):
            lattice = lattices.diamond((2, 2, 2), spacing=spacing)
            return jnp.trace(interaction.stress(lattice.position, lattice.cell, params, neighbors)) / 3

        spacing, derivative = jnp.asarray(2.35), jax.jit(jax.jacfwd(pressure))
        for _ in range(6):
            spacing = spacing - pressure(spacing) / derivative(spacing)
        assert abs(float(pressure(spacing))) < 1e-12
        lattice = lattices.diamond((2, 2, 2), spacing=spacing)
        return interaction, params, lattice, neighbors


def test_lattice_constant_and_cohesive_energy_are_those_of_silicon(x64, crystal):
    interaction, params, (position, cell), neighbors = crystal
    assert float(cell[0, 0]) / 2 == pytest.approx(5.431, abs=1e-3)
    assert float(interaction.energy(position, cell, params, neighbors)) / ATOMS == pytest.approx(-4.3366, abs=1e-4)


def test_the_bond_length_is_two_to_the_sixth_of_sigma(x64, crystal):
    # B is chosen such that the pair energy has its minimum there, and the angles add nothing in diamond; B is
    # given to ten digits.
    _, _, (position, _), _ = crystal
    bond = float(jnp.linalg.norm(position[4] - position[0]))
    assert bond == pytest.approx(2 ** (1 / 6) * SILICON["sigma"], rel=1e-8)


def test_the_perfect_crystal_is_a_minimum(x64, crystal):
    interaction, params, (position, cell), neighbors = crystal
    # Four bonds of force zero by symmetry; stiffness 10 eV / angstrom^2 times coordinates rounded by 1e-15.
    assert float(jnp.abs(interaction.force(position, cell, params, neighbors)).max()) < 1e-12
    hessian = -jax.jit(jax.jacfwd(interaction.force))(position, cell, params, neighbors)
    modes = np.linalg.eigvalsh(hessian.reshape(3 * ATOMS, 3 * ATOMS))
    np.testing.assert_allclose(modes[:3], 0, atol=1e-10)
    assert modes[3] > 0.1


# eV / angstrom^3 in GPa (CODATA 2018).
GIGAPASCAL = 160.2176634
# epsilon in eV that makes the cohesive energy that of experiment, 4.63 eV.
RESCALED = 2.315


@pytest.fixture(scope="module")
def silicon():
    with jax.enable_x64(True):
        # The pair energy has its minimum at this bond, and the angles add nothing in diamond.
        lattice = lattices.diamond((2, 2, 2), spacing=2 ** (1 / 6) * SILICON["sigma"])
        params = {name: jnp.asarray(value) for name, value in SILICON.items()}
        found = jax.jit(lambda x, c, p: elastic_constants(stillinger_weber(), x, c, p))(*lattice, params)
        # B is given to ten digits.
        assert float(jnp.abs(found.stress).max()) < 1e-9
        return found


def cubic_constants(stiffness):
    """Return C11, C12 and C44 in GPa."""
    return tuple(float(value) * GIGAPASCAL for value in (stiffness[0, 0], stiffness[0, 1], stiffness[3, 3]))


def test_silicon_has_its_published_elastic_constants(x64, silicon):
    assert cubic_constants(silicon.stiffness) == pytest.approx((151.4, 76.4, 56.4), rel=0.01)
    assert float(bulk_modulus(silicon.stiffness).hill) * GIGAPASCAL == pytest.approx(101.4, rel=0.01)


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="measured 109.76 GPa: 117.2 belongs to epsilon = 2.315 eV, not to 2.1683 eV",
)
def test_silicon_with_frozen_sublattices_has_the_shear_modulus_quoted_for_it(x64, silicon):
    assert cubic_constants(silicon.born)[2] == pytest.approx(117.2, rel=0.01)


def test_silicon_with_frozen_sublattices_has_the_published_shear_modulus_at_its_epsilon(x64, silicon):
    # Balamane, Halicioglu, Tiller, Phys. Rev. B 46, 2250 (1992), doi:10.1103/PhysRevB.46.2250, give 117.2 GPa along
    # with 161.6, 81.6 and 60.3 for the relaxed constants. Elastic constants are proportional to epsilon.
    scale = RESCALED / SILICON["epsilon"]
    assert scale * cubic_constants(silicon.born)[2] == pytest.approx(117.2, rel=0.01)
    assert np.multiply(scale, cubic_constants(silicon.stiffness)) == pytest.approx((161.6, 81.6, 60.3), rel=0.01)


def test_silicon_is_cubic(x64, silicon):
    expected = np.zeros((6, 6))
    c11, c12, c44 = cubic_constants(silicon.stiffness)
    expected[:3, :3] = c12
    expected[np.arange(6), np.arange(6)] = [c11] * 3 + [c44] * 3
    # The solve ends at 2e-12 of its right-hand side, and stiffest over softest mode is about 100.
    np.testing.assert_allclose(silicon.stiffness * GIGAPASCAL, expected, atol=1e-8 * c11)
    # Stretching along the axes moves the sublattices nowhere: nothing to relax.
    np.testing.assert_allclose(silicon.born[:3, :3] * GIGAPASCAL, expected[:3, :3], atol=1e-7 * c11)


def test_bulk_modulus_of_silicon_is_that_of_its_equation_of_state(x64, silicon):
    position, cell = lattices.diamond((2, 2, 2), spacing=2 ** (1 / 6) * SILICON["sigma"])
    interaction, params = stillinger_weber(), {name: jnp.asarray(value) for name, value in SILICON.items()}

    @jax.jit
    def pressure_at(stretch):
        at = position * stretch, cell * stretch, params
        return pressure(interaction.stress(*at, interaction.prepare(*at)))

    step = 1e-4
    bulk = -float(pressure_at(1 + step) - pressure_at(1 - step)) / (2 * step) / 3
    # The error of the difference is step^2 times a third derivative of 100 times the first.
    assert float(bulk_modulus(silicon.stiffness).hill) == pytest.approx(bulk, rel=1e-5)


def test_face_centered_cubic_lennard_jones_has_its_published_elastic_constants(x64):
    # At its spacing of zero pressure over the full range. The cut-off lies between shells: no pair crosses it.
    spacing, cutoff, repeats = 1.0901730, 3.1, 5
    position, cell = lattices.face_centered_cubic((repeats,) * 3, spacing=spacing)
    interaction = pair_interaction(lennard_jones(), cutoff=cutoff * spacing, capacity=256, skin=0.01)
    params = {"epsilon": jnp.asarray(1.0), "sigma": jnp.asarray(1.0)}
    found = jax.jit(lambda x, c, p: elastic_constants(interaction, x, c, p))(position, cell, params)

    # Beyond: a continuum that begins at the radius of the sphere that holds as many particles as there are within. With
    # U = -4 / r^6, C_abcd = 2 pi rho^2 <n_a n_b n_c n_d> int (r^2 U'' - r U') r^2 dr, where int = -64 / R^3, and <> is
    # 1/5 for xxxx, 1/15 for xxyy and xyxy.
    density = np.sqrt(2) / spacing**3
    apart = np.asarray(position - position[0]) / np.diag(cell)
    apart = (apart - np.round(apart)) * np.diag(cell)
    within = int((np.linalg.norm(apart, axis=1) < cutoff * spacing).sum())
    beyond = -128 * np.pi * density**2 / (3 * within / (4 * np.pi * density))

    # What is within is under pressure, which only what is beyond makes up for: the second derivative of the energy is
    # what adds up, and at zero pressure in all it is the stiffness. Other cut-offs between 2.9 and 3.6 spacings agree
    # to 1e-3: the shells fill the continuum unevenly.
    assert float(pressure(found.stress)) > 0.4
    stiffness = np.asarray(found.energy_stiffness)
    c11, c12 = stiffness[0, 0] + beyond / 5, stiffness[0, 1] + beyond / 15
    assert c11 == pytest.approx(105.182, rel=1e-3)
    assert c12 == pytest.approx(60.187, rel=1e-3)
    # Cauchy's relation, for central forces where every particle is a center of symmetry.
    assert stiffness[3, 3] == pytest.approx(stiffness[0, 1], rel=1e-10)
    assert (c11 + 2 * c12) / 3 == pytest.approx(75.185, rel=1e-3)
    assert float(shear_modulus(stiffness).reuss) < float(shear_modulus(stiffness).voigt)
