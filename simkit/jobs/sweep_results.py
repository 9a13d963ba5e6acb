"""Results of sweeps: totals and statistics of their members, sensitivity, and the files of a result."""

import hashlib
import io
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray

from simkit.core.status import FAILURES, MESSAGES, Status, failed
from simkit.errors import argument
from simkit.jobs.points import POINT, Members, named
from simkit.jobs.runs import NOT_FINITE
from simkit.scenario.scenario import Scenario
from simkit.storage.datasets import from_netcdf_types, to_netcdf_types
from simkit.storage.files import DamagedFileError, read_bytes, read_sealed_json, write_bytes, write_sealed_json
from simkit.storage.run_directory import SUMMARY, RunDirectory

OMITTED_OBJECTIVES = "objectives_left_out"
"""Attribute of a data set: names of the objectives not in it, since they need frames that a sweep does not store."""
OBJECTIVE = "objective"
"""Attribute of a variable of a data set: the name of the objective that it holds."""
PREFIX = "objective_"
"""Prefix, in the data set, of an objective's name that another variable has."""
FAILURE_STATUSES = "failure_statuses"
"""Attribute of a data set: the statuses that are failures, if these are not those of a run."""
FRACTIONS = {"5 %": 0.05, "25 %": 0.25, "50 %": 0.5, "75 %": 0.75, "95 %": 0.95}
# Members read together.
BLOCK = 2**14


def objectives_in(result: "xarray.Dataset", scenario: Scenario) -> dict[str, "xarray.DataArray"]:
    """Return the objectives that a sweep has, by name: those computed, and last values of diagnostics."""
    measured = {name.removeprefix("diagnosed_"): array for name, array in final_numbers(result).items()}
    measured = {name: measured.get(each.quantity) for name, each in scenario.objectives.items()}
    measured |= dict.fromkeys(str(result.attrs.get(OMITTED_OBJECTIVES, "")).split(", "))
    measured |= {array.attrs[OBJECTIVE]: array for array in objective_arrays(result).values()}
    return {name: array for name, array in measured.items() if array is not None}


def left_out(result: "xarray.Dataset", job: Members) -> dict[str, str]:
    """Return why objectives were not computed, by name."""
    without = "" if job.final_frames else f" without {argument('final_frames', 'False')}"
    reason = (
        f"it needs frames that this sweep does not store; use [quantities] that reduce arrays, or final(...){without}"
    )
    return dict.fromkeys(filter(None, str(result.attrs.get(OMITTED_OBJECTIVES, "")).split(", ")), reason)


def final_numbers(result: "xarray.Dataset") -> "dict[str, xarray.DataArray]":
    """Return the final diagnostics of members, by name."""
    axes = result["status"].dims
    return {str(n): a.isel(frame=-1) for n, a in result.data_vars.items() if a.dims == (*axes, "frame")}


def objective_arrays(result: "xarray.Dataset") -> "dict[str, xarray.DataArray]":
    """Return the objectives of members other than the last value of a diagnostic, by name in the data set."""
    return {str(name): array for name, array in result.data_vars.items() if OBJECTIVE in array.attrs}


def is_failure(status: np.ndarray, failures: Sequence[str] = ()) -> np.ndarray:
    """Return which members failed, booleans of the shape of their statuses.

    Args:
        status: codes, or their names as in a result.
        failures: names of the statuses that are failures, in lower case; empty for those of a run.
    """
    return failed(status, [Status[name.upper()] for name in failures] or FAILURES)


def failures_of(result: "xarray.Dataset") -> tuple[str, ...]:
    """Return the names of the statuses that are failures of a result; empty if they are those of a run."""
    return tuple(str(result.attrs.get(FAILURE_STATUSES, "")).split())


def totals(parts: "Iterable[xarray.Dataset]", failures: Sequence[str] = ()) -> dict[str, Any]:
    """Return the totals of members, for the summary.

    Args:
        parts: of some members each: ``status`` as codes, and final diagnostics and objectives, all along one axis.
        failures: names of the statuses that are failures, in lower case; empty for those of a run.

    Returns:
        ``statuses``, the number of members by status; ``failures``, the number of failed ones; and ``quantiles`` of
        each array with finite numbers, without those of failed members.
    """
    members = xarray.concat(list(parts), "member")
    codes, counts = np.unique(members["status"], return_counts=True)
    bad, quantiles = is_failure(members["status"].values, failures), {}
    for name, array in members.drop_vars("status").astype(np.float64).items():
        fine = array[np.isfinite(array.values) & ~bad]
        if fine.size:
            values = fine.quantile([*FRACTIONS.values()]).values.tolist()
            quantiles[str(name)] = dict(zip(FRACTIONS, values, strict=True))
    statuses = {Status(code).name.lower(): count for code, count in zip(codes.tolist(), counts.tolist(), strict=True)}
    return {"statuses": dict(sorted(statuses.items())), "failures": int(bad.sum()), "quantiles": quantiles}


def totals_of(result: "xarray.Dataset") -> dict[str, Any]:
    """Return the totals of a sweep, read a block of members at a time."""

    def ends(block: "xarray.Dataset") -> "xarray.Dataset":
        words, places = np.unique(block["status"].values.ravel(), return_inverse=True)
        codes = np.array([Status[str(word).upper()] for word in words], np.int32)[places]  # far smaller than words
        arrays = final_numbers(block) | objective_arrays(block)
        numbers = {name: ("member", array.values.ravel()) for name, array in arrays.items()}
        return xarray.Dataset({**numbers, "status": ("member", codes)})

    return totals((ends(block) for _, block in blocks_of(result)), failures_of(result))


def blocks_of(result: "xarray.Dataset", most: int = BLOCK) -> "Iterator[tuple[np.ndarray, xarray.Dataset]]":
    """Yield a result in blocks of members, in their order, each with its start index along each axis.

    Args:
        result: result of a sweep.
        most: maximum number of members per block, for a result in memory.
    """
    status = result["status"]
    sizes = {str(axis): length for axis, length in status.sizes.items()}
    # Members of one chunk are read together.
    stored = status.encoding.get("preferred_chunks")
    lengths = tuple(stored[axis] for axis in sizes) if stored else block_lengths(status.shape, most)
    for starts in itertools.product(*(range(0, n, step) for n, step in zip(sizes.values(), lengths, strict=True))):
        ranges = zip(sizes, starts, lengths, strict=True)
        yield np.array(starts, int), result.isel({axis: slice(start, start + step) for axis, start, step in ranges})


def block_lengths(shape: Sequence[int], most: int) -> tuple[int, ...]:
    """Return the lengths, along each axis, of blocks that are contiguous ranges of flat member indices.

    Args:
        shape: shape of the members, points and seeds.
        most: maximum number of members per block.
    """
    lengths, room = list[int](), max(most, 1)
    for length in reversed(shape):
        lengths.append(min(length, max(room, 1)))
        room = room // length if lengths[-1] == length else 0
    return tuple(reversed(lengths))


RESULT = "sweep.nc"
# Maximum number of failed members that are named.
MOST_NAMED = 1000


def store_result(directory: RunDirectory, result: "xarray.Dataset", *, in_one_file: bool) -> "xarray.Dataset":
    """Store the summary of a sweep's result, and the result itself if it is one file; return the result.

    Args:
        directory: run directory of the sweep.
        result: result of the sweep.
        in_one_file: whether the result is stored as one file; otherwise it stays in its chunks.
    """
    digest = None
    if in_one_file:
        data = bytes(to_netcdf_types(result).to_netcdf(engine="scipy"))
        write_bytes(directory.path / RESULT, data)
        digest = _digest(data)
    counts = totals_of(result)
    result = result.assign_attrs(failed=counts["failures"])
    summary = {"members": int(result["status"].size), "failed": failures(result), **counts, "result": digest}
    write_sealed_json(directory.path / SUMMARY, summary, directory.identity)
    return result


def read_result(directory: RunDirectory) -> "xarray.Dataset":
    """Read the result of a finished sweep from its file.

    Raises:
        DamagedFileError: if a file is damaged, missing, or from another sweep.
    """
    path = directory.path / RESULT
    data = read_bytes(path)
    if read_sealed_json(directory.path / SUMMARY, directory.identity).get("result") != _digest(data):
        raise DamagedFileError(f"{path}: its checksum does not match its content")
    with xarray.open_dataset(io.BytesIO(data), engine="scipy") as dataset:
        return from_netcdf_types(dataset.load())


def read_summary(directory: RunDirectory) -> dict[str, Any]:
    """Read the summary of a finished sweep.

    Raises:
        DamagedFileError: if it is damaged, missing, from another sweep or of an earlier version.
    """
    path = directory.path / SUMMARY
    summary = read_sealed_json(path, directory.identity)
    if not {"members", "failures", "statuses", "quantiles"} <= summary.keys():
        raise DamagedFileError(f"{path}: it is not the summary of a sweep")
    return summary


def columns_of(result: "xarray.Dataset") -> dict[str, np.ndarray]:
    """Return the swept values, without seeds, at every point: ``{name: values}``, each with the shape of the points."""
    sizes = {str(axis): length for axis, length in result["status"].sizes.items() if axis != "seed"}
    names = [axis for axis in sizes if axis != POINT]
    names += [str(n) for n, array in result.coords.items() if array.dims == (POINT,) and n != POINT]
    return {name: result[name].variable.set_dims(sizes).values for name in names}


def failures(result: "xarray.Dataset", most: int = MOST_NAMED) -> list[str]:
    """Return one line per failed member, with its index and parameters, and a line with the number of further ones.

    Args:
        result: result of a sweep.
        most: maximum number of named members.
    """
    lines, count = list[str](), result.attrs.get("failed")
    if count is None:
        count = int(is_failure(result["status"].values, failures_of(result)).sum())
    columns, seeds, shape = columns_of(result), result["seed"].values, result["status"].shape
    for start, block in blocks_of(result[["status"]]) if count else ():
        status = block["status"].values
        for place in np.argwhere(is_failure(status, failures_of(result))):
            if len(lines) == most:
                rest = f"{count - most} more member{'s' * (count - most != 1)}"
                return [*lines, f"{rest} failed; the status in the result shows which"]
            where = tuple((start + place).tolist())
            values = {name: array[where[:-1]].item() for name, array in columns.items()}
            words = named(int(np.ravel_multi_index(where, shape)), values | {"seed": int(seeds[where[-1]])})
            lines.append(f"{words} {MESSAGES[Status[str(status[tuple(place)]).upper()]]}")
    return lines


def undefined_objectives(result: "xarray.Dataset") -> list[str]:
    """Return one line per objective that is not finite in members that did not fail, with their number."""
    names = list(objective_arrays(result))
    fine, bad = 0, dict.fromkeys(names, 0)
    for _, block in blocks_of(result[["status", *names]]) if names else ():
        good = ~is_failure(block["status"].values, failures_of(result))
        fine += int(good.sum())
        for name in names:
            bad[name] += int((good & ~np.isfinite(block[name].values)).sum())
    return [
        f"objective {result[name].attrs[OBJECTIVE]} is not finite in {count} of {fine} members that did not fail: "
        + NOT_FINITE
        for name, count in bad.items()
        if count
    ]


def _digest(data: bytes) -> str:
    return f"sha256 {hashlib.sha256(data).hexdigest()}"


# With fewer points there are too few classes to distinguish a dependence from chance.
FEWEST = 64


def first_order_indices(points: Mapping[str, np.ndarray], result: np.ndarray) -> dict[str, float]:
    """Return the first-order Sobol index of each parameter, from a sample that fills its ranges evenly.

    The index of x is Var(E[y | x]) / Var(y). Points are sorted by x and divided into about sqrt(n) classes of equal
    size, whose means estimate E[y | x]; the variance of the k class means by chance, (k - 1) times the variance within
    classes, is subtracted. The indices of y = sum of independent terms add up to 1; a smaller sum indicates
    interactions. The error is about 1 / sqrt(n), and a dependence that changes sign within a class is missed.

    Source: E. Plischke, E. Borgonovo and C. L. Smith, Global sensitivity measures from given data, Eur. J. Oper. Res.
    226, 536 (2013), doi:10.1016/j.ejor.2012.11.047, with the unbiased correlation ratio of T. L. Kelley, Proc. Natl.
    Acad. Sci. 21, 554 (1935), doi:10.1073/pnas.21.9.554.

    Args:
        points: values by parameter, each (n,).
        result: result at each point, (n,); non-finite ones are omitted.

    Returns:
        ``{parameter: index}``, clipped to [0, 1]; empty for fewer than `FEWEST` points or a constant result.
    """
    finite = np.isfinite(result)
    y = np.asarray(result, np.float64)[finite]
    count = y.size
    if count < FEWEST or np.ptp(y) <= 1e-12 * np.abs(y).max():
        return {}
    y = y - y.mean()
    total, indices = float(y @ y), {}
    for name, values in points.items():
        classes = np.array_split(y[np.argsort(np.asarray(values)[finite], kind="stable")], int(np.sqrt(count)))
        between = sum(len(part) * part.mean() ** 2 for part in classes)
        chance = (len(classes) - 1) * (total - between) / (count - len(classes))
        indices[name] = float(np.clip((between - chance) / total, 0.0, 1.0))
    return indices
