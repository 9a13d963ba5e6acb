"""Mistakes in a system that is given as data: one line, with the key and the column; and what potentials declare."""

import jax
import jax.numpy as jnp
import pytest

from simkit.errors import UserError
from simkit.molecular import potentials, system
from tests.tables import every

LJ = {"energy": "4*epsilon*((sigma/r)**12 - (sigma/r)**6)", "cutoff": "2.5*sigma"}
PARAMETERS = {"epsilon": 1.0, "sigma": 1.0, "side": 6.0}
MIXTURE = {"A": {"count": 3}, "B": {"count": 3}}


def made(**changes):
    settings = {
        "particles": MIXTURE,
        "interactions": [LJ],
        "start": {"separation": 0.7},
        "cell": {"lengths": ["side", "side"]},
        "parameters": PARAMETERS,
    }
    return system(**settings | changes)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(UserError) as refused:
        made(cell={"length": 1}, task="search", start={"lattice": "cubic", "repeats": [2, 2]})
    assert len(refused.value.others) == 2


FIELD_IN_A_CELL = {
    "particles": {"A": {"count": 16}},
    "dimension": 2,
    "start": {"lattice": "square", "repeats": [4, 4]},
    "cell": {"lengths": ["L", "L"]},
    "interactions": [{"energy": "4*((1/r)**12 - (1/r)**6)", "cutoff": 1.8}],
    "parameters": {"L": 4.6, "p": 5.0},
}
BATH = {"method": "bussi", "time_step": 0.004, "temperature": 0.5, "thermostat_time": 0.2}


def test_a_field_in_a_cell_that_changes_is_refused():
    barostat = {"pressure": "p", "barostat_time": 0.5, "compressibility": 0.1}
    for more, key in (
        ({"task": "relax", "relax": {"cell": True, "pressure": "p"}}, "relax.cell = true"),
        ({"task": "dynamics", "dynamics": BATH | barostat}, "dynamics.pressure of a barostat"),
    ):
        with pytest.raises(UserError, match=f"{key} changes the cell, in which a field that fits it at the start"):
            system(**FIELD_IN_A_CELL, fields=[{"energy": "cos(2*pi*x/L)"}], **more)
        assert system(**FIELD_IN_A_CELL, **more).params


SQUARE = {"lattice": "square", "repeats": [4, 4]}


SIZES = [
    ({"cell": {"lengths": [-6.0, 6.0]}}, "the cell has no volume, with the sides -6, 6; give lengths"),
    ({"cell": {"lengths": [0.0, 6.0]}}, "the cell has no volume, with the sides 0, 6"),
    ({"cell": {"lengths": [6.0, "-size"], "periodic": [True, False]}}, "with the sides 6, -6"),
    ({"cell": {"lengths": ["-size", 6.0], "periodic": False}}, "the cell has no volume"),
    ({"cell": {"density": -0.1}}, "the cell has no volume"),
    ({"cell": {"density": 0}}, "the cell has no volume"),
    ({"cell": {"vectors": [[6, 0], ["size", 0]]}}, "the cell has no volume, with the vectors 6, 0; 6, 0"),
    ({"particles": {"A": {}}, "start": SQUARE | {"spacing": -1.2}}, "the cell has no volume"),
    ({"particles": {"A": {}}, "start": SQUARE | {"spacing": 0}}, "the cell has no volume"),
    ({"start": {"radius": -3.0}}, "start.radius = -3 is not positive"),
    ({"start": {"radius": 0}}, "start.radius = 0 is not positive"),
]


@every("changed, words", SIZES)
def test_sizes_that_are_not_above_zero_are_refused(changed, words):
    given = {"particles": {"A": {"count": 4}}, "interactions": [{"energy": "size/r**12", "cutoff": 2.0}]}
    with pytest.raises(UserError) as refused:
        made = system(**given | {"dimension": 2, "parameters": {"size": 6.0}} | changed)
        made.check_values(made.params, jax.random.key(0))
    assert words in str(refused.value)


ELASTIC = {
    "particles": {"A": {}},
    "start": {"lattice": "face_centered_cubic", "repeats": [1, 1, 1], "spacing": 1.05},
    "interactions": [{"potential": "lennard_jones", "cutoff": 4, "tail": True}],
    "parameters": {"epsilon": 1.0, "sigma": 1.0},
    "observed": ["elastic_constants"],
}
UNDEFINED = [
    ({"task": "dynamics", "dynamics": {"time_step": 0.01}}, "'elastic_constants' needs particles at rest"),
    ({"fields": [{"energy": "cos(x)"}]}, "needs a system without fields and without frozen"),
    ({"particles": {"A": {"frozen": True}}}, "needs a system without fields and without frozen"),
    (
        {"cell": {"periodic": [True, True, False], "lengths": [9, 9, 9]}, "interactions": [LJ]},
        "needs a cell that repeats",
    ),
]


@every("changes, phrase", UNDEFINED)
def test_elastic_constants_are_refused_where_they_are_undefined(changes, phrase):
    with pytest.raises(UserError, match=phrase):
        system(**ELASTIC | changes)


OF_SILICON = {"epsilon": 20.0, "sigma": 1.0, "alpha": 5.0, "tetrahedral_strength": 21.0, "cooling": 2.0}
CUBE = {"lattice": "face_centered_cubic", "repeats": [2, 2, 2], "spacing": 1.4}
PLANE = {"lattice": "triangular", "repeats": [4, 3]}
MORSE = {"jax_md": "morse", "cutoff": 1.9}
SILICON = {"potential": "stillinger_weber"}
TRICLINIC = {"vectors": [[4, 0, 0], [0, 4, 0], [0.4, 0, 4]], "periodic": [True, True, False]}
OBLIQUE = {"vectors": [[4, 0], [0.4, 4]], "periodic": [True, False]}
BAROSTAT = {"pressure": "1 + time", "barostat_time": 1.0, "compressibility": 0.05}
SOFT = {"energy": "epsilon*where(r < sigma, (1 - r/sigma)**2.5, 0)", "cutoff": "sigma", "ending": "truncate"}


def combined_with(interaction=SOFT, start=PLANE, **more):
    return system(particles={"A": {"mass": 2}}, interactions=[interaction], start=start, parameters=OF_SILICON, **more)


def moving(method, **more):
    dynamics = {"method": method, "time_step": 0.002, "temperature": 0.1, **more}
    return combined_with(cell={"density": 1.3}, task="dynamics", dynamics=dynamics)


ORTHORHOMBIC = "cell.periodic is true along some axes only, which needs an orthorhombic cell"
REFUSED = {
    "jax_md in a slab": (
        lambda: combined_with(MORSE, CUBE, cell={"lengths": [4, 4, 4], "periodic": [True, False, True]}),
        "interactions[0].jax_md needs free space or a cell that repeats along all axes",
    ),
    "a list of jax_md": (
        lambda: combined_with(MORSE | {"method": "neighbor_list"}, CUBE),
        "interactions[0].method has no effect on potential = 'jax_md'",
    ),
    "all pairs of angles": (
        lambda: combined_with(SILICON | {"method": "all_pairs"}, CUBE),
        "interactions[0].method has no effect on potential = 'stillinger_weber'",
    ),
    "angles in a plane": (lambda: combined_with(SILICON), "'stillinger_weber' is of one species in three dimensions"),
    "a slab of any shape": (lambda: combined_with(SOFT, CUBE, cell=TRICLINIC), ORTHORHOMBIC),
    "a strip of any shape": (lambda: combined_with(SOFT, PLANE, cell=OBLIQUE), ORTHORHOMBIC),
    "more cells than interact": (
        lambda: combined_with(cell={"density": 1.3, "images": [40, 40]}),
        "cell.images = [40, 40] are 1600 cells, more than 343; lower them",
    ),
    "more phonons than fit": (
        lambda: combined_with(
            cell={"density": 1.3},
            phonons={
                "corners": {"a": [0, 0], "b": [0.5, 0]},
                "path": ["a", "b"],
                "density_of_states": {"mesh": [4000, 4000], "largest": 9.0, "width": 0.1},
            },
        ),
        "phonons.density_of_states.mesh = [4000, 4000] makes 1.6e+07 wave vectors, more than 4194304; choose fewer",
    ),
    "schedule without a bath": (
        lambda: moving("velocity_verlet", temperature="0.1*exp(-time)"),
        "dynamics.temperature changes in time, and method = 'velocity_verlet' has no bath; choose another",
    ),
    "barostat without a bath": (
        lambda: moving("velocity_verlet", **BAROSTAT),
        "dynamics.pressure has no effect on method = 'velocity_verlet', which has no thermostat",
    ),
}


@every(REFUSED)
def test_what_cannot_be_combined_is_refused_by_name(x64, make, message):
    with pytest.raises(UserError) as refused:
        make()
    assert message in str(refused.value)


BONDS = {
    "lennard_jones": (potentials.lennard_jones(), {"epsilon": 1.3, "sigma": 0.8}),
    "mie": (potentials.mie(9, 4), {"epsilon": 1.3, "sigma": 0.8}),
    "morse": (potentials.morse(), {"epsilon": 1.3, "sigma": 0.8, "rho": 5.0}),
    "morse_diatomic": (potentials.morse_diatomic(), {"depth": 1.3, "bond_length": 0.8, "alpha": 5.0}),
}


def test_potentials_declare_their_minimum_and_its_curvature(x64):
    @jax.jit
    def slopes():
        found = {}
        for name, (potential, parameters) in BONDS.items():
            length, stiffness = potential.bond(**parameters)
            push, bend = jax.jvp(lambda r, u=potential, p=parameters: u.force(r, **p), (length,), (jnp.ones(()),))
            found[name] = (push / (stiffness * length), -bend / stiffness)
        return found

    for name, (push, bend) in slopes().items():
        # Of forces of 72 epsilon / sigma the round-off is left.
        assert abs(float(push)) < 1e-14 and float(bend) == pytest.approx(1, rel=1e-12), name
