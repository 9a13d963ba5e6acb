"""Attributes of labeled data sets: units, meanings and components of variables, and their provenance."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit import __version__
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    import xarray

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
ALONG_X, ALONG_Y = ("x", "x_face", "x_cell"), ("y", "y_face", "y_cell")


def oriented(dimensions: Sequence[str], array: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """Return a field with y along its rows, as pictures and xarray's plots need; any other array unchanged.

    Args:
        dimensions: one name per axis.
        array: array with these axes.
    """
    if len(dimensions) > 1 and dimensions[-2] in ALONG_X and dimensions[-1] in ALONG_Y:
        return (*dimensions[:-2], dimensions[-1], dimensions[-2]), np.swapaxes(array, -2, -1)
    return tuple(dimensions), array


def free_name(name: str, prefix: str, taken: Collection[str], plain: Collection[str]) -> str:
    """Return the name of a variable: its own, or if that is taken, with a prefix that makes it unique.

    Args:
        name: own name.
        prefix: word that distinguishes variables of the same name.
        taken: names of other variables.
        plain: own names of all variables.
    """
    free = name
    while free in taken or (free != name and free in plain):
        free = f"{prefix}{free}"
    return free


def components(sizes: Mapping[Any, int]) -> dict[str, list[str]]:
    """Return coordinate labels of the dimensions whose entries are components of a vector.

    Args:
        sizes: lengths of a data set's dimensions by name.
    """
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
        known = quantities.get(str(name)) or quantities.get(plain) or parameters.get(plain.removeprefix("best_"))
        if known:
            variable.attrs |= {"units": known["unit"], "long_name": known["doc"]}
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
