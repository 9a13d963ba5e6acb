"""Mistakes in a system that is given as data: one line, with the key and the column."""

import jax
import numpy as np
import pytest

from simkit import molecular
from simkit.errors import UserError
from simkit.molecular import system
from tests.molecular.description.test_bad_input import FIELD_IN_A_CELL, LJ, PARAMETERS, made
from tests.molecular.description.test_starts import diagnosed, refusal
from tests.tables import every

WALL = {"distance": "y - 1", "energy": "1/r**9"}


WALLED = {"lengths": ["side", "side"], "periodic": [True, False]}


WRONG = {
    "unknown name": (
        {"interactions": [LJ | {"energy": "4*epsilom/r"}]},
        "interactions[0].energy: column 3 of '4*>>>epsilom/r': 'epsilom' is not known here; did you mean 'epsilon'?",
    ),
    "a word for a number": (
        {"relax": {"force_tolerance": "tiny"}},
        "relax.force_tolerance: column 1 of '>>>tiny': 'tiny' is not known here; write a plain number, without names",
    ),
    "one entry for two axes": (
        {"cell": {"lengths": ["side", "side"], "periodic": [True]}},
        "cell.periodic has 1 entry; write 2 in the plane, 3 in space",
    ),
    "a value and a parameter of one name": (
        {"particles": {"A": {"count": 3, "values": {"sigma": 1}}, "B": {"count": 3, "values": {"sigma": 2}}}},
        "particles: values.sigma: the name 'sigma' is taken",
    ),
    "one interaction": ({"interactions": LJ}, "is no list; write several in brackets"),
    "no distance": ({"interactions": [LJ | {"energy": "epsilon"}]}, "does not depend on r"),
    "mixes particles": ({"fields": [{"energy": "mean(x)**2"}]}, "fields[0].energy: column 1 of '>>>mean(x)**2'"),
    "misspelt value of a wall": (
        {"walls": [{"distance": "y", "potential": "lennard_jones", "values": {"epsilom": 1, "sigma": 0.5}}]},
        "walls[0].values.epsilom is not a known key; did you mean 'epsilon'?",
    ),
    "missing value of a wall": (
        {"walls": [{"distance": "y", "potential": "morse", "values": {"epsilon": 1, "sigma": 0.5}}]},
        "walls[0].values.rho is missing; give a number or an expression",
    ),
    "misspelt value of a species": (
        {
            "particles": {"A": {"count": 3, "values": {"load": 1}}, "B": {"count": 3, "values": {"laod": 2}}},
            "fields": [{"energy": "load*y"}],
        },
        "particles.B.values.laod is not taken by any energy; did you mean 'load'?",
    ),
    "value of a species without use": (
        {"particles": {"A": {"count": 6, "values": {"load": 1}}}},
        "particles.A.values.load is not taken by any energy; use it or leave it out",
    ),
    "entry of a coordinate": (
        {"fields": [{"energy": "epsilon*x[0]**2"}]},
        "fields[0].energy: column 9 of 'epsilon*>>>x[0]**2': 'x[0]' takes an entry of 'x'",
    ),
    "coordinate of a plane": ({"fields": [{"energy": "z**2"}]}, "'z' is not known here"),
    "time at rest": ({"fields": [{"energy": "sin(time)"}]}, "'time' is not known here"),
    "no pair": (
        {"interactions": [LJ | {"values": {"epsilon": {"A_A": 1, "A_B": 2, "A_C": 3}}}]},
        "interactions[0].values.epsilon = 'A_C' is unknown",
    ),
    "missing pair": (
        {"interactions": [LJ | {"values": {"epsilon": {"A_A": 1, "A_B": 2}}}]},
        "interactions[0].values.epsilon has no B_B; give it",
    ),
    "idle value": ({"interactions": [LJ | {"values": {"rho": 1}}]}, "interactions[0].values.rho is not a known key"),
    "idle species": (
        {"interactions": [LJ | {"between": ["A_A"]}]},
        "particles.B: nothing acts on this species; add an interaction between B_B",
    ),
    "endless in a cell": (
        {"interactions": [{"energy": "epsilon/r"}]},
        "interactions[0].cutoff is missing; in a cell that repeats an energy must end",
    ),
    "no contacts to observe": (
        {"observed": ["packing_fraction", "load"]},
        "observed[1] = 'load' needs an interaction that ends by itself, such as that of soft spheres, not one that a "
        "cutoff ends; choose from energy_of_particle, packing_fraction, elastic_constants",
    ),
    "no start to observe from": (
        {"observed": ["displacement"]},
        "observed[0] = 'displacement' needs a start that is not random: positions, a structure or a lattice; choose",
    ),
    "two kinds": (
        {"interactions": [LJ | {"potential": "morse"}]},
        "interactions[0].energy has no effect on potential = 'morse'; leave it out",
    ),
    "no kind": ({"interactions": [{}]}, "interactions[0] chooses no potential; give one of potential, energy, jax_md"),
    "no species": ({"particles": {}}, "particles names no species"),
    "no count": ({"particles": {"A": {}, "B": {"count": 2}}}, "particles.A.count is missing"),
    "counts and sites": (
        {"start": {"lattice": "square", "repeats": [3, 3]}},
        "counts make 6 particles, and there are 9 places",
    ),
    "two starts": (
        {"start": {"lattice": "square", "positions": [[0, 0]]}},
        "start.positions has no effect on kind = 'lattice'; leave it out",
    ),
    "two sizes": (
        {"cell": {"density": 1, "lengths": [4, 4]}},
        "cell.density has no effect beside lengths; leave it out",
    ),
    "dimensions": ({"dimension": 3}, "cell.lengths has 2 dimensions, and dimension has 3"),
    "no room": ({"cell": None, "dimension": 2, "interactions": [{"energy": "1/r"}]}, "start.radius is missing"),
    "shape of a table": ({"parameters": PARAMETERS | {"table": [1.0, 2.0, 3.0]}}, "parameter 'table' has shape (3,)"),
    "no task": ({"task": ["relax", "dynamics"]}, 'task is not "relax", "dynamics", ["dynamics", "relax"] or "barrier"'),
    "idle table": ({"dynamics": {"time_step": 1}}, "dynamics has no effect on task = ['relax']"),
    "no time step": ({"task": "dynamics"}, "dynamics.time_step is missing"),
    "friction of no bath": (
        {"task": "dynamics", "dynamics": {"time_step": 0.1, "friction": 1}},
        "dynamics.friction has no effect on method = 'velocity_verlet'",
    ),
    "when to relax": (
        {"task": ["dynamics", "relax"], "dynamics": {"time_step": 0.1}},
        "dynamics.steps is missing; give the number of time steps",
    ),
    "cell of walls": (
        {"relax": {"cell": True}, "cell": {"lengths": [6, 6], "periodic": [True, False]}},
        "relax.cell = true",
    ),
    "unknown key": ({"cell": {"length": [6, 6]}}, "cell.length is not a known key; did you mean 'lengths'?"),
}


@every(WRONG)
def test_a_mistake_in_settings_names_its_key(changes, message):
    with pytest.raises(UserError) as refused:
        made(**changes)
    assert message in str(refused.value) and "\n" not in str(refused.value)


AT_THE_START = {
    "division by zero": (
        {"fields": [{"energy": "1/(epsilon - 1)"}]},
        "fields[0].energy: '1/(epsilon - 1)' is inf at index [0] of [6] at the start",
    ),
    "particles in one place": (
        {"start": {"positions": [[1, 1]] * 6}},
        "start.positions: particles 0 and 1 (the first is 0) are in one place, so the force between them has no",
    ),
    "no room": (
        {"cell": {"lengths": [1.5, 1.5]}, "interactions": [LJ | {"cutoff": 0.7}], "start": {"separation": 0.7}},
        "leaves no room for that many particles: balls of 0.7 times their diameters would fill 1.03 times the volume",
    ),
    "far too many": (
        {
            "particles": {"A": {"count": 2_000, "diameter": 0.1}},
            "cell": None,
            "dimension": 2,
            "start": {"radius": 1.5, "separation": 2.0},
            "interactions": [{"energy": "1/r"}],
        },
        "balls of 2 times their diameters would fill 7.81 times the volume",
    ),
    "field of a cell": ({"fields": [{"energy": "x"}]}, "differs between both sides of the cell along x"),
    "wall of the wrong sign": (
        {
            "walls": [{"distance": "y", "energy": "1/r**9"}, {"distance": "y - side", "energy": "1/r**9"}],
            "cell": WALLED,
            "start": {"separation": 0.7},
        },
        "walls[1].distance = 'y - side' is below 0 throughout the cell; reverse its sign",
    ),
    "not symmetric": (
        {
            "particles": {"A": {"count": 3, "values": {"q": 1}}, "B": {"count": 3, "values": {"q": 2}}},
            "interactions": [{"energy": "q_i/r", "cutoff": 3}],
        },
        "the other way round; make it the same with _i and _j exchanged",
    ),
    "mass": ({"particles": {"A": {"count": 6, "mass": "epsilon - 2"}}}, "particles.A.mass = -1 is not positive"),
    "time step": (
        {"task": "dynamics", "dynamics": {"time_step": "epsilon - 1"}},
        "dynamics.time_step = 0 is not positive; choose a value above 0",
    ),
    "temperature": (
        {
            "task": "dynamics",
            "dynamics": {"method": "langevin", "time_step": 0.1, "friction": 1, "temperature": "time - 1"},
        },
        "dynamics.temperature = -1 is negative; choose 0 or a value above",
    ),
    "thermostat time": (
        {
            "task": "dynamics",
            "dynamics": {"method": "bussi", "time_step": 0.1, "thermostat_time": -0.1, "temperature": 1},
        },
        "dynamics.thermostat_time = -0.1 is not positive; choose a value above 0",
    ),
    "cutoff": (
        {"interactions": [LJ | {"cutoff": "-2*sigma"}]},
        "interactions[0].cutoff = -2 is not positive; choose a value above 0",
    ),
    "behind a wall": (
        {"cell": None, "start": {"positions": [[i, 0.5] for i in range(6)]}, "walls": [WALL]},
        "particle 0 starts 0.5 behind the wall; move it, or the wall",
    ),
}


@every(AT_THE_START)
def test_a_system_that_cannot_start_is_refused_before_it_runs(changes, message):
    # Places that may overlap: nothing pushes them apart.
    assert message in refusal(made(**{"start": {"separation": 0}} | changes))


def test_a_cutoff_beyond_half_the_cell_is_refused_where_images_are_given_or_parameters_change():
    simulation = made(cell={"lengths": ["side", "side"], "images": [1, 1]}, start={"separation": 0})
    simulation.check_values(simulation.params, jax.random.key(0))
    assert "the cutoff of 3.75 reaches beyond half the block of 1 x 1 cells" in refusal(simulation, sigma=1.5)


@every("energy", ["p*x", "p*x*time", "sin(2*pi*(x - time)/L) + x*where(time > 5, 1, 0)"])
def test_a_field_that_does_not_fit_its_cell_at_some_time_is_refused(energy):
    dynamics = {"time_step": 0.002, "temperature": 0}
    moving = system(**FIELD_IN_A_CELL, fields=[{"energy": energy}], task="dynamics", dynamics=dynamics)
    assert "differs between both sides of the cell along x" in refusal(moving)


def test_random_places_fill_a_cell_of_any_shape_that_does_not_repeat():
    simulation = molecular.system(
        particles={"A": {"count": 12}},
        interactions=[{"energy": "k/r**12", "cutoff": 2.0}],
        cell={"vectors": [[6, 0], [3, 5]], "periodic": False},
        parameters={"k": 1.0},
    )
    start = jax.jit(lambda key: simulation.init(simulation.params, key).descent.position)(jax.random.key(0))
    fractions = np.asarray(start) @ np.linalg.inv([[6, 0], [3, 5]])
    assert fractions.min() > -1e-6 and fractions.max() < 1 + 1e-6


def test_one_particle_meets_its_own_images():
    # Six neighbors at distance a, the next ones beyond the cut-off: E = 3 k a^-12.
    simulation = molecular.system(
        particles={"A": {"count": 1}},
        interactions=[{"energy": "k/r**12", "cutoff": "1.6*a"}],
        cell={"vectors": [["a", 0], ["a/2", "sqrt(3)/2*a"]]},
        start={"positions": [[0.1, 0.2]]},
        parameters={"k": 1.0, "a": 1.1},
    )
    assert diagnosed(simulation, "energy") == pytest.approx(3 * 1.1**-12, rel=1e-5)


def test_a_field_that_is_infinite_at_both_sides_of_its_cell_fits():
    simulation = made(fields=[{"energy": "1/sin(pi*x/side)**2"}], start={"separation": 0})
    simulation.check(simulation.params, jax.random.key(0))
