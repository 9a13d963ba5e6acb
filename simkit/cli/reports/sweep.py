"""Report of a sweep: table, chart, totals and forecast."""

import argparse
import dataclasses
import itertools
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from simkit.cli.main import FAILED, FINE
from simkit.cli.output import more, print_json, print_table, print_totals
from simkit.cli.progress import Progress
from simkit.core.status import failed
from simkit.engine.memory import format_bytes
from simkit.jobs.sweep_results import (
    RESULT,
    columns_of,
    failures,
    final_numbers,
    left_out,
    objectives_in,
    read_summary,
    undefined_objectives,
)
from simkit.jobs.sweeps import forecast
from simkit.storage.run_directory import RunDirectory, check_output

if TYPE_CHECKING:
    import xarray

    from simkit.jobs.sweeps import SweepJob
    from simkit.render.page import Size
    from simkit.scenario.scenario import Scenario


def main(job: "SweepJob", output: Path, arguments: argparse.Namespace) -> int:
    """Print members, chunks, compilations, memory, disk and, if timed, time.

    Returns:
        The exit code.
    """
    if arguments.output is not None:  # a folder named after the scenario may hold an earlier sweep
        check_output(output, overwrite=arguments.overwrite)
    resources = forecast(job, output, timed=arguments.dry_run == "time")
    if arguments.json:
        print_json({"scenario": job.scenario.name, "directory": output} | dataclasses.asdict(resources), "forecast")
        return FINE
    least = "" if resources.is_exact else "at least "
    chunks = f"{resources.chunks} of {resources.chunk} members"
    if resources.may_end_early:
        chunks = f"{resources.chunks} with {resources.chunk} lanes"
    elif not resources.is_exact and job.chunk is None:
        chunks += ", if the compiled program fits in memory"
    print(f"members:       {resources.members}")
    print(f"chunks:        {chunks}")
    print(f"compilations:  {resources.compilations}")
    print(f"memory:        {least}{format_bytes(resources.memory)}")
    print(f"disk:          {format_bytes(resources.disk)}")
    if resources.seconds is not None:
        most = "at most " if resources.may_end_early else "about "
        print(f"time:          {most}{_duration(resources.seconds)}, after compiling")
    else:
        print("time:          (compile, and time one segment, with --dry-run time)")
    return FINE


def _duration(seconds: float) -> str:
    """Return a duration as text, such as ``"2 h 5 min"``."""
    if seconds < 60:
        return f"{seconds:.2g} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


# Supported options of pictures: the chart has one format and size.
PICTURES = ("no_render",)
# Maximum number of diagnostics in the table, to fit a terminal.
COLUMNS = 6
# Maximum number of points in the table; a sample may have thousands.
ROWS = 1000
# Maximum number of named failed members of a large sweep.
SHOWN = 20


def finish(
    result: "xarray.Dataset", job: "SweepJob", folder: Path, arguments: argparse.Namespace, size: "Size | None"
) -> int:
    """Report a sweep as a table, and as a chart if a parameter was swept."""
    if "preferred_chunks" in result["status"].encoding:  # the result stays in chunks
        return _finish_large(result, RunDirectory.open(folder), arguments, job)

    from simkit.export.pictures import informative

    columns, final, varying = columns_of(result), final_numbers(result), informative(result, job.scenario)
    axes, scenario = result["status"].dims, job.scenario
    bad = failed(result["status"].values)
    is_fine = result["status"].copy(data=~bad)  # numbers of failed members mean nothing
    chart = _chart(result, scenario, folder, arguments)
    if arguments.json:
        report = {
            "scenario": scenario.name,
            "members": int(result["status"].size),
            "axes": {str(axis): result[axis].values for axis in axes},
            "points": {name: values for name, values in columns.items() if name not in axes},
            "objectives": {
                name: array.where(is_fine).values for name, array in objectives_in(result, scenario).items()
            },
            "objectives_left_out": left_out(result, job),
            "final": {name: array.where(is_fine).values for name, array in final.items()},
            "status": result["status"].values,
            "failed": failures(result),
            "directory": folder,
            "result": folder / RESULT,
            "chart": chart,
        }
        print_json(report, "sweep")
    else:
        _print_points(varying, columns, ~bad)
        print(f"\nresult:    {folder / RESULT}   (read it with simkit.open_run('{folder}'))")
        if chart:
            print(f"chart:     {chart}")
        for name, reason in left_out(result, job).items():
            print(f"not shown: {name}: {reason}")
        if apart := result.attrs.get("apart"):
            differ, them = ("differ", "them") if ", " in apart else ("differs", "it")
            first = f"simkit.open_run('{folder / 'config_0000'}')"
            print(f"by config: {apart} {differ} in size; read {them} with {first}, ...")
    undefined = undefined_objectives(result)
    for line in (*failures(result), *undefined):
        print(f"simkit: {line}", file=sys.stderr)
    return FAILED if bad.any() or undefined else FINE


def _finish_large(
    result: "xarray.Dataset", directory: "RunDirectory", arguments: argparse.Namespace, job: "SweepJob"
) -> int:
    """Report a sweep too large for a table or for memory, by its totals."""
    summary, folder = read_summary(directory), directory.path
    totals, missing = {key: summary[key] for key in ("statuses", "quantiles")}, left_out(result, job)
    chart = _chart(result, job.scenario, folder, arguments)
    if arguments.json:
        counts = {"scenario": job.scenario.name, "members": summary["members"], "failures": summary["failures"]}
        rest = {"failed": summary["failed"], "directory": folder, "chart": chart}
        print_json({**counts, **totals, "objectives_left_out": missing, **rest}, "large_sweep")
    else:
        print(f"members:    {summary['members']}")
        print_totals(totals)
        print(f"result:     {folder}   (in chunks; read what you need with simkit.open_run('{folder}'))")
        if chart:
            print(f"chart:      {chart}")
        for name, reason in missing.items():
            print(f"not shown:  {name}: {reason}")
    undefined = undefined_objectives(result)
    for line in (*failures(result, SHOWN), *undefined):
        print(f"simkit: {line}", file=sys.stderr)
    return FAILED if summary["failures"] or undefined else FINE


def _chart(result: "xarray.Dataset", scenario: "Scenario", folder: Path, arguments: argparse.Namespace) -> Path | None:
    """Draw the chart of a sweep into its folder and return its file; ``None`` if it is not possible or not wanted."""
    from simkit.export.pictures import MOST_MEMBERS, draw_sweep

    if getattr(arguments, "no_render", False):
        return None
    numbers = [values for values in columns_of(result).values() if values.dtype.kind in "fiu"]
    if not numbers or result["status"].size > MOST_MEMBERS or not os.access(folder, os.W_OK):
        return None
    with Progress(scenario.name, doing="drawing", phase="drew"):
        return draw_sweep(result, scenario, folder / "sweep.png")


def _print_points(
    final: Mapping[str, "xarray.DataArray"], columns: "Mapping[str, np.ndarray]", fine: "np.ndarray"
) -> None:
    """Print one row per point, averaged over the seeds that did not fail (a dash if all did)."""
    shown = list(final)[:COLUMNS]
    good = fine.sum(axis=-1)
    means = {name: np.where(fine, final[name].values, 0).sum(axis=-1) / np.where(good, good, np.nan) for name in shown}
    rows = []
    for where in itertools.islice(np.ndindex(good.shape), ROWS):
        values = [array[where].item() for array in columns.values()]
        cells = (float(means[name][where]) if good[where] else None for name in shown)
        rows.append((*values, int(good[where]), *cells))
    print_table((*columns, "seeds fine", *shown), rows)
    if good.size > ROWS:
        print(f"({more(good.size - ROWS, 'point')} in the result)")
    if len(final) > len(shown):
        print(f"({more(len(final) - len(shown), 'diagnostic')} in the result; means over the seeds that are fine)")
