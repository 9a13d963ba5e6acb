"""Chart of a sweep: final diagnostics and objectives over the swept parameters."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from simkit.errors import UserError

if TYPE_CHECKING:
    import xarray

    from simkit.scenario.scenario import Scenario

# A chart holds one number per member and diagnostic in memory; more points could not be distinguished in it.
MOST_MEMBERS = 1_000_000


def draw_sweep(result: "xarray.Dataset", scenario: "Scenario", output: Path) -> Path:
    """Draw the final diagnostics and objectives of a sweep over the swept parameters, and return the file.

    Args:
        result: of the sweep.
        scenario: of the sweep.
        output: PNG file to write.

    Raises:
        UserError: if no number was swept, there are too many members, or the file cannot be written.
    """
    from simkit.jobs.sensitivity import first_order_indices
    from simkit.jobs.sweep_results import columns_of
    from simkit.jobs.totals import failures_of, is_failure
    from simkit.render.sweep_charts import SweepData, sweep_chart

    if (members := result["status"].size) > MOST_MEMBERS:
        raise UserError(
            f"a chart shows at most {MOST_MEMBERS} members, and the sweep has {members}; plot a part of its data set"
        )
    columns = {name: values for name, values in columns_of(result).items() if values.dtype.kind in "fiu"}
    numbers = {name: values.ravel() for name, values in columns.items() if len(np.unique(values)) > 1}
    numbers = numbers or {name: values.ravel() for name, values in columns.items()}
    if not numbers:
        raise UserError("no number was swept, so the results have no axis to be charted over")
    axes = result["status"].dims[:-1]
    words = [axis for axis in axes if result[axis].dtype.kind not in "fiu"]
    bad = is_failure(result["status"].values, failures_of(result)).reshape(-1, result.sizes["seed"])
    series = {name: array.values.reshape(bad.shape) for name, array in informative(result, scenario).items()}
    if words and len(numbers) == 1:
        # Words make no axis: their values are drawn side by side, like seeds.
        (name, values), *_ = numbers.items()
        order = np.argsort(values, kind="stable")
        count = len(np.unique(values))
        numbers = {name: values[order].reshape(count, -1)[:, 0]}
        bad = bad[order].reshape(count, -1)
        series = {key: array[order].reshape(count, -1) for key, array in series.items()}
    units = {name: scenario.parameters[name].unit for name in numbers if name in scenario.parameters}
    units |= {name: str(result[name].attrs.get("units", "")) for name in series}
    indices = {}
    if str(result.attrs.get("points", "")).startswith(("Sobol", "Latin")):
        with np.errstate(all="ignore"):
            means = {name: np.where(bad, np.nan, array).mean(axis=1) for name, array in series.items()}
        indices = {name: first_order_indices(numbers, mean) for name, mean in means.items()}
    grid = len(axes) > 1 and not words
    return sweep_chart(output, SweepData(numbers, series, bad, units, grid, indices, scenario.title))


def informative(result: "xarray.Dataset", scenario: "Scenario") -> "dict[str, xarray.DataArray]":
    """Return the objectives and final diagnostics of the members that vary over the sweep, objectives first.

    A diagnostic that repeats a swept parameter is left out; if none varies, all are returned.

    Args:
        result: of the sweep.
        scenario: of the sweep.
    """
    from simkit.jobs.sweep_objectives import objectives_in
    from simkit.jobs.sweep_results import columns_of
    from simkit.jobs.totals import final_numbers

    swept = columns_of(result)
    final = {n: array.load() for n, array in final_numbers(result).items() if n.removeprefix("diagnosed_") not in swept}
    objectives = objectives_in(result, scenario)
    known = objectives | final
    varying = {name: array for name, array in known.items() if np.ptp(np.asarray(array, float)) != 0} or known
    first = [*objectives, *(objective.quantity for objective in scenario.objectives.values())]
    return dict(sorted(varying.items(), key=lambda item: item[0] not in first))
