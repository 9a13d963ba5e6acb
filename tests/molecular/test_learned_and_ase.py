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

import simkit
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


def test_a_learned_energy_keeps_symmetries_of_its_cell_and_its_stress_is_the_derivative_of_its_energy(model, weights):
    crystal = molecular.structures.face_centered_cubic((4, 4, 4), spacing=1.2)
    position = crystal.position + 0.05 * np.random.default_rng(0).normal(size=crystal.position.shape)
    cell = crystal.cell + 0.3 * np.eye(3)[::-1]
    roomy = model.sized_like(model.prepare(position, cell, {}).resized(80))

    @jax.jit
    def evaluated(position, cell):
        neighbors = roomy.prepare(position, cell, {"weights": weights})
        return roomy.several(("energy", "force", "stress"), position, cell, {"weights": weights}, neighbors)

    energy, force, stress = evaluated(position, cell)
    moved = evaluated(position + 7 * cell[1] + 0.1, cell)
    np.testing.assert_allclose(moved[0], energy, rtol=1e-12)
    np.testing.assert_allclose(moved[1], force, atol=1e-11)
    strain = 1e-5 * np.outer([1, 0, 0], [0, 1, 0])
    ends = [evaluated(position @ (np.eye(3) + s), cell @ (np.eye(3) + s))[0] for s in (strain, -strain)]
    assert float(stress[0, 1]) == pytest.approx(float(ends[0] - ends[1]) / 2e-5 / np.linalg.det(cell), rel=1e-6)
    change = 1e-5 * np.random.default_rng(1).normal(size=position.shape)
    ends = [evaluated(position + s * change, cell)[0] for s in (1, -1)]
    assert float(ends[1] - ends[0]) / 2 == pytest.approx(float(np.sum(force * change)), rel=1e-6)
    assert np.isnan(evaluated(position, 0.3 * cell)[0])


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


def test_tools_of_ase_relax_a_cell_by_a_calculator_and_partly_periodic_atoms_need_an_orthorhombic_cell():
    pairs = molecular.interactions.stillinger_weber()
    silicon = ase.build.bulk("Si", a=5.6, cubic=True) * (2, 2, 2)
    silicon.calc = molecular.interactions.ase_calculator(
        pairs, {"epsilon": 2.1683, "sigma": 2.0951, "tetrahedral_strength": 21.0}
    )
    ase.optimize.BFGS(ase.filters.UnitCellFilter(silicon), logfile=None).run(fmax=1e-4)
    assert silicon.cell.lengths() / 2 == pytest.approx(5.431, abs=1e-3)
    assert silicon.get_potential_energy() / len(silicon) == pytest.approx(-4.3366, abs=1e-4)
    slab = ase.build.bulk("Si", a=5.43) * (3, 3, 3)
    slab.pbc = (True, True, False)
    slab.calc = silicon.calc
    with pytest.raises(simkit.UserError, match="not orthorhombic; give lattice vectors"):
        slab.get_potential_energy()
