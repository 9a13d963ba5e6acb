"""Data sets in the types of NetCDF 3, and back: no integer beyond 32 bits, no float16, no complex numbers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.errors import UserError

if TYPE_CHECKING:
    import xarray

# Attribute with the type that a variable has in memory, where the file has another.
TYPE = "type_in_memory"
_LARGEST_EXACT = 2**53  # of the integers that float64 represents exactly


def to_netcdf_types(dataset: "xarray.Dataset") -> "xarray.Dataset":
    """Return a data set in types that NetCDF 3 has, with every value unchanged.

    Integers become int32, float64 where int32 is too short, or text where float64 is; float16 becomes float32.

    Args:
        dataset: of numbers, booleans and words.

    Raises:
        UserError: naming an array of a type that NetCDF 3 lacks, such as complex numbers.
    """
    changed = {name: _converted(str(name), variable) for name, variable in dataset.variables.items()}
    return _replaced(dataset, changed)


def from_netcdf_types(dataset: "xarray.Dataset") -> "xarray.Dataset":
    """Return a data set in the types that it had before `to_netcdf_types`.

    Args:
        dataset: read from a file.
    """
    changed = {}
    for name, variable in dataset.variables.items():
        kept = variable.copy(deep=False)
        kept.attrs = {key: value for key, value in variable.attrs.items() if key != TYPE}
        words = kept.astype(str) if kept.dtype.kind in "OS" else kept  # NetCDF stores words as objects or bytes
        changed[name] = words.astype(variable.attrs.get(TYPE, words.dtype))
    return _replaced(dataset, changed)


def _converted(name: str, variable: "xarray.Variable") -> "xarray.Variable":
    array = np.asarray(variable.values)
    if array.dtype.kind in "iu" and array.dtype not in (np.int8, np.int16, np.int32):
        least, largest = (int(array.min()), int(array.max())) if array.size else (0, 0)
        if least >= -(2**31) and largest < 2**31:
            wanted = np.int32
        else:
            wanted = np.float64 if max(-least, largest) <= _LARGEST_EXACT else str
    elif array.dtype == np.float16:
        wanted = np.float32
    elif array.dtype.kind in "biufSUOM":
        return variable
    else:
        raise UserError(f"NetCDF cannot store '{name}', of type {array.dtype.name}; choose zarr")
    changed = variable.copy(deep=False, data=array.astype(wanted))
    changed.attrs = {**variable.attrs, TYPE: array.dtype.name}
    return changed


def _replaced(dataset: "xarray.Dataset", variables: "Mapping[Any, xarray.Variable]") -> "xarray.Dataset":
    coordinates = {name: variables[name] for name in dataset.coords}
    return dataset.assign({name: variables[name] for name in dataset.data_vars}).assign_coords(coordinates)
