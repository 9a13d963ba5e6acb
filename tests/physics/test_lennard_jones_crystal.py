"""The Lennard-Jones crystal at zero temperature and pressure, by lattice sums over the full range of the potential."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.potentials import lennard_jones, tail_energy, tail_pressure
from simkit.molecular.structures import lattices

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
