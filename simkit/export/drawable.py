"""Input of the renderer (frames, diagnostics, settings) from a data set, a run directory or arrays."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.errors import UserError, nearest
from simkit.scenario.likely_view import CLOCKS, likely_view
from simkit.scenario.schema import RENDER_KEYS, parse_render
from simkit.scenario.sections import RenderSettings
from simkit.storage import datasets
from simkit.storage.labels import ALONG_X, ALONG_Y

if TYPE_CHECKING:
    import xarray

    from simkit.jobs.outcome import Outcome


def drawable_of(result: Any, changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `simkit.render.animate.render` for a result: frames, units, settings, title and others.

    Args:
        result: a data set of a run, its outcome, the folder of a run, ``(frames, diagnostics)``, or ``(state, frames,
            diagnostics)``.
        changed: settings of ``[render]`` that replace the run's own (or, for a result without, the likely ones), and
            ``title``.

    Raises:
        UserError: if the result is none of these, or a setting is unknown or not allowed.
    """
    for key in changed:
        if key not in (*RENDER_KEYS, "title"):
            raise UserError(f"'{key}' is not a setting of drawing{nearest(key, (*RENDER_KEYS, 'title'))}")
    parts, own, title = _parts(result)
    if own is not None and not changed:
        return {**parts, "settings": own, "title": title}
    units = parts["units"]
    quantity = changed.get("quantity")
    if own is None or changed.get("view", own.view) != own.view:
        observed, diagnosed = (
            {name: array[:1].reshape(array.shape[1:]) for name, array in parts[kind].items() if len(array)}
            for kind in ("frames", "diagnostics")
        )
        lengths = {name: np.shape(values) for name, values in parts["coordinates"].items()}
        view, quantity = likely_view(observed, diagnosed, lengths, changed.get("view"), quantity)
        given = {"view": view, "quantity": quantity, "unit": units.get(quantity) or "1"}
    else:
        given = {key: value for key, value in dataclasses.asdict(own).items() if value not in (None, 0.0, {})}
        if quantity not in (None, own.quantity):
            # Label, unit and limits of the run's own quantity do not apply to another one.
            given = {key: value for key, value in given.items() if key not in ("label", "unit", "limits")}
            given |= {"unit": units.get(quantity) or "1"}
    given |= {key: value for key, value in changed.items() if key != "title"}
    settings = parse_render(given, "animate")
    return {**parts, "settings": settings, "title": str(changed.get("title", title))}


type _Run = tuple[dict[str, Any], RenderSettings | None, str]


def _parts(result: Any) -> _Run:
    """Return ``(arrays and units, settings or None, title)`` of a result."""
    import xarray

    from simkit.jobs.outcome import Outcome

    if isinstance(result, Outcome):
        return _of_outcome(result)
    if isinstance(result, str | Path):
        from simkit.jobs.reopening import open_frames

        return _of_outcome(open_frames(result, "animation"))
    if isinstance(result, xarray.Dataset):
        outcome = getattr(result, "_outcome", None)
        return _of_dataset(result) if outcome is None else _of_outcome(outcome)
    if isinstance(result, tuple) and len(result) in (2, 3) and all(isinstance(part, Mapping) for part in result[-2:]):
        frames, diagnostics = ({name: np.asarray(array) for name, array in part.items()} for part in result[-2:])
        return {"frames": frames, "diagnostics": diagnostics, "coordinates": {}, "units": {}}, None, "Simulation"
    raise UserError(
        f"{type(result).__name__} cannot be drawn; give what simkit.run returned, the folder of a run, or "
        "(frames, diagnostics)"
    )


def _of_outcome(outcome: "Outcome") -> _Run:
    return parts_of(outcome.arrays, outcome.labels), outcome.scenario.render, outcome.scenario.title


def parts_of(arrays: Mapping[str, np.ndarray], labels: Mapping[str, Any]) -> dict[str, Any]:
    """Return frames, diagnostics, coordinates and units of a run.

    Args:
        arrays: stored arrays by name, joined along the frames.
        labels: from `simkit.storage.datasets.labels_of`.
    """
    observed, diagnosed = datasets.split(arrays)
    coordinates = {name: np.asarray(values) for name, values in labels["coordinates"].items()}
    units = {name: known["unit"] for name, known in labels.get("quantities", {}).items()}
    return {"frames": observed, "diagnostics": diagnosed, "coordinates": coordinates, "units": units}


def _of_dataset(dataset: "xarray.Dataset") -> _Run:
    """Return the parts of a run's data set: arrays along its clock, fields transposed back to x before y."""
    clock = next((name for name in (*CLOCKS, "frame") if name in dataset.dims), None)
    if clock is None:
        raise UserError("the data set has no axis time, iteration or frame, so it cannot be drawn; give that of a run")
    if "seed" in dataset.dims:
        raise UserError("the data set is that of a sweep; choose one member, and draw what simkit.run returns for it")
    frames, diagnostics = {}, {}
    for name, variable in dataset.variables.items():
        if variable.dims[:1] != (clock,) or variable.dtype.kind not in "fiu":
            continue
        first, last = (*variable.dims[-2:], "", "")[:2]
        array = np.swapaxes(variable.values, -2, -1) if first in ALONG_Y and last in ALONG_X else variable.values
        (diagnostics if array.ndim == 1 else frames)[str(name).removeprefix("observed_")] = array
    coordinates = {str(name): values.values for name, values in dataset.coords.items() if name != clock}
    units = {str(name): str(variable.attrs.get("units", "1")) for name, variable in dataset.variables.items()}
    parts = {"frames": frames, "diagnostics": diagnostics, "coordinates": coordinates, "units": units}
    return parts, None, str(dataset.attrs.get("title", "Simulation"))
