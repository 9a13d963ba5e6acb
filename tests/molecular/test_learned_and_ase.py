"""Learned energies on simkit's lists, and interactions as calculators of ASE."""

import ase
import ase.build
import ase.calculators.lj
import ase.filters
import ase.optimize
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import molecular

CUTOFF = 2.5
CENTERS = jnp.linspace(0.8, CUTOFF, 8)


def radial_network(weights, position, species, cell, neighbors):
    """Return the energy of each particle: a layer of neurons of the densities at several radii."""
    r = jnp.where(neighbors.is_pair, neighbors.distance, CUTOFF)
    window = jnp.where(neighbors.is_pair, (1 - (r / CUTOFF) ** 2) ** 3, 0)
    density = (window[..., None] * jnp.exp(-4 * (r[..., None] - CENTERS) ** 2)).sum(axis=1)
    hidden = jnp.tanh((density[:, :, None] * weights["in"]).sum(axis=1))
    core = jnp.where(neighbors.is_pair, window / r**12, 0).sum(axis=1) / 2
    return core + (hidden * weights["out"]).sum(axis=1)


@pytest.fixture(scope="module")
def model():
    return molecular.interactions.learned_energy(radial_network, cutoff=CUTOFF, capacity=4)


@pytest.fixture(scope="module")
def weights():
    keys = jax.random.split(jax.random.key(1))
    return {"in": 0.3 * jax.random.normal(keys[0], (8, 4)), "out": -jnp.abs(jax.random.normal(keys[1], (4,)))}


@pytest.fixture(autouse=True, scope="module")
def double_precision():
    with jax.enable_x64(True):
        yield


def test_a_calculator_gives_the_energies_forces_and_stresses_of_ase():
    pairs = molecular.interactions.pair_interaction(molecular.potentials.lennard_jones(), cutoff=6.0, capacity=8)
    atoms = ase.build.bulk("Ar", "fcc", a=5.2, cubic=True) * (4, 4, 4)
    atoms.rattle(0.1, seed=3)
    results = {}
    for name, each in {
        "ase": ase.calculators.lj.LennardJones(sigma=3.4, epsilon=0.0104, rc=6.0),
        "simkit": molecular.interactions.ase_calculator(pairs, {"epsilon": 0.0104, "sigma": 3.4}),
    }.items():
        atoms.calc = each
        shift = 4 * 0.0104 * ((3.4 / 6) ** 12 - (3.4 / 6) ** 6) if name == "ase" else 0.0  # ASE subtracts U(cut-off)
        bonds = 0 if not shift else len(ase.neighborlist.neighbor_list("i", atoms, 6.0)) / 2
        results[name] = atoms.get_potential_energy() + bonds * shift, atoms.get_forces(), atoms.get_stress()
    for ours, theirs in zip(results["simkit"], results["ase"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
