"""Time forces of a pair energy by expression beside those of the shipped potential, in turn in one process.

Run with ``PYTHONPATH=. python tests/benchmarks/bench_expressions.py``. Each row is the median, over several turns, of
the CPU time of a turn of one over that of the other, which a busy machine disturbs less than times do.
"""

import argparse

import jax

from simkit.molecular import system
from tests.benchmarks.timing import Work, compiled, median_ratio

LENNARD_JONES = "4*epsilon*((sigma/r)**12 - (sigma/r)**6)"


def step_of(kind: dict[str, str], repeats: int, method: str) -> Work:
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
    return compiled(simulation.step, state, simulation.params)[0]


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
                typed_time, ratio = median_ratio(typed, shipped, turns)
                print(
                    f"{precision} N = {4 * repeats**3} {method}: by expression / shipped {ratio:.3f}; "
                    f"by expression {1e3 * typed_time:.3f} ms a step"
                )


if __name__ == "__main__":
    main()
