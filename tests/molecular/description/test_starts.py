"""Starts of systems as data: structures, random places, values of particles, and tasks."""

import itertools

import ase
import ase.build
import ase.cluster
import jax
import numpy as np
import pytest

from simkit import molecular
from simkit.core.simulation import as_arrays
from simkit.errors import UserError
from simkit.molecular import system
from simkit.molecular.description.settings import number_of_each
from simkit.molecular.description.starts import RandomPlaces
from simkit.molecular.structures.extended_xyz import write_extended_xyz
from simkit.molecular.structures.structures import from_atoms
from tests.tables import every

# The bond of Stillinger-Weber silicon is 2^(1/6) sigma long; the cubic cell is 4 / sqrt(3) bonds wide.
SILICON_CELL = 4 / np.sqrt(3) * 2 ** (1 / 6) * 2.0951
LENNARD_JONES = {"potential": "lennard_jones"}


def text_of(*atoms):
    return write_extended_xyz([from_atoms(one) for one in atoms])


def made(text, *interactions, parameters=None, **settings):
    """Return a system of all species in a text, with Lennard-Jones by default."""
    symbols = dict.fromkeys(line.split()[0] for line in text.split("\n")[2:] if len(line.split()) > 3)
    start = {"structure": text} | settings.pop("start", {})
    return system(
        particles=settings.pop("particles", {symbol: {} for symbol in symbols if symbol.isalpha()}),
        interactions=interactions or [LENNARD_JONES],
        start=start,
        parameters=parameters or {"epsilon": 1.0, "sigma": 1.0},
        **settings,
    )


def diagnosed(simulation, name, **values):
    """Return a diagnostic of the start; no others are compiled."""
    params = simulation.with_params(**values).params

    def start(params):
        return simulation.diagnose(simulation.init(params, jax.random.key(0)), params)[name]

    return float(jax.jit(start)(params))


def refusal(simulation, **values):
    with pytest.raises(UserError) as caught:
        simulation.check_values(simulation.with_params(**values).params, jax.random.key(0))
    assert str(caught.value).isprintable()
    return str(caught.value)


def crystal(repeats=2):
    return ase.build.bulk("Si", "diamond", a=SILICON_CELL, cubic=True) * ((repeats,) * 3)


def test_disorder_moves_the_atoms_of_a_structure_at_random_with_the_key(x64):
    text = text_of(ase.Atoms("Ar64", positions=2 * np.indices((4, 4, 4)).reshape(3, -1).T))
    simulation = made(
        text, start={"disorder": "disorder"}, parameters={"epsilon": 1.0, "sigma": 1.0, "disorder": 0.125}
    )
    position = jax.jit(lambda key: simulation.init(simulation.params, key).descent.position)
    away = np.asarray(position(jax.random.key(0))) - 2 * np.indices((4, 4, 4)).reshape(3, -1).T
    # 192 uniform numbers come within 10 % of their bound (probability of none: 0.9^192 = 2e-9).
    assert 0.9 * 0.125 < np.abs(away).max() <= 0.125
    assert not np.array_equal(position(jax.random.key(0)), position(jax.random.key(1)))


ONE = text_of(ase.Atoms("X2", positions=[[0, 0, 0], [3, 0, 0]]))
PAIR = text_of(ase.Atoms("ArNe", positions=[[0, 0, 0], [3, 0, 0]]))
BOXED = text_of(ase.Atoms("X2", positions=[[0, 0, 0], [3, 0, 0]], cell=[6, 7, 8], pbc=True))
WATER = text_of(ase.Atoms("OH2", positions=[[0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]]))
IMPURE = crystal()
IMPURE.symbols[4] = "C"
MANY = text_of(ase.build.bulk("X", "sc", a=5.0) * (26, 26, 26)).replace('pbc="T T T"', 'pbc="F F F"')

MISTAKES = {
    "not a structure": (
        {"text": "nonsense", "particles": {"X": {}}},
        "start.structure is one line; for a file write structure = { file = 'nonsense' }",
    ),
    "frame": ({"text": ONE, "start": {"frame": 1}}, "start.frame = 1 is not an integer from -1 to 0"),
    "carbon in silicon": (
        {"text": text_of(IMPURE), "particles": {"Si": {}}},
        "start.structure: atom 4 (the first is 0) is C, no species; known names: Si; change the atom, or add "
        "[config.particles.C]",
    ),
    "two more": (
        {"text": WATER, "particles": {"X": {}}},
        "atom 0 (the first is 0) is O, no species; known names: X; change the atom, or add [config.particles.O] and "
        "[config.particles.H]",
    ),
    "not in the file": (
        {"text": PAIR, "particles": {"Ar": {}, "Ne": {}, "Nee": {}}},
        "particles.Nee: is declared, and the structure has 0 such atoms; leave it out",
    ),
    "count": (
        {"text": PAIR, "particles": {"Ar": {"count": 2}, "Ne": {}}},
        "particles.Ar: count = 2, and the structure has 1 such atoms; leave it out",
    ),
    "shape of a table": (
        {"text": PAIR, "parameters": {"epsilon": [[1.0]], "sigma": 1.0}},
        "parameter 'epsilon' has shape (1, 1); give one number, or a table of 2 rows of 2, by pair of the species "
        "Ar, Ne",
    ),
    "no cutoff": ({"text": BOXED}, "interactions[0].cutoff is missing; in a cell that repeats an energy must end"),
    "no cell to relax": ({"text": ONE, "relax": {"cell": True}}, "relax.cell needs a cell that repeats"),
    "too many pairs": ({"text": MANY}, "interactions[0].cutoff is missing; 17576 particles have too many pairs"),
}


@every(MISTAKES)
def test_a_mistake_is_refused_in_one_line_before_a_run(x64, settings, phrase):
    with pytest.raises(UserError) as caught:
        made(**settings)
    assert phrase in str(caught.value) and str(caught.value).isprintable()


def test_all_pairs_of_very_many_particles_are_refused(x64):
    interaction = LENNARD_JONES | {"cutoff": 2.5, "method": "all_pairs"}
    with pytest.raises(UserError, match=r"method = 'all_pairs' takes every pair, and 17576 particles have too many"):
        made(MANY, interaction)
    made(MANY, LENNARD_JONES | {"cutoff": 2.5})


PLACES = {
    "free": ({}, [[1, 0, 0], [3, 0, 0], [1, 0, 0]]),
    "free and flat": ({}, [[1, 2, 0], [1, 3, 0], [1, 2, 0]]),
    # The same place through faces of the cell, and beside one by a rounding.
    "closed": ({"cell": {"lengths": [6, 7, 8]}}, [[1, 0, 0], [3, 0, 0], [-5, 7, -8]]),
    "face": ({"cell": {"lengths": [6, 7, 8]}}, [[0, 1, 1], [3, 0, 0], [-1e-17, 1, 1]]),
    "triclinic": ({"cell": {"vectors": [[6, 0, 0], [3, 7, 0], [1, 1, 8]]}}, [[1, 1, 1], [3, 0, 0], [11, 9, 9]]),
    "slab": ({"cell": {"lengths": [6, 7, 8], "periodic": [True, True, False]}}, [[1, 0, 2], [3, 0, 2], [-5, 7, 2]]),
}


@every(PLACES)
def test_two_particles_in_one_place_are_refused_by_name(x64, more, positions):
    simulation = system(
        particles={"Ar": {"count": 3}},
        interactions=[LENNARD_JONES | {"cutoff": 2.9}],
        start={"positions": [[f"size*{x}" for x in row] for row in positions]},
        parameters={"epsilon": 1.0, "sigma": 1.0, "size": 1.0},
        **more,
    )
    phrase = "particles 0 and 2 (the first is 0) are in one place, so the force between"
    assert f"start.positions: {phrase}" in refusal(simulation)
    cell = more.get("cell", {})
    vectors = cell.get("vectors", np.diag(cell.get("lengths", [0, 0, 0])))
    text = text_of(ase.Atoms("Ar3", positions=positions, cell=vectors, pbc=bool(cell)))
    axes = {"cell": {"periodic": cell["periodic"]}} if "periodic" in cell else {}
    assert f"start.structure: {phrase}" in refusal(made(text, LENNARD_JONES | {"cutoff": 2.9}, **axes))


def test_particles_apart_along_an_axis_that_does_not_repeat_are_not_in_one_place(x64):
    text = text_of(ase.Atoms("Ar3", positions=[[1, 1, 0], [3, 0, 2], [1, 1, 8]], cell=[6, 7, 8], pbc=True))
    interaction = LENNARD_JONES | {"cutoff": 2.9}
    simulation = made(text, interaction, cell={"periodic": [True, True, False]})
    simulation.check_values(simulation.params, jax.random.key(0))
    assert "particles 0 and 2" in refusal(made(text, interaction))
    oblique = ase.Atoms("Ar2", positions=[[1, 1, 1], [3, 0, 2]], cell=[[6, 0, 0], [1, 7, 0], [0, 0, 8]], pbc=True)
    with pytest.raises(UserError, match=r"cell\.periodic is true along some axes only, which needs an orthorhombic"):
        made(text_of(oblique), interaction, cell={"periodic": [True, True, False]})


@pytest.mark.parametrize("pbc", [(True, True, False), (False, True, False)])
def test_a_structure_repeats_along_its_own_axes_unless_the_cell_says_otherwise(x64, pbc):
    atoms = ase.Atoms("Ar2", positions=[[1, 1, 1], [1, 1, 5]], cell=[6, 7, 6], pbc=pbc)
    interaction = LENNARD_JONES | {"cutoff": 3.0, "ending": "truncate"}
    # They are 4 apart, and 2 through the faces along z.
    assert diagnosed(made(text_of(atoms), interaction), "energy") == 0
    images = made(text_of(atoms), interaction, cell={"images": [1, 1, 1]})
    np.testing.assert_array_equal(images.coordinates["periodic"], pbc)
    closed = made(text_of(atoms), interaction, cell={"periodic": True})
    assert diagnosed(closed, "energy") == pytest.approx(4 * (2.0**-12 - 2.0**-6), rel=1e-12)
    atoms.cell[1] = [1, 7, 0]
    with pytest.raises(UserError, match=r"start\.structure: its cell is periodic along some axes only, which needs"):
        made(text_of(atoms), interaction)


def test_atoms_of_a_structure_in_free_space_meet_in_a_cell_of_its_own_by_check(x64):
    text = text_of(ase.Atoms("Ar2", positions=[[1, 1, 1], [1, 1, 7]]))
    cell = {"lengths": ["side", "side", "side"]}
    parameters = {"epsilon": 1.0, "sigma": 1.0, "side": 7.0}
    simulation = made(text, LENNARD_JONES | {"cutoff": 2.5}, cell=cell, parameters=parameters)
    simulation.check_values(simulation.params, jax.random.key(0))
    assert "start.structure: particles 0 and 1 (the first is 0) are in one place" in refusal(simulation, side=6.0)


def test_positions_that_are_not_finite_are_refused(x64):
    simulation = system(
        particles={"A": {"count": 2}},
        interactions=[LENNARD_JONES],
        start={"positions": [[0, 0], ["1/size", 1]]},
        parameters={"epsilon": 1.0, "sigma": 1.0, "size": 1.0},
    )
    assert "start.positions: particle 1 (the first is 0) starts at [inf, 1.0]; move it" in refusal(simulation, size=0.0)


def test_positions_that_coincide_in_float32_are_refused(x64):
    with jax.enable_x64(False):
        simulation = system(
            particles={"A": {"count": 2}},
            interactions=[LENNARD_JONES | {"cutoff": 2.5}],
            start={"positions": [[0.1, 1, 1], ["side + 0.1", 1, 1]]},
            cell={"lengths": ["side", "side", "side"]},
            parameters={"epsilon": 1.0, "sigma": 1.0, "side": 10.0},
        )
        for side in (10.0, 11.3, 977.7):
            assert "are in one place" in refusal(simulation, side=side)


HEIGHT = 8.0
LOWER = {"distance": "y", "energy": "1/r**9"}
UPPER = {"distance": "height - y", "potential": "weeks_chandler_andersen", "values": {"epsilon": 1, "sigma": 1}}


def fluid(walls, small=0.5):
    return molecular.system(
        dimension=2,
        particles={"A": {"count": 34}, "B": {"count": 6, "diameter": small}},
        cell={"lengths": [HEIGHT, HEIGHT], "periodic": [True, False]},
        interactions=[{"energy": "1/r**12", "cutoff": 2.5, "ending": "switch"}],
        walls=walls,
        start={"separation": 0.9},
        task="dynamics",
        dynamics={"time_step": 0.002, "temperature": 1},
        parameters={"height": HEIGHT},
    )


FILLED = {
    "cell": ([4.0, 3.0], (True, True), 12.0),
    "strip": ([4.0, 3.0], (True, False), 4.0 * 4.0),
    "oblique cell": ([[4.0, 0.0], [1.0, 3.0]], (True, True), 12.0),
    "oblique strip": ([[4.0, 0.0], [3.0, 3.0]], (True, False), 4.0 * 4.0),
    "tube": ([4.0, 3.0, 2.0], (False, False, True), 5.0 * 4.0 * 2.0),
}


def test_the_part_of_a_cell_or_a_ball_that_balls_fill():
    for case, (frame, periodic, room) in FILLED.items():
        places = RandomPlaces(0.5, np.array([2.0, 1.0, 1.0]), np.array(frame), periodic, is_ball=False)
        balls = np.pi * (1 / 4 + 2 / 16) if len(periodic) == 2 else 4 / 3 * np.pi * (1 / 8 + 2 / 64)
        assert places.filled() == pytest.approx(balls / room), case
    ball = RandomPlaces(0.5, np.ones(5), np.array([3.0, 3.0, 3.0]), (False,) * 3, is_ball=True)
    assert ball.filled() == pytest.approx(5 * (0.25 / 1.75) ** 3)


POSITIONS = np.array([[0.0, 0], [1, 0], [0, 1.2], [2, 1], [-1, 0.7], [0.5, 2]])
CHARGES = [1.0, -0.5, 2.0, 0.25, -1.5, 0.75]


def charged(particles, energy="q_i*q_j*exp(-r)", **more):
    return system(
        particles=particles,
        start={"positions": POSITIONS.tolist()},
        interactions=[{"energy": energy, **more}],
        parameters={"one": 1.0},
        observed=["energy_of_particle"],
    )


def energies(simulation):
    """Return the energy, and that of each particle."""
    params = as_arrays(simulation.params)

    @jax.jit
    def computed(params):
        state = simulation.init(params, jax.random.key(0))
        return simulation.diagnose(state, params)["energy"], simulation.observe(state, params)["energy_of_particle"]

    simulation.check(params, jax.random.key(0))
    return computed(params)


def test_values_of_one_species_of_many_and_of_particles_reach_the_energy_of_a_pair(x64):
    many = {f"s{index}": {"count": 1, "values": {"q": charge}} for index, charge in enumerate(CHARGES)}
    cases = [
        ({"s": {"values": {"q": 0.5}}}, [0.5] * 6),
        (many, CHARGES),
        ({"a": {"count": 2, "values": {"q": "one/2"}}, "b": {"count": 4, "values": {"q": CHARGES[2:]}}}, None),
    ]
    for particles, charges in cases:
        q = np.array([0.5, 0.5, *CHARGES[2:]] if charges is None else charges)
        r = np.linalg.norm(POSITIONS[:, None] - POSITIONS, axis=-1)
        of_each = np.where(np.eye(6), 0, np.outer(q, q) * np.exp(-r)).sum(axis=1) / 2
        total, each = energies(charged(particles))
        np.testing.assert_allclose(each, of_each, rtol=1e-13, atol=1e-15)
        assert float(total) == pytest.approx(of_each.sum(), rel=1e-12)


def test_numbers_of_particles_that_do_not_fit_are_refused_with_their_key():
    for values, words in (
        ([1.0, 2.0], "particles.s.values.q has 2 numbers for 6 particles"),
        ({"seed": 1}, "particles.s.values.q is not one distribution"),
    ):
        with pytest.raises(UserError, match=words):
            charged({"s": {"values": {"q": values}}})
    with pytest.raises(UserError, match=r"particles.s.diameter: number 1 .* = -1 is not positive"):
        charged({"s": {"diameter": [1.0, -1.0, 1, 1, 1, 1], "values": {"q": 1}}})
    with pytest.raises(UserError, match=r"is .* for s_s and .* the other way round"):
        energies(charged({"s": {"values": {"q": CHARGES}}}, "q_i*exp(-r)"))


def test_a_program_does_not_grow_with_the_number_of_species():
    def size(count):
        names = [f"s{index}" for index in range(count)]
        table = {
            f"{a}_{b}": 1 + 0.1 * abs(ord(a[1]) - ord(b[1]))
            for a, b in itertools.combinations_with_replacement(names, 2)
        }
        simulation = system(
            particles={
                name: {"count": 12 // count, "values": {"d": 1 + index / 9}} for index, name in enumerate(names)
            },
            start={"radius": 3.0},
            dimension=3,
            interactions=[
                {"potential": "lennard_jones", "values": {"epsilon": 1, "sigma": table}, "cutoff": 2.5},
                {"energy": "exp(-r/(d_i + d_j))", "cutoff": 2.5},
            ],
            parameters={"one": 1.0},
        )
        params = as_arrays(simulation.params)
        state = jax.eval_shape(simulation.init, params, jax.random.key(0))
        return str(jax.make_jaxpr(simulation.step)(state, params)).count("\n")

    assert size(12) < 1.1 * size(1)


def test_numbers_of_particles_are_read_from_text_and_drawn_from_a_distribution():
    setting = number_of_each("size")
    assert setting.check("1.5 2\n3,4\n", "d").numbers(4).tolist() == [1.5, 2, 3, 4]
    assert setting.check("one/2", "d").text == "one/2"
    for kind in ("normal", "lognormal"):
        sizes = setting.check({kind: [2, 0.5], "seed": 1}, "d").numbers(100_000)
        # Six standard errors, 0.5 / sqrt(N).
        assert abs(sizes.mean() - 2) < 0.01
        assert abs(sizes.std() - 0.5) < 0.01
    np.testing.assert_array_equal(
        setting.check({"uniform": [0.8, 1.2], "seed": 1}, "d").numbers(9), np.random.default_rng(1).uniform(0.8, 1.2, 9)
    )


DYNAMICS = {"time_step": 0.01, "temperature": 0.7}


def test_potential_energy_is_that_of_the_positions_in_every_task(x64):
    """Two particles 1.5 apart on a spring of length 1: U = 0.5 0.5^2, while ``energy`` of dynamics adds motion."""
    for task in ("relax", "dynamics", ["dynamics", "relax"]):
        settings = {} if task == "relax" else {"dynamics": DYNAMICS | ({} if task == "dynamics" else {"steps": 3})}
        simulation = molecular.system(
            dimension=2,
            particles={"A": {"count": 2}},
            start={"positions": [[0.0, 0.0], [1.5, 0.0]]},
            interactions=[{"energy": "0.5*stiffness*(r - 1)**2"}],
            task=task,
            parameters={"stiffness": 1.0},
            **settings,
        )
        assert diagnosed(simulation, "potential_energy") == pytest.approx(0.125), task
        assert diagnosed(simulation, "potential_energy_per_particle") == pytest.approx(0.0625), task
        assert simulation.quantities["potential_energy"].unit == "energy", task
