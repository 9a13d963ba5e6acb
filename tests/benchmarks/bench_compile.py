"""Times of one step of each domain: compiled, operation by operation, in NumPy and in onnxruntime.

Run by hand: ``PYTHONPATH=. python tests/benchmarks/bench_compile.py [flow] [molecular] [rigid]``. Processor time of all
threads, the least of ``--repeats`` turns; everything in float32. What is not installed or does not run is named.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

import simkit
from simkit.core.rollout import segment
from simkit.core.simulation import Simulation
from simkit.export.onnx.runtime import Session, convert
from tests.benchmarks import numpy_channel
from tests.benchmarks.timing import Work, compiled, cost

CELLS, LENGTH = (64, 48), 6.0
SCENARIOS: dict[str, tuple[str, dict[str, Any]]] = {
    "flow": ("channel_flow", dict(zip(("config.axes.x.cells", "config.axes.y.cells"), CELLS, strict=True))),
    "molecular": ("soft_sphere_packing", {"config.particles.small.count": 250, "config.particles.large.count": 250}),
    "rigid": ("double_pendulum", {}),
}
# Steps in one compiled segment, and in the whole run that is compared with its segments.
SEGMENT, WHOLE = 20, 400


def made(make: Callable[[], Work]) -> tuple[float, Work]:
    """Return the processor time to make a function ready, its first run included, and the function."""
    begin = time.process_time()
    run = make()
    jax.block_until_ready(run())
    return time.process_time() - begin, run


def converted(function: Callable[..., Any], *arguments: Any) -> Work:
    """Return a function in onnxruntime."""
    session, leaves = Session(convert(function, *arguments)), jax.tree.leaves(arguments)
    return lambda: session(leaves)


def without_jit(function: Callable[..., Any], *arguments: Any) -> Work:
    """Return a function whose every primitive is a program of its own, loops in Python."""

    def run() -> Any:
        with jax.disable_jit():
            return function(*arguments)

    return run


def numpy_step() -> Work:
    """Return a step of the same flow written in NumPy."""
    state, move = numpy_channel.channel(CELLS, LENGTH, solver="cosine")
    return lambda: move(state)


def ways(domain: str, simulation: Simulation, state: Any) -> Iterator[tuple[str, int, Callable[[], Work]]]:
    """Return the ways to step: a name, the steps of one run, and what makes it ready."""
    params, step, several = simulation.params, simulation.step, segment(simulation, SEGMENT)
    yield "jax.jit", 1, lambda: compiled(step, state, params)[0]
    yield f"jax.jit, {SEGMENT} steps", SEGMENT, lambda: compiled(several, state, params)[0]
    yield "op by op", 1, lambda: lambda: step(state, params)
    yield "jax.disable_jit", 1, lambda: without_jit(step, state, params)
    if domain == "flow":
        yield "NumPy", 1, numpy_step
    yield "onnxruntime", 1, lambda: converted(step, state, params)
    yield f"onnxruntime, {SEGMENT} steps", SEGMENT, lambda: converted(several, state, params)


def started(domain: str) -> tuple[Simulation, Any]:
    """Return a simulation, and its state after a few steps."""
    name, values = SCENARIOS[domain]
    simulation = simkit.build(simkit.load(name, {**values, "precision": "float32"}))
    state = jax.jit(simulation.init)(simulation.params, jax.random.key(0))
    return simulation, jax.jit(segment(simulation, 5))(state, simulation.params)


def steps(domain: str, repeats: int) -> None:
    """Print the time of a step in each way, and the time until the first one is done."""
    simulation, state = started(domain)
    ready, runs = {}, {}
    for name, count, make in ways(domain, simulation, state):
        try:
            ready[name], run = made(make)
        except Exception as error:  # one way that fails leaves the others
            lines = str(error).splitlines() or [""]
            told = next((line for line in lines if "error:" in line), lines[0])
            print(f"{name}: {type(error).__name__}: {told.strip()[:150]}")
            continue
        runs[name] = run, count
    times = dict.fromkeys(runs, np.inf)
    for _ in range(repeats):
        for name, (run, count) in runs.items():
            times[name] = min(times[name], cost(run) / count)
    print(f"\n{domain}: one step of {SCENARIOS[domain][0]}, ms of processor time")
    print(f"{'':28}{'step':>10}{'/ jax.jit':>12}{'until ready, s':>16}")
    for name, seconds in times.items():
        print(f"{name:28}{seconds * 1e3:10.3f}{seconds / times['jax.jit']:12.1f}{ready[name]:16.2f}")


def whole(domain: str, repeats: int) -> None:
    """Print the time of a run as one program, as segments that the host calls, and step by step."""
    simulation, state = started(domain)
    params, times = simulation.params, {}

    def called(length: int) -> Work:
        advance = jax.jit(segment(simulation, length)) if length > 1 else jax.jit(simulation.step)

        def run() -> Any:
            now = state
            for _ in range(WHOLE // length):
                now = advance(now, params)
            return now

        return run

    runs = {length: made(lambda length=length: called(length)) for length in (WHOLE, SEGMENT, 1)}
    for _ in range(repeats):
        for length, (_, run) in runs.items():
            times[length] = min(times.get(length, np.inf), cost(run) / WHOLE)
    print(f"\n{domain}: {WHOLE} steps of {SCENARIOS[domain][0]}, ms of processor time per step")
    print(f"{'':28}{'step':>10}{'/ one':>12}{'until ready, s':>16}")
    for length, seconds in times.items():
        words = f"{WHOLE // length} calls of {length} steps"
        print(f"{words:28}{seconds * 1e3:10.3f}{seconds / times[WHOLE]:12.2f}{runs[length][0]:16.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("domains", nargs="*", default=list(SCENARIOS), help=", ".join(SCENARIOS))
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for domain in options.domains:
        steps(domain, options.repeats)
        whole(domain, options.repeats)
