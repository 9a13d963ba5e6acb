"""Soft spheres of simkit against those of jax-md: energies, forces and relaxed packings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import spaces
from simkit.molecular.neighbors import pairs
from simkit.molecular.potentials import per_pair, soft_sphere

PARTICLES = 32


def reference_energy(jax_md, box, exponent=2.0):
    """Return jax-md's energy of the 50:50 mixture of diameters 1 and 1.4."""
    displacement, shift = jax_md.space.periodic(box)
    species = np.repeat([0, 1], PARTICLES // 2)
    sigma = jnp.array([[1.0, 1.2], [1.2, 1.4]])
    # Python numbers become single precision there, and 1 / alpha with them; arrays keep theirs.
    epsilon, alpha = jnp.asarray(1.0), jnp.asarray(exponent)
    energy = jax_md.energy.soft_sphere_pair(displacement, species=species, sigma=sigma, epsilon=epsilon, alpha=alpha)
    return energy, shift


@pytest.mark.parametrize("exponent", [2.0, 2.5, 3.0])
@pytest.mark.parametrize("dimension", [2, 3])
def test_energy_and_forces_of_random_positions_equal_jax_md(x64, jax_md, exponent, dimension):
    box = jnp.array([3.0, 3.2, 2.9][:dimension])
    position = jnp.asarray(np.random.default_rng(0).uniform(0, 1, (PARTICLES, dimension))) * box
    energy, _ = reference_energy(jax_md, box, exponent)
    potential = soft_sphere(exponent)
    sigma = per_pair(jnp.array([[1.0, 1.2], [1.2, 1.4]]), jnp.repeat(jnp.arange(2), PARTICLES // 2))
    apart = pairs.all_pairs(position, spaces.periodic(box))
    ours = pairs.energy_per_particle(apart, potential, epsilon=1.0, sigma=sigma).sum()
    # Round-off of a few hundred contacts is 1e-13; 1e-10 would show a constant held in single precision.
    assert float(ours) == pytest.approx(float(energy(position)), rel=1e-10)
    forces = pairs.forces(apart, potential, epsilon=1.0, sigma=sigma)
    assert float(jnp.abs(forces).max()) > 0.1
    np.testing.assert_allclose(forces, -jax.grad(energy)(position), rtol=1e-10, atol=1e-11)
