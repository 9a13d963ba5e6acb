"""Starts of systems described as data: structures, random places, members of sweeps, and what their tasks record."""

import json

import ase
import ase.build
import ase.cluster
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit import molecular
from simkit.core.expressions.measures import ExpressedQuantity, with_expressions
from simkit.core.rollout import segment
from simkit.core.simulation import Quantity
from simkit.molecular import system
from simkit.scenario.build import build
from simkit.scenario.catalog import find_scenario
from simkit.scenario.made_in_python import load
from simkit.scenario.overrides import with_values
from tests.molecular.description.test_starts import (
    BOXED,
    HEIGHT,
    LENNARD_JONES,
    LOWER,
    UPPER,
    crystal,
    diagnosed,
    fluid,
    made,
    refusal,
    text_of,
)
from tests.scenarios.small import small


def test_an_unrelaxed_vacancy_in_silicon_has_the_energy_of_two_bonds(x64):
    # It breaks four bonds of epsilon, and the atom makes two elsewhere; the others feel no force and stay. As published
    # with epsilon = 2.315 eV: 4.63 eV (Balamane et al. 1992). The potential's constants, given to ten digits, and its
    # reach make a bond's energy true to 1e-8, and the sum of 124 bonds minus 126 to 1e-6.
    values = {"config.start.structure": text_of(crystal(), crystal()[1:]), "epsilon": 2.315, "reference_energy": -4.63}
    simulation = build(load("silicon_vacancy", values))
    assert diagnosed(simulation, "formation_energy") == pytest.approx(4.63, rel=1e-6)
    assert diagnosed(simulation, "max_force") < 1e-6


def test_a_step_of_a_large_structure_in_free_space_takes_no_table_of_its_pairs(x64):
    text = text_of(ase.build.bulk("X", "sc", a=1.1) * (20, 20, 20)).replace('pbc="T T T"', 'pbc="F F F"')
    simulation = made(text, LENNARD_JONES | {"cutoff": 1.5})
    state = jax.eval_shape(simulation.init, simulation.params, jax.eval_shape(jax.random.key, 0))
    step = jax.jit(simulation.step).lower(state, simulation.params).compile()
    # Distances of all pairs take 8 bytes * 8000^2 = 512 MB; the list of neighbors, 96 each, 3 MB.
    assert step.memory_analysis().temp_size_in_bytes < 50e6


def test_a_scenario_takes_the_structure_of_a_file(x64, tmp_path):
    scenario = find_scenario("silicon_vacancy")
    (tmp_path / "small.xyz").write_text(text_of(crystal()))
    run = simkit.run(
        with_values(scenario, {"config.start.structure": tmp_path / "small.xyz"}), steps=1, every=1, output=None
    )
    assert run.sizes["particle"] == 64
    assert json.loads(run.attrs["config"])["start"]["structure"] == f"text of {len(text_of(crystal()))} bytes"
    # The perfect crystal costs nothing; see above for the precision of a bond.
    assert float(run["formation_energy"][-1]) == pytest.approx(0, abs=128 * 2.1683 * 1e-8)


def test_species_that_do_not_interact_may_be_in_one_place_and_disorder_moves_particles_apart(x64):
    settings = {"dimension": 2, "start": {"positions": [[0, 0], [2, 0], [0, 0], [2, 0]]}, "parameters": {"k": 1.0}}
    pair = {"energy": "k/r"}
    apart = system(
        particles={"A": {"count": 2}, "B": {"count": 2}},
        interactions=[pair | {"between": ["A_A"]}, pair | {"between": ["B_B"]}],
        **settings,
    )
    apart.check_values(apart.params, jax.random.key(0))
    assert diagnosed(apart, "energy") == pytest.approx(1.0, rel=1e-15)
    met = system(particles={"A": {"count": 2}, "B": {"count": 2}}, interactions=[pair], **settings)
    assert "start.positions: particles 0 and 2" in refusal(met)
    moved = settings | {"start": settings["start"] | {"disorder": 0.1}}
    moved = system(particles={"A": {"count": 4}}, interactions=[pair], **moved)
    moved.check_values(moved.params, jax.random.key(0))


def neon_argon():
    """Return five atoms in free space, parameters by pairs, and their energy summed pair by pair."""
    rng = np.random.default_rng(3)
    atoms = ase.Atoms("ArNeArNeNe", positions=rng.uniform(0, 4, (5, 3)) + np.arange(5)[:, None])
    epsilon, sigma = np.array([[1.0, 0.7], [0.7, 0.4]]), np.array([[3.4, 3.0], [3.0, 2.8]])
    kind, energy = [0, 1, 0, 1, 1], 0.0
    for i in range(5):
        for j in range(i):
            attraction = (sigma[kind[i], kind[j]] / np.linalg.norm(atoms.positions[i] - atoms.positions[j])) ** 6
            energy += 4 * epsilon[kind[i], kind[j]] * (attraction**2 - attraction)
    return atoms, epsilon, sigma, energy


def test_species_have_tables_of_parameters(x64):
    atoms, epsilon, sigma, energy = neon_argon()
    simulation = made(text_of(atoms), parameters={"epsilon": epsilon, "sigma": sigma})
    assert diagnosed(simulation, "energy") == pytest.approx(energy, rel=1e-12)
    # Both halves of a table count alike.
    skewed = diagnosed(simulation, "energy", epsilon=epsilon + np.array([[0, 0.1], [-0.1, 0]]))
    assert skewed == pytest.approx(energy, rel=1e-12)
    turned = {"epsilon": epsilon[::-1, ::-1], "sigma": sigma[::-1, ::-1]}
    of_each = "energy - sum(where(species == 0, -0.5, 0.25))"
    formation = with_expressions(
        simulation, {"formation": ExpressedQuantity(of_each, Quantity("1", "formation energy"), "formation")}
    )
    assert diagnosed(formation, "formation") == pytest.approx(energy + 2 * 0.5 - 3 * 0.25, rel=1e-12)
    named = made(text_of(atoms), particles={"Ne": {}, "Ar": {}}, parameters=turned)
    assert diagnosed(named, "energy") == pytest.approx(energy, rel=1e-12)


def test_a_cutoff_beyond_half_the_cell_takes_images_or_is_refused_by_check(x64):
    simulation = made(BOXED, LENNARD_JONES | {"cutoff": "3*sigma"})
    simulation.check_values(simulation.params, jax.random.key(0))
    assert "the cutoff of 3.3 reaches beyond half the cell, whose narrowest width is 6" in refusal(
        simulation, sigma=1.1
    )
    # A lattice of 3 x 7 x 8: half of the sum over the neighbors of each of the two atoms.
    far = made(BOXED, LENNARD_JONES | {"cutoff": 8.5, "ending": "truncate"})
    r = np.linalg.norm([np.array([3 * i - 12, 7 * j - 14, 8 * k - 16]) for i, j, k in np.ndindex(9, 5, 5)], axis=1)
    r = r[(r > 0) & (r < 8.5)]
    assert diagnosed(far, "energy") == pytest.approx((4 * (r**-12 - r**-6)).sum(), rel=1e-12)


def test_a_wall_keeps_only_its_own_species_away(x64):
    made = fluid([LOWER, {**UPPER, "distance": "y - height/2", "on": ["B"]}])
    height = np.asarray(made.init(made.params, jax.random.key(0)).position)[:, 1]
    assert (height[34:] >= HEIGHT / 2 + 0.45).all()
    assert (height[:34] < HEIGHT / 2).any()


def test_dynamics_between_walls_from_random_positions_keep_their_energy(x64):
    run = simkit.run(fluid([LOWER, UPPER], small=1.0), steps=200, every=100)
    total = run["energy"].values
    assert np.isfinite(total).all()
    assert abs(total[-1] / total[0] - 1) < 1e-3
    y = run["position"].values[..., 1]
    assert ((y > 0) & (y < HEIGHT)).all()


def test_random_positions_keep_away_from_walls_by_their_diameter(x64):
    made = fluid([LOWER, UPPER])
    start = jax.jit(lambda key: made.init(made.params, key).position)
    diameter = np.where(np.arange(40) < 34, 1.0, 0.5)
    for seed in range(2):
        position = np.asarray(start(jax.random.key(seed)))
        assert (position[:, 1] >= 0.9 * diameter).all(), seed
        assert (HEIGHT - position[:, 1] >= 0.9 * diameter).all(), seed
        # The particles fill the room that is left: the small ones reach nearer to the walls.
        assert np.ptp(position[:, 1]) > HEIGHT - 2.5, seed


KEY = 1


@pytest.mark.parametrize("change", [{"sigma": 1.0004}, {"density": 1.16}, {"epsilon": 1.01}])
def test_a_run_with_another_value_starts_as_a_member_with_that_value(x64, change):
    scenario = small("binary_glass")
    member, alone = build(scenario).with_params(**change), build(load(scenario, change))
    for name, value in alone.params.items():
        np.testing.assert_array_equal(member.params[name], value)
    starts = [jax.jit(made.init)(made.params, jax.random.key(KEY)) for made in (member, alone)]
    observed = [made.observe(start, made.params) for made, start in zip((member, alone), starts, strict=True)]
    for name, array in observed[0].items():
        np.testing.assert_array_equal(array, observed[1][name], err_msg=name)


def displaced(**more):
    """Two free particles and a third, after 1 unit of time at the velocities of temperature 0.5 or in its bath."""
    simulation = molecular.system(
        dimension=2,
        particles={"A": {"count": 2}, "B": {"count": 1, "frozen": more.pop("frozen", False)}},
        start={"positions": [[0.0, 0.0], [4.0, 0.0], [8.0, 0.0]]},
        interactions=[{"energy": "weight*exp(-r)"}],
        fields=more.pop("fields", []),
        observed=["displacement"],
        task="dynamics",
        dynamics={"time_step": 0.05, "temperature": 0.5, **more},
        parameters={"weight": 0.0},
    )
    start = simulation.init(simulation.params, jax.random.key(1))
    end = jax.jit(segment(simulation, 20))(start, simulation.params)
    away = jnp.linalg.norm(end.position - start.position, axis=1)
    return simulation.observe(end, simulation.params)["displacement"], away


@pytest.mark.parametrize(
    "more",
    [{"frozen": True}, {"method": "langevin", "friction": 1.0}, {"fields": [{"energy": "weight*x"}]}],
    ids=["frozen", "bath", "field"],
)
def test_displacement_is_from_the_start_where_something_holds_the_particles(x64, more):
    found, away = displaced(**more)
    assert found == pytest.approx(np.asarray(away), abs=1e-12)


def test_a_run_that_ends_before_its_relaxation_begins_did_not_converge():
    simulation = molecular.system(
        particles={"A": {"count": 4}},
        start={"lattice": "square", "repeats": [2, 2]},
        interactions=[{"energy": "4*epsilon*(1/r**12 - 1/r**6)", "cutoff": 2.5}],
        cell={"lengths": [6, 6]},
        task=["dynamics", "relax"],
        dynamics={"time_step": 0.001, "temperature": 0.1, "steps": 30},
        parameters={"epsilon": 1.0},
    )
    assert simkit.run(simulation, steps=20).attrs["status"] == "max_steps"
