"""Systems that start from structures: known energies, symbols of species, and refusal of mistakes before a run."""

import ase
import ase.build
import ase.cluster
import jax
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import system
from simkit.molecular.structures.extended_xyz import write_extended_xyz
from simkit.molecular.structures.structures import from_atoms

pytestmark = pytest.mark.usefixtures("x64")

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


def test_disorder_moves_the_atoms_of_a_structure_at_random_with_the_key():
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
    "frame": ({"text": ONE, "start": {"frame": 1}}, "start.frame = 1 is not an integer of -1 to 0"),
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
    "no cell to relax": ({"text": ONE, "relax": {"cell": True}}, "relax.cell = true needs a cell that repeats"),
    "too many pairs": ({"text": MANY}, "interactions[0].cutoff is missing; 17576 particles have too many pairs"),
}


def test_a_mistake_is_refused_in_one_line_before_a_run():
    missed = []
    for case, (settings, phrase) in MISTAKES.items():
        with pytest.raises(UserError) as caught:
            made(**settings)
        if phrase not in str(caught.value) or not str(caught.value).isprintable():
            missed.append((case, str(caught.value)))
    assert not missed


def test_all_pairs_of_very_many_particles_are_refused():
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
    "slab": (
        {"cell": {"lengths": [6, 7, 8], "periodic": [True, True, False]}},
        [[1, 0, 2], [3, 0, 2], [-5, 7, 2]],
    ),
}


def test_two_particles_in_one_place_are_refused_by_name():
    for case, (more, positions) in PLACES.items():
        simulation = system(
            particles={"Ar": {"count": 3}},
            interactions=[LENNARD_JONES | {"cutoff": 2.9}],
            start={"positions": [[f"size*{x}" for x in row] for row in positions]},
            parameters={"epsilon": 1.0, "sigma": 1.0, "size": 1.0},
            **more,
        )
        phrase = "start.positions: particles 0 and 2 (the first is 0) are in one place, so the force between"
        assert phrase in refusal(simulation), case
        cell = more.get("cell", {})
        vectors = cell.get("vectors", np.diag(cell.get("lengths", [0, 0, 0])))
        text = text_of(ase.Atoms("Ar3", positions=positions, cell=vectors, pbc=bool(cell)))
        axes = {"cell": {"periodic": cell["periodic"]}} if "periodic" in cell else {}
        with pytest.raises(UserError) as caught:
            made(text, LENNARD_JONES | {"cutoff": 2.9}, **axes)
        phrase = "start.structure: particles 0 and 2 (the first is 0) are in one place"
        assert phrase in str(caught.value), case


def test_particles_apart_along_an_axis_that_does_not_repeat_are_not_in_one_place():
    text = text_of(ase.Atoms("Ar3", positions=[[1, 1, 0], [3, 0, 2], [1, 1, 8]], cell=[6, 7, 8], pbc=True))
    interaction = LENNARD_JONES | {"cutoff": 2.9}
    simulation = made(text, interaction, cell={"periodic": [True, True, False]})
    simulation.check_values(simulation.params, jax.random.key(0))
    with pytest.raises(UserError, match="particles 0 and 2"):
        made(text, interaction)
    oblique = ase.Atoms("Ar2", positions=[[1, 1, 1], [3, 0, 2]], cell=[[6, 0, 0], [1, 7, 0], [0, 0, 8]], pbc=True)
    with pytest.raises(UserError, match=r"cell\.periodic is true along some axes only, which needs an orthorhombic"):
        made(text_of(oblique), interaction, cell={"periodic": [True, True, False]})


@pytest.mark.parametrize("pbc", [(True, True, False), (False, True, False)])
def test_a_structure_repeats_along_its_own_axes_unless_the_cell_says_otherwise(pbc):
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


def test_atoms_of_a_structure_in_free_space_meet_in_a_cell_of_its_own_by_check():
    text = text_of(ase.Atoms("Ar2", positions=[[1, 1, 1], [1, 1, 7]]))
    cell = {"lengths": ["side", "side", "side"]}
    parameters = {"epsilon": 1.0, "sigma": 1.0, "side": 7.0}
    simulation = made(text, LENNARD_JONES | {"cutoff": 2.5}, cell=cell, parameters=parameters)
    simulation.check_values(simulation.params, jax.random.key(0))
    assert "start.structure: particles 0 and 1 (the first is 0) are in one place" in refusal(simulation, side=6.0)


def test_positions_that_are_not_finite_are_refused():
    simulation = system(
        particles={"A": {"count": 2}},
        interactions=[LENNARD_JONES],
        start={"positions": [[0, 0], ["1/size", 1]]},
        parameters={"epsilon": 1.0, "sigma": 1.0, "size": 1.0},
    )
    assert "start.positions: particle 1 (the first is 0) starts at [inf, 1.0]; move it" in refusal(simulation, size=0.0)


def test_positions_that_coincide_in_float32_are_refused():
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
