"""Structures of different sizes as one system: equal to each by itself."""

import ase.build
import jax
import numpy as np
import pytest

from simkit import molecular
from simkit.core.files import read_texts
from simkit.errors import UserError
from simkit.molecular.structures import from_atoms, write_extended_xyz

PAIRS = {"potential": "lennard_jones", "cutoff": 6.0, "ending": "shift_force", "values": {"epsilon": "depth"}}


def crystal(repeats, *, krypton=(), shear=0.0):
    atoms = ase.build.bulk("Ar", "fcc", a=5.26, cubic=True) * repeats
    for index in krypton:
        atoms.symbols[index] = "Kr"
    cell = atoms.cell.array.copy()
    cell[1, 0] = shear
    atoms.set_cell(cell, scale_atoms=True)
    atoms.rattle(0.1, seed=3)
    return from_atoms(atoms)


TEXT = write_extended_xyz([crystal((1, 1, 1)), crystal((2, 1, 1), krypton=(0, 5)), crystal((1, 1, 1), shear=1.5)])


def made(frame, **settings):
    return molecular.system(
        **{
            "particles": {"Ar": {}, "Kr": {}},
            "interactions": [PAIRS],
            "start": {"structure": TEXT, "frame": frame},
            "relax": {"force_tolerance": 1e-9},
            "parameters": {"depth": 0.01, "sigma": 3.4, "member": 0.0},
        }
        | settings
    )


def test_a_number_of_no_structure_is_refused_before_a_run_and_nan_within(x64):
    every = made("member")
    with pytest.raises(UserError, match=r"start\.frame = 3, and there are frames 0 to 2"):
        every.check_values(every.with_params(member=3.0).params, jax.random.key(0))
    start = jax.jit(lambda params: every.observe(every.init(params, jax.random.key(0)), params)["position"])
    assert np.isnan(start(every.with_params(member=0.5).params)).all()


def test_what_absent_atoms_lack_is_refused():
    for settings, match in (
        ({"task": "dynamics", "relax": None, "dynamics": {"time_step": 0.1}}, "no task but relax"),
        ({"relax": {"cell": True, "pressure": "sigma"}}, "no cell that relaxes"),
        ({"fields": [{"energy": "x**2"}]}, "no fields and walls"),
        ({"observed": ["elastic_constants"]}, "no observed quantities"),
        ({"interactions": [{**PAIRS, "method": "all_pairs"}]}, "'all_pairs' has no place"),
    ):
        with pytest.raises(UserError, match=match):
            made("member", **settings)


def test_files_of_a_pattern_are_one_text_in_alphabetical_order(tmp_path):
    for name in ("b.xyz", "a.xyz", "other.txt"):
        (tmp_path / name).write_text(name)
    assert read_texts(tmp_path / "*.xyz", "here") == "a.xyz\nb.xyz\n"
    with pytest.raises(UserError, match="here: no file is named"):
        read_texts(tmp_path / "*.cif", "here")
