"""Result of a sweep: its file, summary, columns of swept values, and failed members."""

import hashlib
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray

from simkit.core.status import MESSAGES, Status
from simkit.jobs.outcome import NOT_FINITE
from simkit.jobs.sweep_objectives import OBJECTIVE
from simkit.jobs.totals import blocks_of, failures_of, is_failure, objective_arrays, totals_of
from simkit.storage.files import DamagedFileError, read_bytes, read_sealed_json, write_bytes, write_sealed_json
from simkit.storage.netcdf import from_netcdf_types, to_netcdf_types
from simkit.storage.run_directory import SUMMARY, RunDirectory

RESULT = "sweep.nc"
# Maximum number of failed members that are named.
MOST_NAMED = 1000
POINT = "point"
"""Name of the axis of zipped, sampled or tabulated points."""


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
    totals = totals_of(result)
    result = result.assign_attrs(failed=totals.failed)
    counts = {"members": int(result["status"].size), "failures": totals.failed}
    summary = {**counts, "failed": failures(result), **totals.plain(), "result": digest}
    write_sealed_json(directory.path / SUMMARY, summary, directory.identity)
    return result


def read_result(directory: RunDirectory) -> "xarray.Dataset":
    """Read the result of a finished sweep from its file.

    Args:
        directory: run directory of the sweep.

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

    Args:
        directory: run directory of the sweep.

    Raises:
        DamagedFileError: if it is damaged, missing, from another sweep or of an earlier version.
    """
    path = directory.path / SUMMARY
    summary = read_sealed_json(path, directory.identity)
    if not {"members", "failures", "statuses", "quantiles"} <= summary.keys():
        raise DamagedFileError(f"{path}: it is not the summary of a sweep")
    return summary


def columns_of(result: "xarray.Dataset") -> dict[str, np.ndarray]:
    """Return the swept values, without seeds, at every point.

    Args:
        result: result of a sweep.

    Returns:
        ``{name: values}``, each with the shape of the points.
    """
    axes = [str(axis) for axis in result["status"].dims[:-1]]
    shape = result["status"].shape[:-1]
    columns = {}
    for index, axis in enumerate(axes):
        names = [axis]
        if axis == POINT:
            names = [str(n) for n, array in result.coords.items() if array.dims == (POINT,) and n != POINT]
        along = [-1 if other == index else 1 for other in range(len(axes))]
        columns |= {name: np.broadcast_to(result[name].values.reshape(along), shape) for name in names}
    return columns


def failures(result: "xarray.Dataset", most: int = MOST_NAMED) -> list[str]:
    """Return one line per failed member, with its index and parameters, and a line with the number of further ones.

    Args:
        result: result of a sweep.
        most: maximum number of named members.
    """
    lines = list[str]()
    count = result.attrs.get("failed")
    if count == 0:
        return lines
    columns, shape = columns_of(result), result["status"].shape
    seeds = result["seed"].values
    for start, block in blocks_of(result[["status"]]):
        status = block["status"].values
        for place in np.argwhere(is_failure(status, failures_of(result))):
            if len(lines) == most:
                more = f"{count - most} more" if count is not None else "more"
                members = "member" if count is not None and count - most == 1 else "members"
                return [*lines, f"{more} {members} failed; the status in the result shows which"]
            where = tuple(int(i + j) for i, j in zip(start, place, strict=True))
            values = {name: array[where[:-1]].item() for name, array in columns.items()}
            values["seed"] = int(seeds[where[-1]])
            word = str(status[tuple(place)])
            index = int(np.ravel_multi_index(where, shape))
            lines.append(f"{named(index, values)} {MESSAGES[Status[word.upper()]]}")
    return lines


def undefined_objectives(result: "xarray.Dataset") -> list[str]:
    """Return one line per objective that is not finite in members that did not fail, with their number.

    Args:
        result: result of a sweep.
    """
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


def named(index: int, values: Mapping[str, float | str]) -> str:
    """Return the description of a member of a sweep.

    Args:
        index: index of the member.
        values: its swept values and its seed.
    """
    words = (f"{name} = {v if isinstance(v, str) else f'{v:g}'}" for name, v in values.items())
    return f"member {index} ({', '.join(words)})"


def _digest(data: bytes) -> str:
    return f"sha256 {hashlib.sha256(data).hexdigest()}"
