"""The result of a sweep: its file, and the members of it that failed."""

import hashlib
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from simkit.storage.files import DamagedFileError, read_bytes, read_sealed_json, write_bytes, write_sealed_json
from simkit.storage.run_directory import SUMMARY, RunDirectory

if TYPE_CHECKING:
    import xarray

RESULT = "sweep.nc"
POINT = "point"
"""The axis of points at which several parameters change together."""


def store_result(directory: RunDirectory, dataset: "xarray.Dataset") -> "xarray.Dataset":
    """Store the result of a sweep in one file, with a summary, and return it.

    Args:
        directory: of the sweep.
        dataset: its result.
    """
    data = bytes(dataset.to_netcdf(engine="scipy"))
    write_bytes(directory.path / RESULT, data)
    summary = {"members": int(dataset["status"].size), "failed": failures(dataset), "result": _digest(data)}
    write_sealed_json(directory.path / SUMMARY, summary, directory.identity)
    return dataset


def read_result(directory: RunDirectory) -> "xarray.Dataset":
    """Return the result of a finished sweep.

    Args:
        directory: of the sweep.

    Raises:
        DamagedFileError: if a file is damaged, missing, or of another sweep.
    """
    import xarray

    path = directory.path / RESULT
    data = read_bytes(path)
    if read_sealed_json(directory.path / SUMMARY, directory.identity).get("result") != _digest(data):
        raise DamagedFileError(f"{path}: its checksum does not fit its content")
    with xarray.open_dataset(io.BytesIO(data), engine="scipy") as dataset:
        # NetCDF has no words of fixed length.
        loaded = dataset.load()
        words = {name: v.astype(str) for name, v in loaded.variables.items() if v.dtype.kind in "OS"}
        coordinates = {name: words[name] for name in loaded.coords if name in words}
        return loaded.assign({"status": words["status"]}).assign_coords(coordinates)


def columns_of(result: "xarray.Dataset") -> dict[str, np.ndarray]:
    """Return the values of what was swept, other than seeds, at every point.

    Args:
        result: of a sweep.

    Returns:
        ``{name: values}``, each as large as the points are arranged.
    """
    axes = [str(axis) for axis in result["status"].dims[:-1]]
    shape = result["status"].shape[:-1]
    columns = {}
    for place, axis in enumerate(axes):
        names = [axis]
        if axis == POINT:
            names = [str(n) for n, array in result.coords.items() if array.dims == (POINT,) and n != POINT]
        along = [-1 if other == place else 1 for other in range(len(axes))]
        columns |= {name: np.broadcast_to(result[name].values.reshape(along), shape) for name in names}
    return columns


def failures(result: "xarray.Dataset") -> list[str]:
    """Return one line per member that failed, with its index and parameters.

    Args:
        result: of a sweep.
    """
    from simkit.core.status import MESSAGES, Status, failed

    lines = []
    status, columns = result["status"].values, columns_of(result)
    for where in np.argwhere(failed(status)):
        *point, seed = map(int, where)
        values = {name: array[tuple(point)].item() for name, array in columns.items()}
        values["seed"] = int(result["seed"].values[seed])
        index = int(np.ravel_multi_index(tuple(where), status.shape))
        lines.append(f"{named(index, values)} {MESSAGES[Status[str(status[tuple(where)]).upper()]]}")
    return lines


def named(index: int, values: Mapping[str, float | str]) -> str:
    """Return a member of a sweep in words.

    Args:
        index: of the member.
        values: of what is swept, and its seed.
    """
    words = (f"{name} = {v if isinstance(v, str) else f'{v:g}'}" for name, v in values.items())
    return f"member {index} ({', '.join(words)})"


def _digest(data: bytes) -> str:
    return f"sha256 {hashlib.sha256(data).hexdigest()}"
