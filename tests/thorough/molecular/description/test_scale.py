"""Relaxations whose curvature at the start, or far from the particles, must not set what is a small force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import molecular
from simkit.core.converge import converge
from simkit.core.settings import read
from simkit.core.status import Status
from simkit.molecular.description.settings import SETTINGS
from simkit.molecular.description.system import composition

pytestmark = pytest.mark.usefixtures("x64")

WALL = {"distance": "z", "potential": "lennard_jones", "values": {"epsilon": "eps", "sigma": 0.5}}


@pytest.mark.parametrize("start", ["positions", "random"])
def test_particles_on_a_hard_wall_come_to_rest(start):
    """4 eps ((s/z)^12 - (s/z)^6) + g z: all fall to the height where its slope vanishes; one stays deep in the wall."""
    given = {
        "positions": {"positions": [[0, 0, 0.3], [2, 0, 1], [0, 3, 1.1]]},
        "random": {"separation": 0.1},
    }
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
    params = simulation.params
    found = jax.jit(lambda key: converge(simulation, 2000)(simulation.init(params, key), params))(jax.random.key(0))
    assert int(found.status) == Status.CONVERGED
    told = simulation.diagnose(found.state, params)
    assert float(told["max_force"]) < 1e-6
    height = simulation.observe(found.state, params)["position"][1:, 2]
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
def test_a_particle_that_starts_deep_in_a_wall_comes_to_rest_outside(case, count):
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
        params = simulation.params
        found = jax.jit(lambda key, s=simulation: converge(s, 500)(s.init(s.params, key), s.params))(jax.random.key(0))
        assert int(found.status) == Status.CONVERGED
        assert float(simulation.diagnose(found.state, params)["max_force"]) < 1e-8
        heights.append(simulation.observe(found.state, params)["position"][:, 1])
    assert jnp.allclose(heights[0], heights[1], atol=1e-6)


NEAR = {
    "bonds": ({"energy": "4*((s/r)**12 - (s/r)**6)"}, -5.073420858462791),
    "repulsion": ({"energy": "(s/r)**12"}, 0.462898206040517),
    "contacts": ({"potential": "weeks_chandler_andersen", "values": {"epsilon": 1, "sigma": "s"}}, 0.2515493049129),
}


@pytest.mark.parametrize("nearness", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("case", list(NEAR))
def test_particles_that_start_much_nearer_than_a_bond_come_to_rest(case, nearness):
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
    params = simulation.params
    found = jax.jit(lambda key: converge(simulation, 500)(simulation.init(params, key), params))(jax.random.key(0))
    told = simulation.diagnose(found.state, params)
    assert int(found.status) == Status.CONVERGED and float(told["max_force"]) < 1e-6
    assert float(told["energy"]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("pair", ["weeks_chandler_andersen", "(1/r)**12"])
def test_repelling_disks_on_a_floor_are_judged_by_their_own_bonds(pair):
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
    params = simulation.params
    found = jax.jit(lambda key: converge(simulation, 5000)(simulation.init(params, key), params))(jax.random.key(0))
    assert int(found.status) == Status.CONVERGED
    assert float(simulation.diagnose(found.state, params)["max_force"]) < 5e-3


@pytest.mark.parametrize("minimizer", ["fire", "fire2", "lbfgs"])
def test_a_wall_that_no_particle_feels_does_not_slow_a_minimizer(minimizer):
    simulation = molecular.system(
        particles={"A": {"count": 6}},
        cell={"lengths": [6, 8], "periodic": False},
        start={"separation": 0.7},
        walls=[WCA, {"distance": "8 - y", "energy": "0.01/r**6"}],
        fields=[{"energy": "0.3*((x - 3)**2 + (y - 2)**2)"}],
        relax={"minimizer": minimizer, "force_tolerance": 1e-8},
        parameters={"g": 0.1},
    )
    params = simulation.params
    found = jax.jit(lambda key: converge(simulation, 2000)(simulation.init(params, key), params))(jax.random.key(0))
    assert int(found.status) == Status.CONVERGED


def test_a_periodic_field_may_vanish_at_the_sides_of_its_cell():
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


def test_a_particle_that_no_field_holds_is_not_at_rest():
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


def test_the_scale_of_an_expression_is_that_of_the_potential_by_name():
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
