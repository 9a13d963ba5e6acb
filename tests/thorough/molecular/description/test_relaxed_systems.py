"""Systems described as data at rest: crystals, clusters, elastic constants, walls and packings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import simkit
from simkit import molecular
from simkit.core.converge import converge
from simkit.core.settings import read
from simkit.core.status import Status
from simkit.molecular import system
from simkit.molecular.description.composition import composition
from simkit.molecular.description.settings import SETTINGS
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.molecular.clusters import cluster
from tests.molecular.resting import at_rest

CUTOFF, SWITCH_ON = 2.6, 1.6
SMALL = {"cutoff": CUTOFF, "switch_on": SWITCH_ON}


def crystal(*, cutoff=4.0, switch_on=2.5, repeats=(4, 4, 4)):
    """Return the simulation of the scenario with another size and cut-off."""
    ending = {"cutoff": f"{cutoff}*sigma", "switch_on": switch_on / cutoff}
    ending = {f"config.interactions.0.{key}": value for key, value in ending.items()}
    return build(load("lennard_jones_crystal", {"config.start.repeats": list(repeats), **ending}))


def lattice_energy(bond, *, cutoff, switch_on):
    """Return the energy per atom of a face-centered cubic crystal summed site by site, its tail by trapezoids."""
    steps = np.arange(-8, 9)
    sites = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    sites = sites[(sites.sum(axis=1) % 2 == 0) & sites.any(axis=1)]
    distance = bond / np.sqrt(2) * np.sqrt((sites**2).sum(axis=1))

    def energy(r):
        return 4 * (r**-12 - r**-6)

    def switch(r):
        x = np.clip((r - switch_on) / (cutoff - switch_on), 0, 1)
        return 1 - 10 * x**3 + 15 * x**4 - 6 * x**5

    r = np.linspace(switch_on, cutoff, 20001)
    missing = np.trapezoid(energy(r) * (1 - switch(r)) * r**2, r) + 4 * (cutoff**-9 / 9 - cutoff**-3 / 3)
    return (energy(distance) * switch(distance)).sum() / 2 + 2 * np.pi * np.sqrt(2) / bond**3 * missing


@pytest.fixture(scope="module")
def relaxed():
    """Return how a small crystal came to rest, and its diagnostics, at two pressures."""
    with jax.enable_x64(True):
        simulation = crystal(**SMALL)
        return [at_rest(simulation, simulation.params | {"pressure": jnp.asarray(p)}, steps=400) for p in (0.0, 5.0)]


def test_a_disordered_crystal_relaxes_to_its_sites(relaxed):
    for _, end in relaxed:
        # Forces of 1e-10 on bonds of stiffness 57, and on soft modes some ten times softer.
        assert end["largest_displacement"] < 1e-10
        # All bonds are alike, so nothing is left for any single one.
        assert end["max_force"] < 1.1e-10


def test_relaxed_energy_and_size_are_the_minimum_of_the_lattice_sum(relaxed):
    _, end = relaxed[0]
    bond, settings = end["nearest_distance"], SMALL
    # The trapezoidal rule leaves 1e-9 of a tail of order 1.
    assert end["energy_per_particle"] == pytest.approx(lattice_energy(bond, **settings), abs=1e-8)
    step = 1e-5
    below, here, above = (lattice_energy(bond + s, **settings) for s in (-step, 0, step))
    # A bond off by 2e-8 would show, for the curvature is about 600. Of the difference, the third derivative, about
    # -1e4, makes step^2 1e4 / 6 = 2e-7, and rounding 1e-14 / step = 1e-9.
    assert abs(above - below) / (2 * step) < 1e-5
    assert below > here < above


def test_pressure_is_the_volume_derivative_of_the_lattice_sum(relaxed):
    _, end = relaxed[1]
    assert end["pressure"] == pytest.approx(5, abs=1e-9)
    bond, settings, step = end["nearest_distance"], SMALL, 1e-4
    slope = (lattice_energy(bond + step, **settings) - lattice_energy(bond - step, **settings)) / (2 * step)
    # p = -dE/dV with V = bond^3 / sqrt(2) per atom; the central difference errs by step^2 E''' / 6, about 1e-5 of it.
    assert -slope / (3 * bond**2 / np.sqrt(2)) == pytest.approx(5, rel=1e-4)


LENNARD_JONES_38 = -173.928427


def quenched(simulation, count):
    """Return the results of relaxations from random starts, and the diagnostics at their ends."""

    def quench(key):
        result = converge(simulation, 5000)(simulation.init(simulation.params, key), simulation.params)
        return result, simulation.diagnose(result.state, simulation.params)

    keys = jax.random.split(jax.random.key(0), count)
    return jax.jit(lambda keys: jax.lax.map(quench, keys, batch_size=64))(keys)


def test_every_start_of_38_atoms_relaxes_to_one_cluster(x64):
    result, end = quenched(cluster(particles=38), 256)
    np.testing.assert_array_equal(result.status, Status.CONVERGED)
    # Forces worked out anew differ by the round-off of 37 terms of order 10.
    assert float(end["max_force"].max()) < 1.01e-10
    energy = np.asarray(end["energy"])
    # Two separate halves, at best LJ19 twice, -145.3, would show; one atom lost costs at least 4 of about -165.
    assert LENNARD_JONES_38 - 1e-5 < energy.min() <= energy.max() < -145.4


OBSERVED = {"observed": ["elastic_constants"]}
# One cubic cell of four atoms, smaller than the cut-off: its images interact, too.
ONE_CELL = {
    "particles": {"A": {}},
    "start": {"lattice": "face_centered_cubic", "repeats": [1, 1, 1], "spacing": 1.05},
    "interactions": [{"potential": "lennard_jones", "cutoff": 4, "switch_on": 0.625, "tail": True}],
    "relax": {"cell": True, "pressure": "pressure", "force_tolerance": 1e-12},
    "parameters": {"epsilon": 1.0, "sigma": 1.0, "pressure": 2.0},
}


def test_the_bulk_modulus_of_one_cell_is_the_derivative_of_its_volume_by_pressure(x64):
    simulation = system(**ONE_CELL, **OBSERVED)
    found = at_rest(simulation, steps=400)[1]

    @jax.jit
    def volume(pressure):
        params = {**simulation.params, "pressure": pressure}
        state = converge(simulation, 400)(simulation.init(params, jax.random.key(0)), params).state
        return simulation.diagnose(state, params)["volume"]

    slope = float(jax.jit(jax.grad(volume))(2.0))
    assert found["bulk_modulus"] == pytest.approx(-found["volume"] / slope, rel=1e-8)
    # Cauchy's relation of central forces at a pressure: c12 - c44 = 2 p. The uniform tail of pairs beyond the cut-off,
    # 0.3 % of the energy, acts on the volume alone and keeps it only as far as it is an isotropic sum of pairs.
    assert found["c12"] - found["c44"] == pytest.approx(2 * 2.0, abs=0.02 * found["c44"])


def test_a_crystal_of_one_atom_per_cell_has_the_constants_of_two(x64):
    """A single atom has nothing to relax, so that its constants are those of affine strain."""
    morse = {"energy": "epsilon*(exp(-8*(r-1)) - 2*exp(-4*(r-1)))", "cutoff": 1.9, "ending": "shift_force"}
    found = []
    for count in (1, 2):
        simulation = system(
            particles={"A": {"count": count}},
            start={"positions": [[0.05 + shift, 0.0] for shift in range(count)]},
            cell={"vectors": [[float(count), 0], [0.5, 0.85]]},
            dimension=2,
            interactions=[morse],
            relax={"force_tolerance": 1e-12},
            parameters={"epsilon": 1.0},
            **OBSERVED,
        )
        state = jax.jit(simulation.init)(simulation.params, jax.random.key(0))

        def constants(params, simulation=simulation, state=state):
            values = simulation.diagnose(state, params)
            return jnp.stack([values[name] for name in ("bulk_modulus", "shear_modulus", "c11", "c12", "c66")])

        if count == 1:
            values, slope = jax.jit(lambda params, of=constants: jax.jvp(of, (params,), (params,)))(simulation.params)
            # All of them are proportional to the energy, whose parameter is 1.
            np.testing.assert_allclose(slope, values, rtol=1e-9)
        else:
            values = jax.jit(constants)(simulation.params)
        found.append(values)
    assert found[0][0] > 1
    np.testing.assert_allclose(found[0], found[1], rtol=1e-8)


WALL = {"distance": "z", "potential": "lennard_jones", "values": {"epsilon": "eps", "sigma": 0.5}}


@pytest.mark.parametrize("start", ["positions", "random"])
def test_particles_on_a_hard_wall_come_to_rest(x64, start):
    """4 eps ((s/z)^12 - (s/z)^6) + g z: all fall to the height where its slope vanishes; one stays deep in the wall."""
    given = {"positions": {"positions": [[0, 0, 0.3], [2, 0, 1], [0, 3, 1.1]]}, "random": {"separation": 0.1}}
    simulation = molecular.system(
        particles={"A": {"count": 1, "frozen": start == "positions"}, "B": {"count": 2}},
        start=given[start],
        cell={"lengths": [5, 5, 5], "periodic": [True, True, False]} if start == "random" else None,
        walls=[WALL],
        fields=[{"energy": "g*z", "on": ["B"]}],
        dimension=3,
        relax={"force_tolerance": 1e-8},
        parameters={"eps": 1.0, "g": 0.5},
    )
    found, told = at_rest(simulation, steps=2000)
    assert told["max_force"] < 1e-6
    height = simulation.observe(found.state, simulation.params)["position"][1:, 2]
    slope = 4 * (-12 * 0.5**12 / height**13 + 6 * 0.5**6 / height**7) + 0.5
    assert float(jnp.abs(slope).max()) < 1e-6


WCA = {"distance": "y", "potential": "weeks_chandler_andersen", "values": {"epsilon": 1, "sigma": 0.5}}
DEEP = {
    "wall by name": ([WCA], "g*y"),
    "wall by energy": ([{"distance": "y", "energy": "1/r**9"}], "g*y"),
    "field": ([], "g*y + 1/y**12"),
}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("case", list(DEEP))
def test_a_particle_that_starts_deep_in_a_wall_comes_to_rest_outside(x64, case, count):
    """One starts where the curvature is up to 1e26, which must not set the force at which it is called at rest."""
    walls, field = DEEP[case]
    pair = {"energy": "exp(-2*(r-1)) - 2*exp(-(r-1))", "cutoff": 2.9, "ending": "switch"}
    heights = []
    for start in (0.02, 0.5):
        simulation = molecular.system(
            particles={"A": {"count": count}},
            cell={"lengths": [6, 8], "periodic": [True, False]},
            start={"positions": [[1, start], [2, 2]][:count]},
            walls=walls,
            fields=[{"energy": field}],
            interactions=[pair] if count == 2 else [],
            relax={"force_tolerance": 1e-11},
            parameters={"g": 0.1},
        )
        found, told = at_rest(simulation, steps=500)
        assert told["max_force"] < 1e-8
        heights.append(simulation.observe(found.state, simulation.params)["position"][:, 1])
    assert jnp.allclose(heights[0], heights[1], atol=1e-6)


NEAR = {
    "bonds": ({"energy": "4*((s/r)**12 - (s/r)**6)"}, -5.073420858462791),
    "repulsion": ({"energy": "(s/r)**12"}, 0.462898206040517),
    "contacts": ({"potential": "weeks_chandler_andersen", "values": {"epsilon": 1, "sigma": "s"}}, 0.2515493049129),
}


@pytest.mark.parametrize("nearness", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("case", list(NEAR))
def test_particles_that_start_much_nearer_than_a_bond_come_to_rest(x64, case, nearness):
    """Of four disks: energies of the minima, also from the start of unit distance."""
    interaction, expected = NEAR[case]
    simulation = molecular.system(
        particles={"A": {"count": 4}},
        dimension=2,
        start={"positions": [[x * nearness, y * nearness] for x, y in ((0, 0), (1, 0), (0.5, 0.9), (1.5, 0.9))]},
        interactions=[interaction],
        fields=[] if case == "bonds" else [{"energy": "0.1*(x**2 + y**2)"}],
        parameters={"s": 1.0},
    )
    told = at_rest(simulation, steps=500)[1]
    assert told["max_force"] < 1e-6 and told["energy"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("pair", ["weeks_chandler_andersen", "(1/r)**12"])
def test_repelling_disks_on_a_floor_are_judged_by_their_own_bonds(x64, pair):
    """The tolerance is that of bonds of stiffness near 100, also for hard repulsion."""
    named = {"potential": pair, "values": {"epsilon": 1, "sigma": 1}}
    simulation = molecular.system(
        particles={"A": {"count": 6}},
        cell={"lengths": [6, 8], "periodic": [True, False]},
        start={"separation": 0.7},
        walls=[{"distance": "y", "energy": "0.01/r**9"}],
        fields=[{"energy": "g*y + 0.05*sin(pi*x/3)"}],
        interactions=[named if pair.startswith("weeks") else {"energy": pair, "cutoff": 2.9, "ending": "switch"}],
        relax={"force_tolerance": 1e-5},
        parameters={"g": 0.5},
    )
    assert at_rest(simulation)[1]["max_force"] < 5e-3


@pytest.mark.parametrize("minimizer", ["fire", "fire2", "lbfgs"])
def test_a_wall_that_no_particle_feels_does_not_slow_a_minimizer(x64, minimizer):
    simulation = molecular.system(
        particles={"A": {"count": 6}},
        cell={"lengths": [6, 8], "periodic": False},
        start={"separation": 0.7},
        walls=[WCA, {"distance": "8 - y", "energy": "0.01/r**6"}],
        fields=[{"energy": "0.3*((x - 3)**2 + (y - 2)**2)"}],
        relax={"minimizer": minimizer, "force_tolerance": 1e-8},
        parameters={"g": 0.1},
    )
    at_rest(simulation, steps=2000)


def test_a_periodic_field_may_vanish_at_the_sides_of_its_cell(x64):
    simulation = molecular.system(
        particles={"A": {"count": 2}},
        cell={"lengths": [6, 6], "periodic": True},
        fields=[{"energy": "a*sin(pi*x/3)"}],
        interactions=[
            {"potential": "lennard_jones", "values": {"epsilon": 1, "sigma": 1}, "cutoff": 2.5, "ending": "switch"}
        ],
        parameters={"a": 0.05},
    )
    simulation.check_values(simulation.params, jax.random.key(0))


def test_a_particle_that_no_field_holds_is_not_at_rest(x64):
    simulation = molecular.system(
        particles={"A": {"count": 1}},
        start={"positions": [[1, 2]]},
        fields=[{"energy": "g*y"}],
        dimension=2,
        parameters={"g": 0.1},
    )
    params = simulation.params
    found = jax.jit(lambda key: converge(simulation, 50)(simulation.init(params, key), params))(jax.random.key(0))
    assert int(found.status) == Status.MAX_STEPS


def test_the_scale_of_an_expression_is_that_of_the_potential_by_name(x64):
    def scale(interaction, **values):
        settings = {
            "particles": {"A": {}},
            "interactions": [interaction | {"cutoff": "3*sigma"}],
            "start": {"lattice": "square", "repeats": [6, 6], "spacing": "1.3*sigma"},
        }
        params = {name: jnp.asarray(value) for name, value in values.items()}
        return np.array(composition(read(settings, SETTINGS), params).scale(params))

    typed = {"energy": "4*epsilon*((sigma/r)**12 - (sigma/r)**6)"}
    found = scale(typed, epsilon=1.0, sigma=1.0)
    np.testing.assert_allclose(found, scale({"potential": "lennard_jones"}, epsilon=1.0, sigma=1.0), rtol=1e-6)
    # Another unit of energy and length.
    np.testing.assert_allclose(scale(typed, epsilon=3.0, sigma=2.0), found * [2, 3 / 4], rtol=1e-9)


def lennard_jones_force(r):
    return 48 * r**-13 - 24 * r**-7


def test_a_cell_that_relaxes_after_dynamics_holds_its_particles_at_rest(x64):
    settings = {
        "particles": {"A": {}},
        "start": {"lattice": "face_centered_cubic", "repeats": [2, 2, 2]},
        "cell": {"density": 0.9},
        "interactions": [{"potential": "lennard_jones", "cutoff": 1.5, "ending": "shift_force"}],
        "relax": {"cell": True, "force_tolerance": 1e-9},
        "parameters": {"epsilon": 1.0, "sigma": 1.0},
    }
    dynamics = {"time_step": 0.004, "temperature": 0.2, "steps": 20}
    moved = simkit.run(molecular.system(**settings, task=["dynamics", "relax"], dynamics=dynamics), steps=200, every=1)
    cells, position = moved["cell"].values, moved["position"].values
    np.testing.assert_array_equal(cells[:21], np.broadcast_to(cells[0], (21, 3, 3)))
    # Twelve neighbors at the minimum of a pair, whose force is shifted by that at the cut-off.
    bond = brentq(lambda r: lennard_jones_force(r) - lennard_jones_force(1.5), 1.0, 1.2, xtol=1e-13)
    np.testing.assert_allclose(cells[-1], 2 * np.sqrt(2) * bond * np.eye(3), atol=1e-8)
    # In units of the cell of the frame all particles are moved from their sites alike, but for whole cells.
    away = np.linalg.solve(cells[-1].T, position[-1].T).T - np.linalg.solve(cells[0].T, position[0].T).T
    np.testing.assert_allclose((away - away[0] + 0.5) % 1, 0.5, atol=1e-8)
