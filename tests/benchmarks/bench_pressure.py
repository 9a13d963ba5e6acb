"""The pressure solver's methods beside each other, on the grids of `simkit.flow.solvers.pressure.fastest_method`.

Run by hand: ``PYTHONPATH=. python tests/benchmarks/bench_pressure.py``. Float32, timed in a compiled loop of solves, as
in a simulation, and of their transposes, as in its derivative. Times are the least of ``--repeats`` runs taken in turn,
compilation apart.
"""

import argparse
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.grid import Grid, bounded_axis, periodic_axis
from simkit.flow.solvers.pressure import pressure_solver
from tests.benchmarks.timing import best, compiled

GRIDS = {
    "256x128": ("pb", (256, 128)),
    "512x256": ("pb", (512, 256)),
    "64x512, tall": ("pb", (64, 512)),
    "128x128, bounded": ("bb", (128, 128)),
    "64x64x32": ("pbp", (64, 64, 32)),
    "64x48x48, duct": ("pbb", (64, 48, 48)),
}
SOLVES = 20
type Solve = Callable[[jax.Array], jax.Array]


def looped(step: Solve) -> Solve:
    """Return a loop of steps, each of which needs the one before."""
    return lambda f: jax.lax.fori_loop(0, SOLVES, lambda _, g: step(f + 0.5 * g), f)


def transposed(solve: Solve) -> Solve:
    """Return the transpose of a solver."""
    return lambda f: jax.vjp(solve, f)[1](f)[0]


def rows(name: str, repeats: int) -> dict[str, float]:
    """Return seconds per solve of every method on one grid; checks that all agree."""
    kinds, cells = GRIDS[name]
    lengths = (4.0, 2.0, 2.0)
    axes = [
        periodic_axis(n, h) if k == "p" else bounded_axis(n, h) for k, n, h in zip(kinds, cells, lengths, strict=False)
    ]
    source = jnp.asarray(np.random.default_rng(0).standard_normal(cells), jnp.float32)
    source -= source.mean()
    solvers = {kind: pressure_solver(Grid(tuple(axes)), kind) for kind in ("elimination", "modes")}
    expected, work = next(iter(solvers.values()))(source), {}
    for method, solve in solvers.items():
        assert jnp.abs(solve(source) - expected).max() < 1e-5 * jnp.abs(expected).max(), method
        work[method], _ = compiled(looped(solve), source)
        work[f"{method}, transposed"], _ = compiled(looped(transposed(solve)), source)
    return {label: seconds / SOLVES for label, seconds in best(work, repeats).items()}


def main() -> None:
    """Read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grids", nargs="+", choices=GRIDS, default=list(GRIDS))
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    for name in arguments.grids:
        least = rows(name, arguments.repeats)
        first = next(iter(least))
        print(f"\n{name}: milliseconds per solve, and times the {first}")
        for label, seconds in least.items():
            print(f"{label:32} {1e3 * seconds:8.3f} {seconds / least[first]:7.2f}", flush=True)


if __name__ == "__main__":
    main()
