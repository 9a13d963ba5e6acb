"""Two checkouts of simkit on the same work, in interleaved pairs: the ratio of an earlier version's time to this one's.

Run by hand: ``python tests/benchmarks/compare_versions.py OLD`` with the folder of another checkout. Each version has
a process of its own, which compiles a row and then runs it when told, in turn with the other: processor time of calls
of at least 0.3 s together. Rows that only one version has are left out. A ratio above 1 means that this version is
faster. The spread is that of half of the pairs.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
SCENARIOS = (
    ("lennard_jones_crystal", 20),
    ("lennard_jones_fluid", 100),
    ("silicon", 20),
    ("jamming", 20),
    ("binary_glass", 100),
    ("channel_flow", 100),
    ("taylor_green", 50),
    ("cylinder_in_channel", 50),
    ("turbulent_channel", 4),
    ("heated_cavity", 50),
    ("double_pendulum", 2000),
    ("falling_pile", 100),
    ("billiards_break", 100),
    ("newtons_cradle", 400),
)


def rows() -> Iterator[tuple[str, Callable[[], Callable[[], object]]]]:
    """Yield rows of the version that is on the path: a name, and a maker of compiled work."""
    import jax
    import numpy as np

    import simkit
    from simkit.core.rollout import segment
    from tests.benchmarks import bench_flow, bench_molecular, bench_relaxation, bench_rigid
    from tests.benchmarks.timing import compiled

    for dtype in (np.float32, np.float64):
        with jax.enable_x64(dtype is np.float64):
            programs = bench_molecular.ours(*bench_molecular.liquid(32_000), dtype)
        for name, (work, _) in programs.items():
            name = name.removesuffix(", simkit")
            yield f"Lennard-Jones {name}, 32,000 atoms, {dtype.__name__}", lambda work=work: work

    def of(simulation: object, steps: int) -> Callable[[], object]:
        state = jax.jit(simulation.init)(simulation.params, jax.random.key(0))
        return compiled(segment(simulation, steps), state, simulation.params)[0]

    yield (
        "FIRE step, 32,000 atoms",
        lambda: of(bench_relaxation.liquid_relaxation(*bench_molecular.liquid(32_000, 0.05)), 10),
    )
    for cells in ((256, 128), (512, 256), (64, 64, 32)):
        for method, implicit in (("adams_bashforth", ()), ("adams_bashforth", range(len(cells))), ("runge_kutta", ())):

            def flow(cells=cells, method=method, implicit=implicit) -> Callable[[], object]:
                place = bench_flow.channel_domain(cells)
                eddies = bench_flow.eddies(place)
                return of(bench_flow.flow(place, eddies, 1e-3, 1e-3, method=method, implicit=tuple(implicit)), 10)

            yield f"{' x '.join(map(str, cells))}, {method}{', implicit friction' if implicit else ''}", flow
    for kind, members, sweeps in (("spheres", 256, 1), ("pile", 64, 4), ("spheres", 1, 4)):

        def rigid(kind=kind, members=members, sweeps=sweeps) -> Callable[[], object]:
            return bench_rigid.ours(kind, bench_rigid.Impulses(sweeps=sweeps), members, 50, 200)[0]

        yield f"{members} scenes of {kind}, {sweeps} sweeps", rigid
    for name, steps in SCENARIOS:

        def scenario(name=name, steps=steps) -> Callable[[], object]:
            loaded = simkit.load(name)
            with jax.enable_x64(loaded.run.precision == "float64"):
                return of(simkit.build(loaded), steps)

        yield f"scenario {name}", scenario


def serve() -> None:
    """Compile the rows that are asked for by name, and answer every line with the processor time of a call."""
    from tests.benchmarks.timing import cost

    made = dict(rows())
    work: dict[str, Callable[[], object]] = {}
    print(*made, sep="\t", flush=True)
    for line in sys.stdin:
        name = line.rstrip("\n")
        try:
            if name not in work:
                work.clear()
                work[name] = made[name]()
            print(f"{cost(work[name], 0.3):.9g}", flush=True)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:100]!r}", file=sys.stderr)
            print("nan", flush=True)


class Version:
    """The process of a checkout."""

    def __init__(self, folder: Path) -> None:
        """Start it."""
        environment = os.environ | {"PYTHONPATH": str(folder)}
        command = [sys.executable, str(HERE / "tests/benchmarks/compare_versions.py"), "--serve"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=environment, cwd=folder, stdin=pipe, stdout=pipe, text=True)
        self.rows = self.answer().split("\t")

    def answer(self) -> str:
        """Return the next line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def time(self, name: str) -> float:
        """Return processor time of a call of a row, s."""
        assert self.process.stdin is not None
        print(name, file=self.process.stdin, flush=True)
        return float(self.answer())


def main() -> None:
    """Read the arguments and print the table."""
    import numpy as np

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, nargs="?", help="folder of another checkout")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the names of rows")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        sys.path.remove(str(HERE / "tests/benchmarks"))
        serve()
        return
    old, new = Version(options.old.resolve()), Version(HERE)
    for name in new.rows:
        if name not in old.rows or not any(part in name for part in options.only):
            continue
        for version in (old, new):
            version.time(name)
        pairs = [(old.time(name), new.time(name)) for _ in range(options.pairs)]
        low, middle, high = np.percentile([before / after for before, after in pairs], [25, 50, 75])
        print(f"{name:55}{pairs[-1][1] * 1e3:10.3f} ms  {middle:6.2f} ({low:.2f} to {high:.2f})", flush=True)


if __name__ == "__main__":
    main()
