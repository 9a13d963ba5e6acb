"""Silicon by Stillinger and Weber: lattice constant, cohesive energy and elastic constants of the diamond crystal."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.interactions.stillinger_weber import SILICON, stillinger_weber
from simkit.molecular.structures import lattices

# eV / angstrom^3 in GPa (CODATA 2018).
GIGAPASCAL = 160.2176634
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


@pytest.fixture(scope="module")
def stiffness(crystal):
    """Return the elastic constants with the atoms held at the strained sites, and with them free to relax."""
    interaction, params, (position, cell), neighbors = crystal
    with jax.enable_x64(True):
        volume = jnp.linalg.det(cell)

        # Coordinates: strain, and displacements u of the unstrained crystal, x = (X + u) (1 + strain).
        def residual(strain, displacement):
            deformation = jnp.eye(3) + strain
            at = (position + displacement) @ deformation, cell @ deformation
            stress = interaction.stress(*at, params, neighbors)
            return stress, -interaction.force(*at, params, neighbors) @ deformation.T

        derivatives = jax.jit(jax.jacfwd(residual, argnums=(0, 1)))(jnp.zeros((3, 3)), jnp.zeros_like(position))
        # At zero stress the derivative of the stress is the second derivative of the energy over the volume.
        (frozen, _), (coupling, hessian) = derivatives
        coupling, hessian = coupling.reshape(3 * ATOMS, 9), hessian.reshape(3 * ATOMS, 3 * ATOMS)
        # Translations cost nothing and nothing pushes along them: the pseudo-inverse leaves them out.
        relaxed_displacement = np.linalg.pinv(hessian, rcond=1e-10) @ coupling
        softening = (coupling.T @ relaxed_displacement / volume).reshape(3, 3, 3, 3)
        return np.asarray(frozen) * GIGAPASCAL, np.asarray(frozen - softening) * GIGAPASCAL


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


def test_elastic_constants_are_the_published_ones(stiffness):
    _, relaxed = stiffness
    assert relaxed[0, 0, 0, 0] == pytest.approx(151.4, rel=0.01)
    assert relaxed[0, 0, 1, 1] == pytest.approx(76.4, rel=0.01)
    assert relaxed[0, 1, 0, 1] == pytest.approx(56.4, rel=0.01)


def test_shear_is_twice_as_stiff_with_the_sublattices_held(stiffness):
    frozen, relaxed = stiffness
    # The published 117.2 GPa belongs to epsilon = 2.315 eV, which makes the cohesive energy 4.63 eV as in experiment,
    # and goes with C11 = 161.6, C12 = 81.6, C44 = 60.3 (Balamane, Halicioglu, Tiller, Phys. Rev. B 46, 2250 (1992),
    # doi:10.1103/PhysRevB.46.2250). Elastic constants are proportional to epsilon.
    rescaled = 2.315 / SILICON["epsilon"]
    assert rescaled * frozen[0, 1, 0, 1] == pytest.approx(117.2, rel=0.01)
    assert rescaled * relaxed[0, 1, 0, 1] == pytest.approx(60.3, rel=0.01)
    assert rescaled * relaxed[0, 0, 0, 0] == pytest.approx(161.6, rel=0.01)
    assert rescaled * relaxed[0, 0, 1, 1] == pytest.approx(81.6, rel=0.01)
    # Stretching along the axes moves the sublattices nowhere: nothing to relax.
    assert frozen[0, 0, 0, 0] == pytest.approx(relaxed[0, 0, 0, 0], rel=1e-8)
    assert frozen[0, 0, 1, 1] == pytest.approx(relaxed[0, 0, 1, 1], rel=1e-8)


def test_elastic_constants_have_cubic_symmetry(stiffness):
    for constants in stiffness:
        for axis in range(3):
            after = (axis + 1) % 3
            values = [constants[axis, axis, axis, axis], constants[axis, axis, after, after]]
            values.append(constants[axis, after, axis, after])
            first = [constants[0, 0, 0, 0], constants[0, 0, 1, 1], constants[0, 1, 0, 1]]
            # The pseudo-inverse amplifies round-off by the ratio of the stiffest to the softest mode, about 100.
            np.testing.assert_allclose(values, first, rtol=1e-9)


def test_bulk_modulus_from_elastic_constants_is_that_of_the_equation_of_state(x64, crystal, stiffness):
    interaction, params, (position, cell), neighbors = crystal

    def pressure(stretch):
        stress = interaction.stress(position * stretch, cell * stretch, params, neighbors)
        return -jnp.trace(stress) / 3

    bulk = -float(jax.jit(jax.jacfwd(pressure))(1.0)) / 3 * GIGAPASCAL
    _, relaxed = stiffness
    assert (relaxed[0, 0, 0, 0] + 2 * relaxed[0, 0, 1, 1]) / 3 == pytest.approx(bulk, rel=1e-9)
    assert math.isclose(bulk, 101.4, rel_tol=0.01)
