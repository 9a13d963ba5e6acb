"""Labeled data sets made of stored arrays."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.errors import UserError
from simkit.storage.labels import components, free_name, oriented

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation


def labels_of(simulation: "Simulation") -> dict[str, Any]:
    """Return the dimensions and coordinates of a simulation as plain data, for a manifest."""
    return {
        "dimensions": {name: list(names) for name, names in simulation.dimensions.items()},
        "coordinates": {name: np.asarray(values).tolist() for name, values in simulation.coordinates.items()},
        "quantities": {name: {"unit": q.unit, "doc": q.doc} for name, q in simulation.quantities.items()},
    }


def check_labels(arrays: Mapping[str, np.ndarray], labels: Mapping[str, Any], path: Path) -> None:
    """Check that the labels of a manifest fit the stored arrays.

    Args:
        arrays: arrays joined from segments.
        labels: labels of the manifest.
        path: run directory, named in the error.

    Raises:
        UserError: naming the dimension whose coordinates do not fit.
    """
    lengths = {
        dimension: length
        for name, array in split(arrays)[0].items()
        for dimension, length in zip(_dimensions(name, array, labels["dimensions"]), array.shape, strict=True)
    }
    for dimension, values in labels["coordinates"].items():
        if not _fit(values, lengths.get(dimension)):
            raise UserError(f"{path}: manifest.json: the coordinates of {dimension} do not fit; run the scenario again")


def _fit(values: Any, length: int | None) -> bool:
    """Return whether coordinates are one number per index of a dimension; those for pictures may be words or tables.

    Args:
        values: coordinates in the manifest.
        length: length of the dimension; ``None`` if no array has this dimension, such as the kinds of the ``sides``.
    """
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        return False
    return array.dtype.kind in "fiuU" if length is None else array.dtype.kind in "fiu" and array.shape == (length,)


def join(pieces: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Concatenate segments along their frame axis."""
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def split[Value](arrays: Mapping[str, Value]) -> tuple[dict[str, Value], dict[str, Value]]:
    """Return two dictionaries, of observed arrays and of diagnostics, without the prefixes of their names."""
    observed, diagnosed = (
        {name.removeprefix(group): array for name, array in arrays.items() if name.startswith(group)}
        for group in ("observed.", "diagnosed.")
    )
    return observed, diagnosed


def to_dataset(
    arrays: Mapping[str, np.ndarray], labels: Mapping[str, Any], attributes: Mapping[str, Any]
) -> "xarray.Dataset":
    """Return frames and diagnostics as one data set along ``time``, or ``iteration``, or else ``frame``.

    Args:
        arrays: arrays joined from segments.
        labels: from `labels_of`.
        attributes: attributes of the data set.
    """
    import xarray

    observed, diagnosed = split(arrays)
    dimensions, known = labels["dimensions"], labels["coordinates"]
    variables = {
        # One name may be both an observed array and a diagnostic.
        free_name(name, "observed_", diagnosed, observed): oriented(_dimensions(name, array, dimensions), array)
        for name, array in observed.items()
    }
    variables |= {name: (("frame", "member")[: array.ndim], array) for name, array in diagnosed.items()}
    used = {dimension for names, _ in variables.values() for dimension in names}
    coordinates = {name: values for name, values in known.items() if name in used}
    for clock in ("time", "iteration"):
        if clock in variables and variables[clock][1].ndim == 1:
            coordinates[clock] = variables.pop(clock)
    dataset = xarray.Dataset(variables, coords=coordinates, attrs=dict(attributes))
    dataset = dataset.assign_coords(components(dataset.sizes))
    clock = next((clock for clock in ("time", "iteration") if clock in dataset.coords), None)
    return dataset.swap_dims(frame=clock) if clock and clock not in dataset.dims else dataset


def _dimensions(name: str, array: np.ndarray, dimensions: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    named = dimensions.get(name)
    if named is None or len(named) != array.ndim - 1:
        named = [f"{name}_{axis}" for axis in range(array.ndim - 1)]
    return ("frame", *named)
