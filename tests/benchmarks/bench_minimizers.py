"""Quenches of Lennard-Jones clusters from random starts: simkit against ASE, SciPy and a plain batched loop.

Run by hand: ``python tests/benchmarks/bench_minimizers.py --particles 38 --starts 256``; ASE must be installed for its
rows, and ``--torch-sim PYTHON`` names an interpreter with torch-sim for its row. Every method gets the same starts in
float64 and stops at the same largest force, 1e-3 epsilon / sigma. Prints, per start, evaluations and milliseconds (the
least of ``--repeats`` runs, compilation apart), and ratios to simkit.
"""

import argparse
import dataclasses
import subprocess
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.ensemble import ensemble
from simkit.core.status import Status, status_of, stops
from simkit.engine.driver import Plan, Program
from simkit.engine.lanes import SEGMENTS, Queue
from tests.benchmarks.timing import best, compiled
from tests.molecular.clusters import cluster

TOLERANCE = 1e-3
# Per-start runs of the slow rivals: enough for a mean.
RIVAL_STARTS = 8


def in_lanes(simulation, states, lanes, max_steps):
    """Return ``() -> (status, iterations)`` of all starts, relaxed as by a sweep: one that ends frees its lane."""
    member = dataclasses.replace(
        simulation,
        init=lambda params, key: jax.tree.map(lambda leaf: leaf[jax.random.key_data(key)[-1]], states),
        observe=lambda state, params: {},
        diagnose=lambda state, params: {"iteration": state.descent.iteration},
    )
    many, plan = ensemble(member), Plan(max_steps, max_steps // SEGMENTS, SEGMENTS)
    count = len(jax.tree.leaves(states)[0])

    def inputs(members):
        return member.params, jax.vmap(jax.random.key)(members)

    def run():
        queue = Queue(Program.of(many, plan), plan, count, lanes, inputs, lambda state, params: {})
        recorded, _ = queue.run(None, lambda fraction, words: None, print)
        end = stops(recorded["status"]).argmax(axis=0), np.arange(count)
        return recorded["status"][end], recorded["diagnosed.iteration"][end]

    return run


def plain_batch(simulation, max_steps):
    """Return the loop one would write first: vmap of a while loop, which waits for the slowest."""
    status = status_of(simulation)

    def relax(state, params):
        return jax.lax.while_loop(
            lambda s: (status(s, params) == Status.OK) & (s.descent.iteration < max_steps),
            lambda s: simulation.step(s, params),
            state,
        )

    return jax.vmap(relax, in_axes=(0, None))


def with_ase(positions, optimizer):
    """Return evaluations and seconds per start, and the energies, of ASE's optimizer on its own pair potential."""
    from ase import Atoms
    from ase.calculators.lj import LennardJones

    begin, evaluations, energies = time.perf_counter(), 0, []
    for position in positions:
        atoms = Atoms(f"Ar{len(position)}", positions=position)
        # A cut-off beyond every pair: the same energy surface up to its own shift.
        atoms.calc = LennardJones(sigma=1.0, epsilon=1.0, rc=50.0)
        run = optimizer(atoms, logfile=None)
        run.run(fmax=TOLERANCE, steps=5000)
        evaluations += run.nsteps + 1
        energies.append(atoms.get_potential_energy())
    return evaluations / len(positions), (time.perf_counter() - begin) / len(positions), np.array(energies)


def with_scipy(positions, simulation):
    """Return evaluations and seconds per start, and the energies, of SciPy's L-BFGS-B with a compiled gradient."""
    from scipy.optimize import minimize

    from simkit.molecular.interactions.pair_interaction import pair_interaction
    from simkit.molecular.potentials import lennard_jones

    surface = pair_interaction(lennard_jones(), cutoff=None, method="all_pairs")

    @jax.jit
    def value_and_gradient(flat):
        position = flat.reshape(-1, 3)
        energy = surface.energy(position, None, simulation.params, ())
        return energy, -surface.force(position, None, simulation.params, ()).ravel()

    def call(flat):
        value, gradient = value_and_gradient(flat)
        return float(value), np.asarray(gradient)

    call(positions[0].ravel())
    begin, evaluations, energies = time.perf_counter(), 0, []
    for position in positions:
        found = minimize(
            call, position.ravel(), jac=True, method="L-BFGS-B", options={"gtol": TOLERANCE, "ftol": 0, "maxiter": 5000}
        )
        evaluations += found.nfev
        energies.append(found.fun)
    return evaluations / len(positions), (time.perf_counter() - begin) / len(positions), np.array(energies)


def beside_torch_sim(interpreter, simulation, states, steps, repeats):
    """Time FIRE steps of all starts at once beside those of torch-sim, in turn, and print milliseconds per step."""
    clusters = cluster(particles=states.descent.position.shape[1], minimizer="fire", force_tolerance=TOLERANCE)
    params = clusters.params
    # From where every force is moderate, so that both take ordinary steps.
    near = jax.jit(jax.vmap(lambda s: jax.lax.fori_loop(0, 100, lambda _, s: simulation.step(s, simulation.params), s)))
    positions = near(states).descent.position
    start = jax.vmap(clusters.init, in_axes=(None, 0))(params, jax.random.split(jax.random.key(0), len(positions)))
    descent = dataclasses.replace(start.descent, position=positions, trial=positions)
    start = dataclasses.replace(start, descent=descent)
    step = jax.vmap(lambda s: clusters.step(s, params))
    ours, _ = compiled(lambda s: jax.lax.fori_loop(0, steps, lambda _, s: step(s), s), start)
    each = best({"ours": ours}, repeats)["ours"] / (steps * len(positions))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "positions.npy"
        np.save(path, np.asarray(positions))
        program = Path(__file__).with_name("torch_sim_fire.py")
        command = [interpreter, program, path, str(steps), str(repeats)]
        theirs = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[0])
    ratio = theirs / (1e3 * each)
    print(f"FIRE, ms per replica and step: simkit {1e3 * each:.5f}, torch-sim {theirs:.5f}: {ratio:.0f}x")


def report(name, evaluations, seconds, ours, lost):
    """Print one row of the table."""
    print(f"{name:34s} {evaluations:8.0f} {1e3 * seconds:10.3f} {seconds / ours:9.2f} {lost:6d}", flush=True)


def main():
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--particles", type=int, default=38)
    parser.add_argument("--starts", type=int, default=256)
    parser.add_argument("--lanes", type=int, default=64)
    parser.add_argument("--stragglers", type=float, default=0.0, help="share of starts far from each other")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--without-rivals", action="store_true")
    parser.add_argument("--torch-sim", metavar="PYTHON", help="interpreter that has torch-sim")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)

    simulation = cluster(particles=arguments.particles, force_tolerance=TOLERANCE)
    keys = jax.random.split(jax.random.key(0), arguments.starts)
    states = jax.jit(jax.vmap(simulation.init, in_axes=(None, 0)))(simulation.params, keys)
    if arguments.stragglers:
        wide = cluster(particles=arguments.particles, force_tolerance=TOLERANCE, spread=3.0)
        far = jax.jit(jax.vmap(wide.init, in_axes=(None, 0)))(simulation.params, keys)
        is_far = jnp.arange(arguments.starts) % round(1 / arguments.stragglers) == 0
        states = jax.vmap(lambda pick, a, b: jax.tree.map(lambda x, y: jnp.where(pick, x, y), a, b))(
            is_far, far, states
        )

    print(f"{arguments.starts} starts of {arguments.particles} atoms on {jax.devices()[0].device_kind}")
    print(f"{'':34s} {'calls':>8s} {'ms/start':>10s} {'x ours':>9s} {'lost':>6s}")
    ours = in_lanes(simulation, states, arguments.lanes, 5000)
    (status, iterations), each = ours(), best({"ours": ours}, arguments.repeats)["ours"] / arguments.starts
    report("simkit L-BFGS, in lanes", iterations.mean() + 1, each, each, int((status != Status.CONVERGED).sum()))
    print(f"{'':34s} iterations from {iterations.min()} to {iterations.max()}")

    for width in (arguments.lanes, arguments.starts):
        plain = jax.jit(plain_batch(simulation, 5000))
        chunks = [jax.tree.map(lambda a, i=i, w=width: a[i : i + w], states) for i in range(0, arguments.starts, width)]

        def batches(plain=plain, chunks=chunks):
            return jax.block_until_ready([plain(chunk, simulation.params) for chunk in chunks])

        ended, seconds = batches(), best({"plain": batches}, arguments.repeats)["plain"]
        codes = np.concatenate([jax.vmap(status_of(simulation), (0, None))(s, simulation.params) for s in ended])
        lost = int((codes != Status.CONVERGED).sum())
        report(f"same, plain batches of {width}", iterations.mean() + 1, seconds / arguments.starts, each, lost)

    if arguments.torch_sim:
        beside_torch_sim(arguments.torch_sim, simulation, states, 50, arguments.repeats)
    if arguments.without_rivals:
        return
    positions = np.asarray(states.descent.position[:RIVAL_STARTS])
    calls, seconds, energies = with_scipy(positions, simulation)
    report("SciPy L-BFGS-B, one by one", calls, seconds, each, int((energies > -1).sum()))
    from ase.optimize import FIRE, LBFGS

    for name, optimizer in (("ASE L-BFGS, one by one", LBFGS), ("ASE FIRE, one by one", FIRE)):
        with np.errstate(all="ignore"):
            calls, seconds, energies = with_ase(positions, optimizer)
        # An evaporated cluster has next to no energy left.
        report(name, calls, seconds, each, int((~(energies < -arguments.particles)).sum()))


if __name__ == "__main__":
    main()
