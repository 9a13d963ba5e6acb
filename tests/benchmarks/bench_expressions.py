"""Time forces of a pair energy by expression beside those of the shipped potential, in turn in one process.

Run with ``python tests/benchmarks/bench_expressions.py``. Each row is the median, over several turns, of the CPU time
of a turn of one over that of the other, which a busy machine disturbs less than times do.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import jax

from simkit.molecular import system

LENNARD_JONES = "4*epsilon*((sigma/r)**12 - (sigma/r)**6)"
# As long as a turn lasts at least, s.
TURN = 0.2


def step_of(kind: dict[str, str], repeats: int, method: str) -> Callable[[], object]:
    """Return one time step of a liquid, compiled."""
    simulation = system(
        particles={"A": {}},
        interactions=[kind | {"cutoff": "2.5*sigma", "method": method}],
        start={"lattice": "face_centered_cubic", "repeats": [repeats] * 3, "disorder": 0.05},
        cell={"density": 0.85},
        task="dynamics",
        dynamics={"time_step": 0.001, "temperature": 0.5},
        parameters={"epsilon": 1.0, "sigma": 1.0},
    )
    state = jax.jit(simulation.init)(simulation.params, jax.random.key(0))
    step = jax.jit(simulation.step).lower(state, simulation.params).compile()
    return lambda: jax.block_until_ready(step(state, simulation.params))


def cost(work: Callable[[], object]) -> float:
    """Return the CPU time of one call, over a turn."""
    begin, count = time.process_time(), 0
    while time.process_time() - begin < TURN:
        work()
        count += 1
    return (time.process_time() - begin) / count


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=9)
    turns = parser.parse_args().turns
    for precision in ("float32", "float64"):
        with jax.enable_x64(precision == "float64"):
            for repeats, method in ((3, "all_pairs"), (6, "neighbor_list")):
                shipped = step_of({"potential": "lennard_jones"}, repeats, method)
                typed = step_of({"energy": LENNARD_JONES}, repeats, method)
                ratios, times = [], []
                for _ in range(turns):
                    one, other = cost(shipped), cost(typed)
                    ratios.append(other / one)
                    times.append(one)
                print(
                    f"{precision} N = {4 * repeats**3} {method}: by expression / shipped "
                    f"{statistics.median(ratios):.3f}; shipped {1e3 * statistics.median(times):.3f} ms a step"
                )


if __name__ == "__main__":
    main()
