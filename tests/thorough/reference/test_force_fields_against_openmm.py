"""Charges, dispersion and bonded terms against OpenMM's Reference platform (extra `peers`), computed live."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import molecular
from simkit.core.settings import read
from simkit.molecular.description.composition import composition
from simkit.molecular.description.settings import SETTINGS

SIDE, CUTOFF = 2.0, 0.9
# A chain of five atoms with a branch, kJ/mol and nm.
BONDS = [[0, 1], [1, 2], [2, 3], [3, 4], [2, 5]]
CHARGES = [0.3, -0.5, 0.2, 0.1, -0.4, 0.3]
EXCLUDED = molecular.bonded.molecule(6, BONDS)


@pytest.fixture(scope="module")
def openmm():
    return pytest.importorskip("openmm")


def places(seed, copies=20):
    """Return the places of the atoms of some molecules in a cell, (6 copies, 3)."""
    random = np.random.default_rng(seed)
    shape = np.array(
        [[0, 0, 0], [0.15, 0, 0], [0.2, 0.14, 0], [0.35, 0.15, 0.02], [0.4, 0.28, 0.1], [0.15, 0.22, 0.12]]
    )
    sites = np.stack(np.meshgrid(*[np.arange(3)] * 3, indexing="ij"), -1).reshape(-1, 3)[:copies] * SIDE / 3
    turns = [np.linalg.qr(random.normal(size=(3, 3)))[0] for _ in range(copies)]
    atoms = np.concatenate([site + shape @ turn for site, turn in zip(sites, turns, strict=True)])
    return atoms + random.normal(0, 0.01, atoms.shape)


def theirs(openmm, position, copies=20):
    """Return energy and forces of OpenMM."""
    system, charges = openmm.System(), openmm.NonbondedForce()
    system.setDefaultPeriodicBoxVectors(*(SIDE * np.eye(3)))
    charges.setNonbondedMethod(charges.Ewald)
    charges.setCutoffDistance(CUTOFF)
    charges.setEwaldErrorTolerance(1e-12)
    charges.setUseDispersionCorrection(False)
    bonds, angles, dihedrals = openmm.HarmonicBondForce(), openmm.HarmonicAngleForce(), openmm.PeriodicTorsionForce()
    for copy in range(copies):
        first = 6 * copy
        for charge in CHARGES:
            system.addParticle(12.0)
            charges.addParticle(charge, 0.3, 0.4)
        for one, other in BONDS:
            bonds.addBond(first + one, first + other, 0.15, 2e5)
        for atoms in EXCLUDED.angles.tolist():
            angles.addAngle(*(first + atom for atom in atoms), 1.9, 400.0)
        for atoms in EXCLUDED.dihedrals.tolist():
            dihedrals.addTorsion(*(first + atom for atom in atoms), 3, 0.4, 2.5)
        for one, other in EXCLUDED.pairs_within("angles").tolist():
            charges.addException(first + one, first + other, 0.0, 0.3, 0.0)
        for one, other in EXCLUDED.pairs_at(3).tolist():
            charges.addException(first + one, first + other, CHARGES[one] * CHARGES[other] / 1.2, 0.3, 0.2)
    for force in (charges, bonds, angles, dihedrals):
        system.addForce(force)
    platform = openmm.Platform.getPlatformByName("Reference")
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), platform)
    context.setPositions(position)
    state = context.getState(energy=True, forces=True)
    return state.getPotentialEnergy()._value, np.asarray(state.getForces(asNumpy=True)._value)


def test_molecules_with_weighted_charges_in_a_cell_have_energies_and_forces_of_openmm(openmm, x64):
    names = [f"A{index}" for index in range(6)]
    charges = {"potential": "ewald", "tolerance": 1e-12, "cutoff": CUTOFF, "one_four": 1 / 1.2}
    pairs = {"potential": "lennard_jones", "cutoff": CUTOFF, "ending": "truncate", "one_four": 0.5}
    settings = {
        "particles": {name: {"charge": charge} for name, charge in zip(names, CHARGES, strict=True)},
        "molecules": {
            "m": {
                "atoms": names,
                "count": 20,
                "bonds": [{"potential": "harmonic", "members": BONDS, "values": {"stiffness": 2e5, "length": 0.15}}],
                "angles": [{"potential": "harmonic", "values": {"stiffness": 400, "angle": 1.9}}],
                "dihedrals": [{"potential": "periodic", "periodicity": 3, "values": {"strength": 2.5, "phase": 0.4}}],
            }
        },
        "interactions": [
            charges | {"values": {"coulomb_constant": 138.93545764438198}},
            pairs | {"values": {"epsilon": 0.4, "sigma": 0.3}},
        ],
        "cell": {"lengths": [SIDE] * 3},
        "start": {"positions": places(0).tolist()},
    }
    described = composition(read(settings, SETTINGS), {"unused": 1.0})
    interaction, params, cell = described.interaction, described.params, jnp.full(3, SIDE)

    @jax.jit
    def ours(position):
        at = position, cell, params, interaction.prepare(position, cell, params)
        return interaction.several(("energy", "force"), *at)

    for seed in range(3):
        position = places(seed)
        energy, force = ours(jnp.asarray(position))
        expected, forces = theirs(openmm, position)
        np.testing.assert_allclose(energy, expected, rtol=1e-8)
        np.testing.assert_allclose(force, forces, rtol=1e-8, atol=1e-8 * np.abs(forces).max())
