"""Data sets in the types of NetCDF 3, and back: no integer beyond 32 bits, float16, complex number or empty array."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.errors import UserError

if TYPE_CHECKING:
    import xarray

# Attribute with the type that a variable has in memory, where the file has another.
TYPE = "type_in_memory"
# Attribute with the sizes of a variable without elements, of which the file has a single number.
SIZES = "sizes_in_memory"
_LARGEST_EXACT = 2**53  # of the integers that float64 represents exactly


def to_netcdf_types(dataset: "xarray.Dataset") -> "xarray.Dataset":
    """Return a data set in types that NetCDF 3 has, with every value unchanged.

    Integers become int32, float64 where int32 is too short, or text where float64 is; float16 becomes float32; an array
    without elements becomes a zero, since a dimension of length 0 would be the unlimited one.

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
    changed = dict[Any, Any]()
    for name, variable in dataset.variables.items():
        kept = variable.copy(deep=False)
        kept.attrs = {key: value for key, value in variable.attrs.items() if key not in (TYPE, SIZES)}
        if SIZES in variable.attrs:
            sizes = json.loads(variable.attrs[SIZES])
            empty = np.zeros(tuple(sizes.values()), variable.attrs[TYPE])
            changed[name] = type(variable)(tuple(sizes), empty, kept.attrs)
            continue
        words = kept.astype(str) if kept.dtype.kind in "OS" else kept  # NetCDF stores words as objects or bytes
        changed[name] = words.astype(variable.attrs.get(TYPE, words.dtype))
    return _replaced(dataset, changed)


def _converted(name: str, variable: "xarray.Variable") -> "xarray.Variable":
    dtype = variable.dtype
    if variable.size == 0:
        sizes = {str(axis): length for axis, length in variable.sizes.items()}
        attributes = {**variable.attrs, TYPE: dtype.name, SIZES: json.dumps(sizes)}
        return type(variable.to_base_variable())((), np.int8(0), attributes)
    if dtype.kind in "iu" and dtype.name not in ("int8", "int16", "int32"):
        array = variable.values
        least, largest = int(array.min()), int(array.max())
        if least >= -(2**31) and largest < 2**31:
            wanted = np.int32
        else:
            wanted = np.float64 if max(-least, largest) <= _LARGEST_EXACT else str
    elif dtype.name == "float16":
        wanted = np.float32
    elif dtype.kind in "biufSUOM":
        return variable
    else:
        raise UserError(f"NetCDF cannot store '{name}', of type {dtype.name}; choose zarr")
    changed = variable.astype(wanted)
    changed.attrs = {**variable.attrs, TYPE: dtype.name}
    return changed


def _replaced(dataset: "xarray.Dataset", variables: "Mapping[Any, xarray.Variable]") -> "xarray.Dataset":
    coordinates = {name: variables[name] for name in dataset.coords}
    return type(dataset)({name: variables[name] for name in dataset.data_vars}, coordinates, dataset.attrs)
