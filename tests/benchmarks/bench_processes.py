"""Strong and weak scaling of one flow over processes of this machine, as `simkit launch` starts them.

Run by hand on a quiet machine: ``PYTHONPATH=. python tests/benchmarks/bench_processes.py [--processes 1 2]``. The time
per step is the difference between runs of many and of few steps, divided by the difference in steps, so that starting
processes and compiling do not count; it is at least `LEAST` seconds. Runs take turns, and the least of each counts.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FEW, MANY = 40, 240
LEAST = 5.0
# Cells along x and y of the whole flow, in weak scaling of the part of each process.
STRONG = ((128, 96), (256, 192), (512, 384))
WEAK = ((256, 192), (512, 192))


def seconds(cells: tuple[int, int], steps: int, processes: int, cores: int) -> float:
    """Return the wall time of a run of channel flow.

    Args:
        cells: along x and y.
        steps: number of time steps, with one frame at the end.
        processes: number of processes.
        cores: number of cores that they share.
    """
    settings = {"config.axes.x.cells": cells[0], "config.axes.y.cells": cells[1], "steps": steps, "every": steps}
    settings["time_step"] = 0.001  # stable on every grid
    words = ["run", "channel_flow", *itertools.chain(*(("--set", f"{key}={value}") for key, value in settings.items()))]
    launch = [] if processes == 1 else ["launch", "-n", str(processes)]
    chosen = sorted(os.sched_getaffinity(0))[:cores]
    with tempfile.TemporaryDirectory() as folder:
        output = ["--no-render", "--output", str(Path(folder) / "run")]
        command = [sys.executable, "-m", "simkit.cli.main", *launch, *words, *output]
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, preexec_fn=lambda: os.sched_setaffinity(0, chosen))
        return time.perf_counter() - began


def steps_per_second(cases: list[tuple[tuple[int, int], int, int]], turns: int) -> list[float]:
    """Return the steps per second of each case (cells, processes, cores); all take turns."""
    few, many, steps = [], [], []
    for cells, count, cores in cases:
        few.append(seconds(cells, FEW, count, cores))
        steps.append(MANY)
        while (most := seconds(cells, steps[-1], count, cores)) - few[-1] < LEAST:
            steps[-1] *= 4
        many.append(most)
    for _ in range(turns - 1):
        for index, (cells, count, cores) in enumerate(cases):
            few[index] = min(few[index], seconds(cells, FEW, count, cores))
            many[index] = min(many[index], seconds(cells, steps[index], count, cores))
    return [(last - FEW) / (most - least) for last, most, least in zip(steps, many, few, strict=True)]


def main() -> None:
    """Print a table of strong and one of weak scaling."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    most = max(arguments.processes)
    print("strong scaling: the same cells, steps per second")
    for cells in STRONG:
        cases = [(cells, count, count) for count in arguments.processes] + [(cells, 1, most)]
        rates = steps_per_second(cases, arguments.turns)
        shown = [
            f"{count} processes {rate:8.1f} ({rate / rates[0]:.2f})"
            for (_, count, _), rate in zip(cases, rates, strict=True)
        ]
        shown[-1] = f"1 process on {most} cores {rates[-1]:8.1f} ({rates[-1] / rates[0]:.2f})"
        print(f"  {cells[0]} x {cells[1]}: " + ", ".join(shown), flush=True)
    print("weak scaling: the same cells for each process, steps per second")
    for cells in WEAK:
        cases = [((cells[0] * count, cells[1]), count, count) for count in arguments.processes]
        rates = steps_per_second(cases, arguments.turns)
        shown = [
            f"{count} processes {rate:8.1f} ({rate / rates[0]:.2f})"
            for (_, count, _), rate in zip(cases, rates, strict=True)
        ]
        print(f"  {cells[0]} x {cells[1]} each: " + ", ".join(shown), flush=True)


if __name__ == "__main__":
    main()
