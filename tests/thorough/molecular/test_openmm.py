"""Energies and forces of systems of OpenMM against its Reference platform, at random configurations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import molecular
from simkit.core.settings import read
from simkit.errors import UserError
from simkit.molecular.description.composition import composition
from simkit.molecular.description.settings import SETTINGS

openmm = pytest.importorskip("openmm")
SHAPE = np.array([[0, 0, 0], [0.15, 0.01, 0], [0.21, 0.14, 0.03], [0.34, 0.16, 0.1], [0.19, -0.09, 0.11]])
BONDS, ANGLES = [(0, 1), (1, 2), (2, 3), (1, 4)], [(0, 1, 2), (1, 2, 3), (0, 1, 4), (4, 1, 2)]
CHARGES, LENGTHS, DEPTHS = [-0.4, 0.3, 0.1, -0.2, 0.2], [0.3, 0.26, 0.26, 0.2, 0.3], [0.4, 0.8, 0.8, 0.0, 0.4]


def positions(count):
    random = np.random.default_rng(7)
    corners = [[0.5, 0.5, 0.5], [1.1, 0.7, 0.6], [0.6, 1.2, 1.0], [1.2, 1.2, 1.3]]
    turned = [SHAPE @ np.linalg.qr(random.normal(size=(3, 3)))[0] + corner for corner in corners[:count]]
    return np.concatenate(turned) + 0.005 * random.normal(size=(5 * count, 3))


def molecules(*forces, count=4, tilted=False):
    """Return a system of equal molecules: each force is a function that makes it, given the first atoms of all."""
    system = openmm.System()
    for _ in range(count):
        for mass in (12.0, 14.0, 14.0, 1.0, 12.0):
            system.addParticle(mass)
    rows = [[2.2, 0, 0], [0.3, 2.1, 0], [-0.2, 0.4, 2.0]] if tilted else np.diag([2.2, 2.1, 2.0])
    system.setDefaultPeriodicBoxVectors(*(openmm.Vec3(*row) for row in rows))
    for force in forces:
        system.addForce(force([5 * number for number in range(count)]))
    return system


def bonded(starts):
    force = openmm.HarmonicBondForce()
    for first in starts:
        for place, (a, b) in enumerate(BONDS):
            force.addBond(first + a, first + b, 0.14 + 0.01 * (place % 2), 5e4)
    return force


def bending(starts):
    force = openmm.HarmonicAngleForce()
    for first in starts:
        for a, b, c in ANGLES:
            force.addAngle(first + a, first + b, first + c, 1.9, 300.0)
    return force


def turning(starts):
    force = openmm.PeriodicTorsionForce()
    for first in starts:
        force.addTorsion(*(first + a for a in (0, 1, 2, 3)), 3, 0.4, 2.5)
        force.addTorsion(*(first + a for a in (0, 1, 2, 3)), 1, 0.0, 1.5)
        force.addTorsion(*(first + a for a in (1, 0, 2, 4)), 2, np.pi, 4.5)
    return force


def ryckaert_bellemans(starts):
    force = openmm.RBTorsionForce()
    for first in starts:
        force.addTorsion(*(first + a for a in (4, 1, 2, 3)), 9.28, 12.16, -13.12, -3.06, 26.24, -31.5)
    return force


def maps(starts):
    force, random = openmm.CMAPTorsionForce(), np.random.default_rng(2)
    for size in (24, 24, 12):
        force.addMap(size, random.normal(size=size * size).tolist())
    for first in starts:
        for kind, (phi, psi) in enumerate([((0, 1, 2, 3), (4, 1, 2, 3)), ((0, 1, 2, 4), (1, 2, 3, 4))] * 2):
            force.addTorsion(kind % 3, *(first + a for a in phi), *(first + a for a in psi))
    return force


def nonbonded(method, *, switch=False, tail=False, excepted=True):
    def make(starts):
        force = openmm.NonbondedForce()
        for _ in starts:
            for charge, length, depth in zip(CHARGES, LENGTHS, DEPTHS, strict=True):
                force.addParticle(charge, length, depth)
        pairs = [(first + a, first + b) for first in starts for a, b in BONDS]
        force.createExceptionsFromBonds(pairs, 0.8333, 0.5 if excepted else 0.0)
        force.setNonbondedMethod(method)
        force.setCutoffDistance(0.9)
        force.setUseSwitchingFunction(switch)
        force.setSwitchingDistance(0.75)
        force.setUseDispersionCorrection(tail)
        force.setEwaldErrorTolerance(1e-12)
        force.setReactionFieldDielectric(40.0)
        return force

    return make


def custom_bonds(starts):
    force = openmm.CustomBondForce("depth*square(1 - exp(-a*x)); x = r - r0; a = scale*2")
    force.addGlobalParameter("scale", 7.5)
    for name in ("depth", "r0"):
        force.addPerBondParameter(name)
    for first in starts:
        for place, (a, b) in enumerate(BONDS):
            force.addBond(first + a, first + b, [300.0, 0.14 + 0.01 * (place % 2)])
    return force


def custom_angles(starts):
    force = openmm.CustomAngleForce("0.5*k*(cos(theta) - cos(t0))^2")
    for name in ("k", "t0"):
        force.addPerAngleParameter(name)
    for first in starts:
        for a, b, c in ANGLES:
            force.addAngle(first + a, first + b, first + c, [250.0, 1.8])
    return force


def custom_torsions(starts):
    force = openmm.CustomTorsionForce(
        "k*min(dtheta, 2*pi - dtheta)^2; dtheta = abs(theta - t0); pi = 3.141592653589793"
    )
    for name in ("k", "t0"):
        force.addPerTorsionParameter(name)
    for first in starts:
        force.addTorsion(*(first + a for a in (0, 1, 2, 3)), [3.0, 0.7])
    return force


def custom_nonbonded(starts):
    force = openmm.CustomNonbondedForce(
        "sqrt(a1*a2)*exp(-r/rho)*step(0.8 - r) + select(a1, 0.1, 0)/r; rho = 0.05 + width"
    )
    force.addGlobalParameter("width", 0.02)
    force.addPerParticleParameter("a")
    for _ in starts:
        for depth in (100.0, 200.0, 50.0, 300.0, 80.0):
            force.addParticle([depth])
    force.createExclusionsFromBonds([(first + a, first + b) for first in starts for a, b in BONDS], 2)
    force.setNonbondedMethod(openmm.CustomNonbondedForce.CutoffPeriodic)
    force.setCutoffDistance(0.95)
    force.setUseSwitchingFunction(True)
    force.setSwitchingDistance(0.8)
    return force


def of_openmm(system, places):
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(places)
    context.computeVirtualSites()
    state = context.getState(getEnergy=True, getForces=True)
    units = openmm.unit.md_unit_system
    return (
        state.getPotentialEnergy().value_in_unit_system(units),
        np.array(state.getForces(asNumpy=True).value_in_unit_system(units)),
    )


def of_simkit(found):
    parameters = found.settings["parameters"] or {"none": 0.0}
    settings = {key: value for key, value in found.settings.items() if key != "parameters"}
    made = composition(read(settings, SETTINGS), parameters)

    @jax.jit
    def evaluate(params):
        place = made.placing.start(params, jax.random.key(0))
        cell = None if made.cell is None else made.cell(params)
        neighbors = made.interaction.prepare(place, cell, params)
        return made.interaction.several(("energy", "force"), place, cell, params, neighbors)

    energy, force = evaluate(jax.tree.map(jnp.asarray, made.params))
    back = np.empty_like(force)
    back[found.order] = force
    return float(energy), back


METHODS = openmm.NonbondedForce
CASES = {
    "terms in free space": (bonded, bending, turning, ryckaert_bellemans, nonbonded(METHODS.NoCutoff)),
    "reaction field": (bonded, bending, nonbonded(METHODS.CutoffPeriodic, switch=True)),
    "maps": (bonded, maps),
    "Ewald": (bonded, nonbonded(METHODS.Ewald)),
    "custom": (custom_bonds, custom_angles, custom_torsions, custom_nonbonded),
}


@pytest.mark.parametrize("case", CASES)
def test_energy_and_forces_are_those_of_the_reference_platform(x64, case):
    system, places = molecules(*CASES[case], tilted=case in ("reaction field", "custom")), positions(4)
    energy, force = of_openmm(system, places)
    found = molecular.from_openmm(system, places)
    assert [kind["count"] for kind in found.settings["molecules"].values()] == [4]
    own_energy, own_force = of_simkit(found)
    assert own_energy == pytest.approx(energy, rel=1e-8)
    np.testing.assert_allclose(own_force, force, rtol=1e-8, atol=1e-8 * np.abs(force).max())


def four_sites(method, site, tolerance=1e-12):
    """Return water whose negative charge is between the atoms, and places of its atoms."""
    system, force, bond = openmm.System(), openmm.NonbondedForce(), openmm.HarmonicBondForce()
    random, places = np.random.default_rng(3), []
    for corner in np.ndindex(2, 2, 2):
        first = system.getNumParticles()
        for mass, charge, depth in ((16.0, 0.0, 0.65), (1.0, 0.5564, 0.0), (1.0, 0.5564, 0.0), (0.0, -1.1128, 0.0)):
            system.addParticle(mass)
            force.addParticle(charge, 0.3164, depth)
        system.setVirtualSite(first + 3, site(first))
        for one, length in ((1, 0.09572), (2, 0.09572)):
            bond.addBond(first, first + one, length, 4e5)
        bond.addBond(first + 1, first + 2, 0.15139, 2e5)
        for one in range(4):
            for other in range(one):
                force.addException(first + one, first + other, 0.0, 1.0, 0.0)
        shape = np.array([[0, 0, 0], [0.09572, 0, 0], [-0.023999, 0.092663, 0], [9, 9, 9]])
        turned = shape @ np.linalg.qr(random.normal(size=(3, 3)))[0] + 0.004 * random.normal(size=(4, 3))
        places.append(turned + 0.9 * np.array(corner) + 0.3)
    force.setNonbondedMethod(method)
    force.setCutoffDistance(0.85)
    force.setEwaldErrorTolerance(tolerance)
    force.setUseDispersionCorrection(False)
    system.setDefaultPeriodicBoxVectors(*(openmm.Vec3(*row) for row in 1.8 * np.eye(3)))
    system.addForce(force)
    system.addForce(bond)
    return system, np.concatenate(places)


SITES = {
    "three": lambda first: openmm.ThreeParticleAverageSite(first, first + 1, first + 2, 0.73, 0.15, 0.12),
    "two": lambda first: openmm.TwoParticleAverageSite(first, first + 2, 0.8, 0.2),
}


@pytest.mark.parametrize("kind", SITES)
def test_forces_on_virtual_sites_act_on_their_parents_as_on_the_reference_platform(x64, kind):
    system, places = four_sites(METHODS.Ewald, SITES[kind])
    energy, force = of_openmm(system, places)
    own_energy, own_force = of_simkit(molecular.from_openmm(system, places))
    assert own_energy == pytest.approx(energy, rel=1e-8)
    atoms = np.arange(len(force)) % 4 < 3
    np.testing.assert_allclose(own_force[atoms], force[atoms], rtol=1e-8, atol=1e-8 * np.abs(force).max())
    assert (own_force[~atoms] == 0).all()


def test_particle_mesh_ewald_is_that_of_the_reference_platform_within_its_tolerance(x64):
    exact = of_openmm(*four_sites(METHODS.Ewald, SITES["three"]))[1]
    for tolerance in (1e-4, 1e-6):
        system, places = four_sites(METHODS.PME, SITES["three"], tolerance)
        (energy, force), (own_energy, own_force) = (
            of_openmm(system, places),
            of_simkit(molecular.from_openmm(system, places)),
        )
        atoms = np.arange(len(force)) % 4 < 3
        size = np.sqrt(np.mean(exact[atoms] ** 2))
        errors = [np.sqrt(np.mean((each[atoms] - exact[atoms]) ** 2)) / size for each in (own_force, force)]
        # OpenMM's tolerance is one of its estimates; ours is that of the force.
        assert errors[0] < 2 * tolerance
        assert errors[1] < 10 * tolerance
        assert own_energy == pytest.approx(energy, rel=10 * tolerance)


def test_constraints_become_rigid_bonds_and_particles_without_mass_are_frozen():
    system = molecules(nonbonded(METHODS.NoCutoff, excepted=False), count=1)
    for place, (a, b) in enumerate(BONDS):
        system.addConstraint(a, b, 0.14 + 0.01 * (place % 2))
    system.setParticleMass(3, 0.0)
    found = molecular.from_openmm(system, positions(1)).settings
    kind = found["molecules"]["molecule_1"]
    assert [table["length"] for table in kind["rigid"]] == pytest.approx([0.14, 0.15])
    assert [table["members"] for table in kind["rigid"]] == [[[0, 1], [2, 3]], [[1, 2], [1, 4]]]
    assert kind["exclude"] == "dihedrals"
    assert [name for name, table in found["particles"].items() if table.get("frozen")] == ["type_4"]


def test_what_is_not_served_is_refused_by_name():
    with pytest.raises(UserError, match="GBSAOBCForce is not served"):
        molecular.from_openmm(molecules(lambda starts: openmm.GBSAOBCForce()), positions(4))
    outside = four_sites(METHODS.Ewald, lambda first: openmm.OutOfPlaneSite(first, first + 1, first + 2, 0.1, 0.1, 1.0))
    with pytest.raises(UserError, match="virtual sites OutOfPlaneSite are not served"):
        molecular.from_openmm(*outside)
    with pytest.raises(UserError, match="NonbondedForce with the method LJPME is not served"):
        molecular.from_openmm(molecules(nonbonded(METHODS.LJPME)), positions(4))

    def with_gap(starts):
        force = nonbonded(METHODS.NoCutoff)(starts)
        force.addException(0, 9, 0.0, 1.0, 0.0)
        return force

    with pytest.raises(UserError, match="not all pairs up to one, two or three bonds apart"):
        molecular.from_openmm(molecules(bonded, with_gap), positions(4))
