"""Report a sweep."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from simkit.cli.main import FAILED, FINE
from simkit.cli.output import print_json, print_table

if TYPE_CHECKING:
    import xarray

    from simkit.jobs.sweeps import Sweep
    from simkit.render.figure import Size

# A table wider than this does not fit a terminal.
COLUMNS = 6


def finish(
    result: "xarray.Dataset", job: "Sweep", folder: Path, arguments: argparse.Namespace, size: "Size | None"
) -> int:
    """Report a sweep as a table, and as a chart if a parameter was swept.

    Args:
        result: of the sweep.
        job: what was asked.
        folder: its directory.
        arguments: with ``json``.
        size: of pictures; its chart has one of its own.
    """
    from simkit.core.status import failed
    from simkit.jobs.sweep_results import RESULT, failures

    axes, scenario = result["status"].dims, job.scenario
    swept = [str(axis) for axis in axes if axis != "seed"]
    final = {
        str(name): array.isel(frame=-1)
        for name, array in result.data_vars.items()
        if "frame" in array.dims and array.dims[: len(axes)] == axes
    }
    # What does not vary over the sweep (the end time, say) or repeats a swept parameter tells nothing.
    telling = {name: array for name, array in final.items() if name.removeprefix("diagnosed_") not in swept}
    varying = {name: array for name, array in telling.items() if np.ptp(np.asarray(array, float)) != 0} or telling
    # What the scenario is about comes first.
    first = [objective.quantity for objective in scenario.objectives.values()]
    varying = dict(sorted(varying.items(), key=lambda item: item[0] not in first))
    bad = failed(result["status"].values)
    chart = None
    if swept and os.access(folder, os.W_OK):
        from simkit.render.chart import sweep_chart

        chart = folder / "sweep.png"
        values = result[swept[0]].values
        series = {name: np.asarray(array).reshape(len(values), -1) for name, array in varying.items()}
        sweep_chart(
            chart,
            swept[0],
            scenario.parameters[swept[0]].unit,
            values,
            series,
            scenario.title,
            bad.reshape(len(values), -1),
            {name: str(array.attrs.get("units", "")) for name, array in varying.items()},
        )
    if arguments.json:
        report = {
            "scenario": scenario.name,
            "members": int(result["status"].size),
            "axes": {str(axis): result[axis].values for axis in axes},
            "final": {name: array.values for name, array in final.items()},
            "status": result["status"].values,
            "failed": failures(result),
            "directory": folder,
            "result": folder / RESULT,
            "chart": chart,
        }
        print_json(report)
    else:
        _print_grid(result, varying, swept, ~bad)
        print(f"\nresult:    {folder / RESULT}   (read it with simkit.open_run('{folder}'))")
        if chart:
            print(f"chart:     {chart}")
    for line in failures(result):
        print(f"simkit: {line}", file=sys.stderr)
    return FAILED if bad.any() else FINE


def _print_grid(
    result: "xarray.Dataset", final: Mapping[str, "xarray.DataArray"], swept: Sequence[str], fine: np.ndarray
) -> None:
    """Print one row per grid point, averaged over the seeds that are fine (a dash where none is)."""
    shown = list(final)[:COLUMNS]
    good = fine.sum(axis=-1)
    means = {name: np.where(fine, final[name].values, 0).sum(axis=-1) / np.where(good, good, np.nan) for name in shown}
    rows = []
    for where in np.ndindex(good.shape):
        values = [float(result[axis].values[i]) for axis, i in zip(swept, where, strict=True)]
        cells = (float(means[name][where]) if good[where] else None for name in shown)
        rows.append((*values, int(good[where]), *cells))
    print_table((*swept, "seeds fine", *shown), rows)
    if len(final) > len(shown):
        print(f"({len(final) - len(shown)} more diagnostics in the result; means over the seeds that are fine)")
