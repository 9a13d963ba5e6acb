"""Searches for the lowest minima of clusters by many walkers at once: how many find them, and what it costs.

Run by hand: ``python tests/benchmarks/bench_basin_hopping.py --particles 31 --hops 400 --walkers 32``. Random starts,
float64. Prints how many walkers found the minimum of the Cambridge Cluster Database, the evaluations per hop, the
evaluations until one walker finds it (those of walkers that failed included), and the time of one evaluation of one
walker, hops included, compilation apart.
"""

import argparse
import dataclasses
import time

import jax
import numpy as np

from simkit.core.compilation import use_compilation_cache
from simkit.core.ensemble import ensemble
from simkit.core.rollout import trajectory
from simkit.core.status import Status, status_of
from simkit.molecular.systems.basin_hopping import basin_hopping, search_report

LOWEST = {
    "lennard_jones": {13: -44.326801, 19: -72.659782, 26: -108.315616, 31: -133.586422, 38: -173.928427},
    "morse": {13: -42.439863, 19: -68.492285, 26: -100.549598, 31: -122.857743, 38: -157.477108},
}
# Above what loose quenches leave, below the gap to the next minimum.
FOUND_WITHIN = 0.02
EVERY = 100
# Evaluations per hop to allow for; walkers that are done early wait.
MOST_PER_HOP = 140


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--particles", type=int, default=31, choices=LOWEST["lennard_jones"])
    parser.add_argument("--potential", default="lennard_jones", choices=LOWEST)
    parser.add_argument("--hops", type=int, default=400)
    parser.add_argument("--walkers", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    use_compilation_cache()
    simulation = basin_hopping(particles=arguments.particles, potential=arguments.potential, hops=arguments.hops)
    together = ensemble(dataclasses.replace(simulation, observe=lambda state, params: {}))
    run = jax.jit(trajectory(together, MOST_PER_HOP * (arguments.hops + 1) // EVERY * EVERY, EVERY))
    keys = jax.random.split(jax.random.key(arguments.seed), arguments.walkers)
    compiled = run.lower(simulation.params, keys).compile()
    begin, used = time.perf_counter(), time.process_time()
    state, _, diagnosed = jax.block_until_ready(compiled(simulation.params, keys))
    seconds, used = time.perf_counter() - begin, time.process_time() - used

    lowest = LOWEST[arguments.potential][arguments.particles]
    energy, cost = np.asarray(diagnosed["energy"]), np.asarray(diagnosed["force_evaluations"])
    found = search_report(energy, cost, lowest=lowest, tolerance=FOUND_WITHIN)
    quenches, last = np.asarray(state.quenches).sum(), cost[-1].sum()
    finished = np.count_nonzero(np.asarray(status_of(together)(state, simulation.params)) == Status.CONVERGED)
    print(
        f"{arguments.potential} {arguments.particles}: lowest {energy[-1].min():.6f} (database {lowest:.6f}), "
        f"found by {round(found.success_rate * arguments.walkers)} of {arguments.walkers} ({finished} finished), "
        f"{last / quenches:.0f} evaluations per hop, {found.mean_cost:.0f} evaluations or "
        f"{found.mean_cost * quenches / last:.0f} hops per finding, {1e6 * used / last:.1f} us of CPU per evaluation, "
        f"{seconds:.0f} s"
    )


if __name__ == "__main__":
    main()
