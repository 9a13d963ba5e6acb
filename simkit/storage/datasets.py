"""Labeled data sets made of stored arrays, and their types in NetCDF files."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit import __version__
from simkit.errors import UserError
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation


# Coordinate labels of dimensions whose entries are components of a vector.
COMPONENTS = {
    "space": ("x", "y", "z"),
    "axis": ("x", "y", "z"),
    "quaternion": ("w", "x", "y", "z"),
    "lattice_vector": ("a", "b", "c"),
    "normal_and_offset": ("normal_x", "normal_y", "normal_z", "offset"),
    "end": ("first", "second"),
}
# Prefixes of variable names that distinguish two variables of the same name.
PREFIXES = ("observed_", "diagnosed_", "final_")
# Attributes of data sets; a parameter with one of these names is stored as the attribute ``params.NAME``.
PROVENANCE = ("title", "scenario", "simulation", "config", "steps", "every", "seed", "precision", "simkit_version")
ATTRIBUTES = frozenset((*PROVENANCE, "status", "failed", "message", "members", "points", "apart", "at_bounds"))
ALONG_X, ALONG_Y = ("x", "x_face", "x_cell"), ("y", "y_face", "y_cell", "y_drawn")


def oriented(dimensions: Sequence[str], array: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """Return a field with y along its rows, as pictures and xarray's plots need; any other array unchanged.

    Args:
        dimensions: one name per axis.
        array: array with these axes.
    """
    if len(dimensions) > 1 and dimensions[-2] in ALONG_X and dimensions[-1] in ALONG_Y:
        return (*dimensions[:-2], dimensions[-1], dimensions[-2]), np.swapaxes(array, -2, -1)
    return tuple(dimensions), array


def free_name(name: str, prefix: str, used: Collection[str], plain: Collection[str]) -> str:
    """Return the name of a variable, with a prefix that makes it unique where another has it.

    Args:
        name: its plain name.
        prefix: word that distinguishes variables of the same name.
        used: names of other variables.
        plain: plain names of all variables.
    """
    free = name
    while free in used or (free != name and free in plain):
        free = f"{prefix}{free}"
    return free


def components(sizes: Mapping[Any, int]) -> dict[str, list[str]]:
    """Return coordinate labels of the dimensions, given by length, whose entries are components of a vector."""
    return {
        name: list(words[: sizes[name]]) for name, words in COMPONENTS.items() if 0 < sizes.get(name, 0) <= len(words)
    }


def annotate(dataset: "xarray.Dataset", quantities: Mapping[str, Mapping[str, str]], scenario: Scenario) -> None:
    """Set unit and meaning as attributes of every variable and coordinate with a known quantity or parameter.

    Args:
        dataset: data set to change.
        quantities: ``{name: {"unit": ..., "doc": ...}}`` of observed arrays and diagnostics.
        scenario: scenario that declares the parameters.
    """
    parameters = {name: {"unit": p.unit, "doc": p.doc} for name, p in scenario.parameters.items()}
    for name, variable in dataset.variables.items():
        plain = next((str(name).removeprefix(p) for p in PREFIXES if str(name).startswith(p)), str(name))
        quantity = quantities.get(str(name)) or quantities.get(plain) or parameters.get(plain.removeprefix("best_"))
        if quantity:
            variable.attrs |= {"units": quantity["unit"], "long_name": quantity["doc"]}
    texts = {"seed": "seed of the random key", "status": "how the run ended", "frame": "stored frame"}
    texts["point"] = "point of the sweep"
    texts |= dict.fromkeys((name for name in COMPONENTS if name in dataset.coords), "component")
    for name, text in texts.items():
        if name in dataset.variables:
            dataset[name].attrs.setdefault("long_name", text)


def attributes_of(scenario: Scenario, without: Sequence[str] = (), version: str = "") -> dict[str, Any]:
    """Return the provenance of a data set: scenario, parameters, configuration, seed, precision and version.

    Args:
        scenario: scenario with overrides applied.
        without: parameters that vary over the data set.
        version: version of simkit; empty for the current one.
    """
    config = {key: _short(value) for key, value in scenario.config.items()}
    values = {name: attribute(p.default) for name, p in scenario.parameters.items() if name not in without}
    return {
        "title": scenario.title,
        "scenario": scenario.name,
        "simulation": scenario.simulation,
        **{f"params.{name}" if name in ATTRIBUTES else name: value for name, value in values.items()},
        "config": json.dumps(config),
        "steps": scenario.run.steps,
        "every": scenario.run.every,
        "seed": attribute(scenario.run.seed),
        "precision": scenario.run.precision,
        "simkit_version": version or __version__,
    }


def attribute(value: Any) -> Any:
    """Return plain data as a type that every file format of data sets can store as an attribute.

    Args:
        value: a number, a word, or nested lists or tuples of them.

    Returns:
        A number (as text beyond 32 bits) or word unchanged, a flat list of numbers as an array, nested data as JSON.
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and value.bit_length() > 31:
        return str(value)
    if not isinstance(value, list | tuple):
        return value
    flat = bool(value) and all(isinstance(item, int | float) and not isinstance(item, bool) for item in value)
    return np.asarray(value, np.float64) if flat else json.dumps(value)


def _short(value: Any) -> Any:
    """Return a factory argument, with each text of several lines in it replaced by its length."""
    if isinstance(value, dict):
        return {key: _short(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_short(entry) for entry in value]
    return f"text of {len(value.encode())} bytes" if isinstance(value, str) and "\n" in value else value


# Further words of quantities, which reports of runs tell.
_TOLD = ("caution", "limit")


def labels_of(simulation: "Simulation") -> dict[str, Any]:
    """Return the dimensions and coordinates of a simulation as plain data, for a manifest."""
    return {
        "dimensions": {name: list(names) for name, names in simulation.dimensions.items()},
        "coordinates": {name: np.asarray(values).tolist() for name, values in simulation.coordinates.items()},
        "quantities": {
            name: {"unit": q.unit, "doc": q.doc, **{key: text for key in _TOLD if (text := getattr(q, key))}}
            for name, q in simulation.quantities.items()
        },
    }


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
    dimensions = labels["dimensions"]
    variables = {
        # One name may be both an observed array and a diagnostic.
        free_name(name, "observed_", diagnosed, observed): oriented(_dimensions(name, array, dimensions), array)
        for name, array in observed.items()
    }
    variables |= {name: (("frame", "member")[: array.ndim], array) for name, array in diagnosed.items()}
    used = {dimension for names, _ in variables.values() for dimension in names}
    coordinates = {name: values for name, values in labels["coordinates"].items() if name in used}
    for clock in ("time", "iteration"):
        if clock in variables and variables[clock][1].ndim == 1:
            coordinates[clock] = variables.pop(clock)
    dataset = xarray.Dataset(variables, coords=coordinates, attrs=dict(attributes))
    dataset = dataset.assign_coords(components(dataset.sizes))
    clock = next((clock for clock in ("time", "iteration") if clock in dataset.coords), None)
    return dataset.swap_dims(frame=clock) if clock and clock not in dataset.dims else dataset


def _dimensions(name: str, array: np.ndarray, dimensions: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    names = dimensions.get(name)
    if names is None or len(names) != array.ndim - 1:
        names = [f"{name}_{axis}" for axis in range(array.ndim - 1)]
    return ("frame", *names)


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
        plain = variable.copy(deep=False)
        plain.attrs = {key: value for key, value in variable.attrs.items() if key not in (TYPE, SIZES)}
        if SIZES in variable.attrs:
            sizes = json.loads(variable.attrs[SIZES])
            empty = np.zeros(tuple(sizes.values()), variable.attrs[TYPE])
            changed[name] = type(variable)(tuple(sizes), empty, plain.attrs)
            continue
        words = plain.astype(str) if plain.dtype.kind in "OS" else plain  # NetCDF stores words as objects or bytes
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
