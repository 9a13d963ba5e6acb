"""Mistakes in a system that is given as data: one line, with the key and the column."""

import jax
import pytest

from simkit import molecular
from simkit.errors import UserError
from simkit.molecular import system

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
    (
        {"cell": {"lengths": [6.0, "-size"], "periodic": [True, False]}},
        "with the sides 6, -6",
    ),
    ({"cell": {"lengths": ["-size", 6.0], "periodic": False}}, "the cell has no volume"),
    ({"cell": {"density": -0.1}}, "the cell has no volume"),
    ({"cell": {"density": 0}}, "the cell has no volume"),
    ({"cell": {"vectors": [[6, 0], ["size", 0]]}}, "the cell has no volume, with the vectors 6, 0; 6, 0"),
    ({"particles": {"A": {}}, "start": SQUARE | {"spacing": -1.2}}, "the cell has no volume"),
    ({"particles": {"A": {}}, "start": SQUARE | {"spacing": 0}}, "the cell has no volume"),
    ({"start": {"radius": -3.0}}, "start.radius = -3 is not positive"),
    ({"start": {"radius": 0}}, "start.radius = 0 is not positive"),
]


def test_sizes_that_are_not_above_zero_are_refused():
    given = {"particles": {"A": {"count": 4}}, "interactions": [{"energy": "size/r**12", "cutoff": 2.0}]}
    missed = []
    for changed, words in SIZES:
        with pytest.raises(UserError) as refused:
            made = molecular.system(**given | {"dimension": 2, "parameters": {"size": 6.0}} | changed)
            made.check_values(made.params, jax.random.key(0))
        if words not in str(refused.value):
            missed.append((changed, str(refused.value)))
    assert not missed


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


def test_elastic_constants_are_refused_where_they_are_undefined():
    for changes, phrase in UNDEFINED:
        with pytest.raises(UserError, match=phrase):
            system(**ELASTIC | changes)
