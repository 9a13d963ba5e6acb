"""Members per second of a sweep: a Python loop over runs, bare vmap, `simkit.sweep`, with workers, over Dask.

Run by hand: ``PYTHONPATH=. python tests/benchmarks/bench_sweep.py [flow] [rigid] [--workers 2]``. Wall time after a
first pass, so that every way has its programs in the compilation cache; the ways take turns, ``--turns`` times, and the
best of each counts. Starting workers counts, as it does for a user.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import simkit
from simkit.core.compilation import use_compilation_cache
from simkit.core.ensemble import ensemble
from simkit.core.rollout import trajectory
from simkit.jobs.executors.choice import executor_of
from simkit.jobs.executors.in_this_process import InThisProcess
from simkit.jobs.job import begin
from simkit.jobs.sweeps import Sweep
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from simkit.scenario.scenario import Scenario
from tests.benchmarks.timing import best

FLOW = {"config.axes.x.cells": 32, "config.axes.y.cells": 24, "steps": 4000, "every": 400}
CASES: dict[str, tuple[str, dict[str, Any], str, tuple[float, float], int]] = {
    "flow": ("channel_flow", FLOW, "reynolds", (100.0, 400.0), 16),
    "rigid": ("bouncing_ball", {"steps": 3600, "every": 360}, "launch_speed", (3.0, 6.0), 64),
}


def ways(scenario: Scenario, name: str, values: np.ndarray, workers: int, address: str | None) -> dict[str, Callable]:
    """Return what is compared, by name; each runs all members."""
    simulation = build(scenario)
    over = {name: tuple(map(float, values))}
    many = ensemble(simulation, [name])
    keys = jax.vmap(jax.random.key)(jnp.zeros(len(values), jnp.uint32))
    params = {**simulation.params, name: jnp.asarray(values, simulation.params[name].dtype)}
    run = trajectory(many, scenario.run.steps, scenario.run.every)
    chunk = -(-len(values) // workers)

    def swept(executor: Any, size: int | None) -> None:
        with tempfile.TemporaryDirectory() as folder:
            begin(Sweep(scenario, over, chunk=size, executor=executor), Path(folder) / "sweep")

    found: dict[str, Callable] = {
        "Python loop over run": lambda: [simkit.run(scenario, **{name: value}) for value in over[name]],
        "bare vmap": lambda: jax.block_until_ready(run(params, keys)),
        "sweep": lambda: swept(InThisProcess(), None),
        f"sweep in {len(values)} chunks": lambda: swept(InThisProcess(), 1),
        f"sweep, {workers} workers": lambda: swept(executor_of(workers=workers), chunk),
    }
    if address:
        found["sweep over Dask"] = lambda: swept(executor_of(scheduler=address), chunk)
    return found


def main() -> None:
    """Print a table for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--turns", type=int, default=2)
    arguments = parser.parse_args()
    use_compilation_cache()
    try:
        from distributed import LocalCluster

        cluster = LocalCluster(
            n_workers=arguments.workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
        )
        address = cluster.scheduler_address
    except ImportError:
        cluster = address = None
        print("distributed is not installed: no Dask")
    for case in arguments.cases:
        shipped, settings, name, (low, high), members = CASES[case]
        scenario = load(shipped, {**settings, "precision": "float32"})
        every = ways(scenario, name, np.linspace(low, high, members), arguments.workers, address)
        best(every, 1, turn=0)
        least = best(every, arguments.turns, turn=0)
        print(f"\n{case}: {members} members of {shipped}, {settings['steps']} steps")
        for way, seconds in least.items():
            print(f"  {way:24} {seconds:8.2f} s {members / seconds:10.1f} members/s")
        alone, apart = least["sweep"], least[f"sweep in {members} chunks"]
        print(f"  each further chunk costs {(apart - alone) / (members - 1):.3f} s, with what less vectorization costs")
    if cluster is not None:
        cluster.close()


if __name__ == "__main__":
    main()
