"""The pressure solver's methods beside each other and beside SciPy's transforms with NumPy's matrix products.

Run by hand: ``PYTHONPATH=. python tests/benchmarks/bench_pressure.py``. Float32, equal cells, so that SciPy may use its
cosine transform too; ours makes no use of that and costs the same on stretched grids. Ours is timed in a compiled loop
of solves, as in a simulation, the peers in a loop of calls. The peers' arrays have the periodic axis last, which spares
them the transpose that ours includes; they run on one thread for the transforms and BLAS's own for the products. Times
are the least of ``--repeats`` runs taken in turn, compilation apart.
"""

import argparse
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import scipy.fft

from simkit.flow.grid import Grid, bounded_axis, periodic_axis
from simkit.flow.solvers.modes import Periodic, Transform
from simkit.flow.solvers.pressure import pressure_solver, second_difference

GRIDS = {
    "256x128": ("pb", (256, 128)),
    "512x256": ("pb", (512, 256)),
    "1024x512": ("pb", (1024, 512)),
    "64x512, tall": ("pb", (64, 512)),
    "128x128, bounded": ("bb", (128, 128)),
    "256x256, periodic": ("pp", (256, 256)),
    "64x64x32": ("pbp", (64, 64, 32)),
    "64x48x48, duct": ("pbb", (64, 48, 48)),
}
SOLVES = 20
type Solve = Callable[[jax.Array], jax.Array]


def unfolded_solver(grid: Grid) -> Solve:
    """Return the solver by modes that makes no use of mirror symmetry."""
    transform = Transform([second_difference(axis) for axis in grid.axes], fold=False)
    eigenvalues = transform.eigenvalues.copy()
    eigenvalues.flat[0] = np.inf
    inverse = (-1 / eigenvalues).astype(np.float32)
    return lambda source: transform.from_modes(transform.to_modes(source) * inverse)


def scipy_solver(grid: Grid, cosines: bool) -> Callable[[np.ndarray], np.ndarray]:
    """Return a solver for arrays whose bounded axes come first, by cosine transforms or by matrix products."""
    bounded = [axis for axis in grid.axes if not axis.periodic]
    periodic = [axis for axis in grid.axes if axis.periodic]
    last = tuple(range(len(bounded), grid.dimension))
    lengths = [axis.cells for axis in periodic]
    eigenvalues, bases = np.zeros(()), []
    for axis in bounded:
        n, q = axis.cells, np.arange(axis.cells)
        eigenvalues = eigenvalues[..., None] + (2 / axis.widths[0] * np.sin(np.pi * q / (2 * n))) ** 2
        basis = np.cos(np.pi * np.outer(np.arange(n) + 0.5, q) / n) * np.sqrt(np.where(q == 0, 1, 2) / n)
        bases.append(basis.astype(np.float32))
    for axis in periodic:
        along = Periodic(axis.cells, axis.widths[0]).eigenvalues
        eigenvalues = eigenvalues[..., None] + (along[: axis.cells // 2 + 1] if axis is periodic[-1] else along)
    eigenvalues.flat[0] = np.inf
    inverse = (-1 / eigenvalues).astype(np.float32)

    def product(f: np.ndarray, transposed: bool) -> np.ndarray:
        for i, basis in enumerate(bases):
            matrix = basis.T if transposed else basis
            # One product of matrices along the first axis, a batch of them along the second.
            f = (matrix @ f.reshape(len(f), -1)).reshape(f.shape) if i == 0 else _along_second(matrix, f)
        return f

    def solve(source: np.ndarray) -> np.ndarray:
        first = tuple(range(len(bounded)))
        if cosines:
            f = np.asarray(scipy.fft.dctn(source, axes=first, norm="ortho"))
        else:
            f = product(source, transposed=True)
        amplitudes = inverse * np.asarray(scipy.fft.rfftn(f, axes=last) if periodic else f)
        f = np.asarray(scipy.fft.irfftn(amplitudes, s=lengths, axes=last)) if periodic else amplitudes
        return np.asarray(scipy.fft.idctn(f, axes=first, norm="ortho")) if cosines else product(f, transposed=False)

    return solve


def _along_second(matrix: np.ndarray, f: np.ndarray) -> np.ndarray:
    return f @ matrix.T if f.ndim == 2 else np.matmul(matrix, f)


def looped(step: Solve) -> Callable[[jax.Array], jax.Array]:
    """Return the compiled loop of steps, each of which needs the one before."""
    return jax.jit(lambda f: jax.lax.fori_loop(0, SOLVES, lambda _, g: step(f + 0.5 * g), f))


def rows(name: str, repeats: int) -> dict[str, float]:
    """Return seconds per solve of every method on one grid; checks that all agree."""
    kinds, cells = GRIDS[name]
    lengths = (4.0, 2.0, 2.0)
    axes = [
        periodic_axis(n, h) if k == "p" else bounded_axis(n, h) for k, n, h in zip(kinds, cells, lengths, strict=False)
    ]
    grid = Grid(tuple(axes))
    source = np.random.default_rng(0).standard_normal(cells).astype(np.float32)
    source -= source.mean()
    solvers = {"modes, not folded": unfolded_solver(grid), "modes": pressure_solver(grid, "modes")}
    if "b" in kinds:
        solvers = {"elimination": pressure_solver(grid, "elimination")} | solvers
    expected = np.asarray(next(iter(solvers.values()))(jnp.asarray(source)))
    work = {}
    for method, solve in solvers.items():
        assert np.abs(solve(jnp.asarray(source)) - expected).max() < 1e-5 * np.abs(expected).max(), method
        for label, step in ((method, solve), (f"{method}, transposed", _transposed(solve))):
            program = looped(step)
            work[label] = lambda program=program: program(jnp.asarray(source)).block_until_ready()
    order = [i for i, k in enumerate(kinds) if k == "b"] + [i for i, k in enumerate(kinds) if k == "p"]
    turned = np.ascontiguousarray(source.transpose(order))
    for label, cosines in (("SciPy, products", False), ("SciPy, cosines", True)):
        if cosines and "b" not in kinds:
            continue
        peer = scipy_solver(grid, cosines)
        assert np.abs(peer(turned) - expected.transpose(order)).max() < 1e-5 * np.abs(expected).max(), label
        work[label] = lambda peer=peer: [peer(turned) for _ in range(SOLVES)]
    least = dict.fromkeys(work, np.inf)
    for run in work.values():
        run()
    for _ in range(repeats):
        for label, run in work.items():
            start = time.perf_counter()
            run()
            least[label] = min(least[label], (time.perf_counter() - start) / SOLVES)
    return least


def _transposed(solve: Solve) -> Solve:
    return lambda f: jax.vjp(solve, f)[1](f)[0]


def main() -> None:
    """Read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grids", nargs="+", choices=GRIDS, default=list(GRIDS))
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    for name in arguments.grids:
        least = rows(name, arguments.repeats)
        chosen = next(iter(least)) if "elimination" in least else "modes"
        print(f"\n{name}: milliseconds per solve, and times the {chosen}")
        for label, seconds in least.items():
            print(f"{label:32} {1e3 * seconds:8.3f} {seconds / least[chosen]:7.2f}", flush=True)


if __name__ == "__main__":
    main()
