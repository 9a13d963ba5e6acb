"""Report of an optimization from several starts."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from simkit.cli.main import FAILED, FINE
from simkit.cli.output import more, print_json, print_table, show
from simkit.jobs.derivatives import objective_settings
from simkit.jobs.optimizations import best_first, best_of, bounds_of, rows_of

if TYPE_CHECKING:
    import xarray

    from simkit.jobs.optimizations import Starts
    from simkit.render.page import Size

# Supported options of pictures: none are drawn.
PICTURES = ("no_render",)
# Maximum number of starts in the table.
ROWS = 20


def finish(
    result: "xarray.Dataset", job: "Starts", folder: Path, arguments: argparse.Namespace, size: "Size | None"
) -> int:
    """Report the starts, the best first.

    Args:
        result: result of the optimization.
        job: the optimization from several starts.
        folder: its run directory.
        arguments: arguments with ``json``.
        size: unused; no picture is drawn.
    """
    maximize = objective_settings(job.scenario, job.objective).goal == "maximize"
    index = best_of(result, maximize=maximize)
    wrt = job.optimization.checked().wrt
    best = {name: result[f"best_{name}"].values[index].tolist() for name in wrt}
    value = float(result["best_loss"].isel(frame=-1).values[index])
    header, rows = rows_of(result, wrt)
    rows = [rows[start] for start in best_first(result, maximize=maximize)]
    ends = bounds_of(job.scenario, result, wrt, index)
    bad = bool((result["status"] == "non_finite").all())
    if arguments.json:
        summary = {"scenario": job.scenario.name, "objective": job.objective, "best_value": value, "best": best}
        starts = [dict(zip(header, row, strict=True)) for row in rows]
        print_json({**summary, "at_bounds": ends, "starts": starts, "directory": folder}, "starts")
    else:
        print_table(header, rows[:ROWS])
        if len(rows) > ROWS:
            print(f"({more(len(rows) - ROWS, 'start')} in the result)")
        words = ", ".join(f"{name} = {show(number)}" for name, number in best.items())
        print(f"\nbest {job.objective}: {value:.6g} at {words}")
        for line in ends:
            print(line)
        print(f"result: {folder}   (read it with simkit.open_run('{folder}'))")
    return FAILED if bad else FINE
