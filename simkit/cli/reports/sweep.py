"""Report a sweep."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from simkit.cli.main import FAILED, FINE
from simkit.cli.output import print_json, print_table
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    import xarray

# A table wider than this does not fit a terminal.
COLUMNS = 6


def finish_sweep(result: "xarray.Dataset", output: Path, scenario: Scenario, arguments: argparse.Namespace) -> int:
    """Report a sweep as a table, and as a chart if a parameter was swept.

    Args:
        result: of the sweep.
        output: its directory.
        scenario: what was swept.
        arguments: with ``json``.
    """
    from simkit.runtime.sweeps import RESULT, failures

    axes = result["status"].dims
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
    chart = None
    if swept:
        from simkit.render.chart import sweep_chart

        chart = output / "sweep.png"
        values = result[swept[0]].values
        series = {name: np.asarray(array).reshape(len(values), -1) for name, array in varying.items()}
        sweep_chart(chart, swept[0], scenario.parameters[swept[0]].unit, values, series, scenario.title)
    failed = failures(result)
    if arguments.json:
        report = {
            "scenario": scenario.name,
            "members": int(result["status"].size),
            "axes": {str(axis): result[axis].values for axis in axes},
            "final": {name: array.values for name, array in final.items()},
            "status": result["status"].values,
            "failed": failed,
            "directory": output,
            "result": output / RESULT,
            "chart": chart,
        }
        print_json(report)
    else:
        _print_grid(result, varying, swept)
        print(f"\nresult:    {output / RESULT}   (read it with simkit.open_run('{output}'))")
        if chart:
            print(f"chart:     {chart}")
    for line in failed:
        print(f"simkit: {line}", file=sys.stderr)
    return FAILED if failed else FINE


def _print_grid(result: "xarray.Dataset", final: Mapping[str, "xarray.DataArray"], swept: Sequence[str]) -> None:
    """Print one row per grid point, averaged over seeds (NaN members left out)."""
    shown = list(final)[:COLUMNS]
    means = {name: np.asarray(final[name].mean("seed", skipna=True)) for name in shown}
    good = np.asarray((~result["status"].isin(["non_finite", "max_steps"])).sum("seed"))
    rows = []
    for where in np.ndindex(good.shape):
        values = [float(result[axis].values[i]) for axis, i in zip(swept, where, strict=True)]
        rows.append((*values, int(good[where]), *(float(means[name][where]) for name in shown)))
    print_table((*swept, "seeds fine", *shown), rows)
    if len(final) > len(shown):
        print(f"({len(final) - len(shown)} more diagnostics in the result; means over seeds)")
