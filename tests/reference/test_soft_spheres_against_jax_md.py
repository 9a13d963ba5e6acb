"""Soft spheres of simkit against those of jax-md: energies, forces and relaxed packings."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.molecular import spaces
from simkit.molecular.neighbors import pairs
from simkit.molecular.potentials import per_pair, soft_sphere
from tests.molecular import packings

PARTICLES = 32


@pytest.fixture(scope="module")
def jax_md():
    """Import jax-md once: its import takes seconds and warns about its own dependencies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("jax_md")


@pytest.fixture(scope="module")
def packing():
    """Return the positions, box and largest remaining force of a packing relaxed by simkit."""
    with jax.enable_x64(True):
        simulation = packings.packing(particles=PARTICLES, force_tolerance=1e-13)
        params = simulation.params
        start = simulation.init(params, jax.random.key(0))
        result = jax.jit(converge(simulation, 20_000))(start, params)
        assert int(result.status) == Status.CONVERGED
        observed = simulation.observe(result.state, params)
        return {**observed, **simulation.diagnose(result.state, params)}


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


def test_energy_and_forces_of_the_relaxed_packing_equal_jax_md(x64, jax_md, packing):
    energy, _ = reference_energy(jax_md, packing["box"])
    assert float(packing["energy"]) == pytest.approx(float(energy(packing["position"])), rel=1e-10)
    left = jnp.linalg.norm(jax.grad(energy)(packing["position"]), axis=-1).max()
    # Wrapping the positions into the box rounds them by 1e-15, and so the forces, of stiffness one per contact.
    assert float(left) == pytest.approx(float(packing["max_force"]), abs=2e-14)


def test_fire_of_jax_md_stays_at_the_minimum_of_simkit(x64, jax_md, packing):
    energy, shift = reference_energy(jax_md, packing["box"])
    start, step = jax_md.minimize.fire_descent(energy, shift)
    state = jax.jit(lambda x: jax.lax.fori_loop(0, 100, lambda _, s: step(s), start(x)))(packing["position"])
    moved = spaces.displacement(spaces.periodic(packing["box"]), state.position, packing["position"])
    # A constant force of 1e-13 for 100 steps of at most 0.4 would move a particle by 1e-13 * 40^2 / 2 = 8e-11;
    # FIRE never adds speed beyond that, and the minimum only pulls back.
    assert float(jnp.abs(moved).max()) < 1e-10
