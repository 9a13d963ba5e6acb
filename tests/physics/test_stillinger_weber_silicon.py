"""Silicon by Stillinger and Weber: lattice constant, cohesive energy and stability of the diamond crystal."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.interactions.stillinger_weber import SILICON, stillinger_weber
from simkit.molecular.structures import lattices

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
