"""Molecules read from a file of LAMMPS."""

import jax
import pytest

from simkit import molecular
from tests.molecular.imports.lammps_files import ATOMS, DATA, STYLES


def test_energy_force_and_pressure_of_molecules_across_the_faces_of_a_tilted_box_are_those_of_lammps(x64):
    # Without image flags bonds reach across the faces, and nothing else changes.
    unflagged = "\n".join(" ".join(line.split()[:7]) for line in ATOMS.splitlines())
    simulation = molecular.from_lammps(DATA.replace(ATOMS, f"{unflagged}\n"), STYLES).system()
    state = simulation.init(simulation.params, jax.random.key(0))
    found = simulation.diagnose(state, simulation.params)
    # LAMMPS of 22 July 2025: energy in kcal/mol, pressure of the virial in atmospheres.
    assert float(found["energy"]) == pytest.approx(38.25606992275152, rel=1e-12)
    assert float(found["pressure"]) == pytest.approx(1163.3471143091554 / 68568.415, rel=1e-12)
    assert float(found["max_force"]) == pytest.approx(93.5491172372422, rel=1e-12)
