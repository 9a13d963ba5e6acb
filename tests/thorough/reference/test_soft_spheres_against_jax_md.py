"""Soft spheres of simkit against those of jax-md: energies, forces and relaxed packings."""

import jax
import jax.numpy as jnp
import pytest

from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.molecular import spaces
from tests.molecular import packings
from tests.reference.test_soft_spheres_against_jax_md import PARTICLES, reference_energy


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
