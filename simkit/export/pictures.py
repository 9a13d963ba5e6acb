"""Pictures and animations of runs and sweeps, in memory and as files."""

import base64
import dataclasses
import html
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.core.settings import word
from simkit.errors import UserError
from simkit.jobs import sweep_results
from simkit.jobs.job import Prepared
from simkit.jobs.runs import Outcome
from simkit.jobs.stored_jobs import open_frames
from simkit.render.animate import FORMATS, check_size, parse_size, render
from simkit.render.chart import SweepData, comparison, sweep_chart
from simkit.render.views import new_painter
from simkit.scenario.drawing import CLOCKS, Frame, likely_view, render_settings
from simkit.scenario.scenario import RenderSettings, Scenario
from simkit.storage import datasets
from simkit.storage.datasets import ALONG_X, ALONG_Y
from simkit.storage.files import make_folder, write_bytes

if TYPE_CHECKING:
    import xarray


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
    parts, stored, title = _parts(result)
    if stored is not None and not changed:
        return {**parts, "settings": stored, "title": title}
    units = parts["units"]
    quantity = changed.get("quantity")
    if stored is None or changed.get("view", stored.view) != stored.view:
        observed, diagnosed = (
            {name: array[:1].reshape(array.shape[1:]) for name, array in parts[kind].items() if len(array)}
            for kind in ("frames", "diagnostics")
        )
        lengths = {name: np.shape(values) for name, values in parts["coordinates"].items()}
        view, quantity = likely_view(Frame(observed, diagnosed, lengths), changed.get("view"), quantity)
        table = {"view": view, "quantity": quantity, "unit": units.get(quantity) or "1"}
    else:
        table = stored.table()
        if quantity not in (None, stored.quantity):
            # Label, unit and limits of the stored quantity do not apply to another one.
            table = {key: value for key, value in table.items() if key not in ("label", "unit", "limits")}
            table |= {"unit": units.get(quantity) or "1"}
    settings = render_settings(table | {key: value for key, value in changed.items() if key != "title"})
    return {**parts, "settings": settings, "title": str(changed.get("title", title))}


type _Run = tuple[dict[str, Any], RenderSettings | None, str]


def _parts(result: Any) -> _Run:
    """Return ``(arrays and units, settings or None, title)`` of a result."""
    import xarray

    if isinstance(result, Outcome):
        return _of_outcome(result)
    if isinstance(result, str | Path):
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


def _of_outcome(outcome: Outcome) -> _Run:
    return parts_of(outcome.arrays, outcome.labels), outcome.scenario.render, outcome.scenario.title


def parts_of(arrays: Mapping[str, np.ndarray], labels: Mapping[str, Any]) -> dict[str, Any]:
    """Return frames, diagnostics, coordinates and units of a run.

    Args:
        arrays: stored arrays by name, joined along the frames.
        labels: from `simkit.storage.datasets.labels_of`.
    """
    observed, diagnosed = datasets.split(arrays)
    coordinates = {name: np.asarray(values) for name, values in labels["coordinates"].items()}
    units = {name: label["unit"] for name, label in labels.get("quantities", {}).items()}
    return {"frames": observed, "diagnostics": diagnosed, "coordinates": coordinates, "units": units}


def _of_dataset(dataset: "xarray.Dataset") -> _Run:
    """Return the parts of a run's data set: arrays along its clock, fields transposed back to x before y."""
    clock = next((name for name in (*CLOCKS, "frame") if name in dataset.dims), None)
    if clock is None or "seed" in dataset.dims:
        raise UserError(
            "the data set is not that of a run: it has no axis time, iteration or frame, or several seeds; of a sweep, "
            "draw what simkit.run returns for one member"
        )
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


def draw(
    outcome: Outcome,
    output: Path,
    kind: str,
    size: tuple[int, int] | int,
    frame: int = -1,
    maximum_frames: int = 150,
    report: Callable[[float], None] = lambda fraction: None,
    changed: Mapping[str, Any] = MappingProxyType({}),
) -> Path:
    """Draw a run's stored frames.

    Args:
        outcome: a run.
        output: file to write.
        kind: ``"gif"``, ``"webp"``, ``"mp4"`` or ``"png"``.
        size: width and height in pixels, or their product for a shape that suits the view.
        frame: index of the frame of a still picture; negative counts from the end.
        maximum_frames: approximate number of frames that a longer run is thinned to.
        report: called with the fraction of the animation that is drawn.
        changed: settings of ``[render]`` that replace those of the run, such as ``quantity`` and ``limits``.

    Raises:
        UserError: if the file cannot be written, the frame does not exist, or a changed setting is not allowed.
    """
    render(
        **drawable_of(outcome, changed),
        output=output,
        format=kind,
        size=size,
        frame=frame,
        maximum_frames=maximum_frames,
        report=report,
    )
    return output


def check_window(scenario: Scenario, prepared: Prepared) -> None:
    """Refuse a part of the field to draw that is not in it, before a run: by the painter of a frame of zeros.

    Args:
        scenario: scenario of the run.
        prepared: its simulation.

    Raises:
        UserError: with the range of the field.
    """
    if scenario.render.options.get("window"):
        zeros = {name: np.zeros((1, *array.shape), array.dtype) for name, array in prepared.shapes[1].items()}
        arrays = parts_of(zeros, datasets.labels_of(prepared.simulation))
        new_painter(**arrays, title=scenario.title, settings=scenario.render)


@dataclasses.dataclass(frozen=True)
class Drawing:
    """An animation or a picture in memory, which a notebook shows inline.

    Attributes:
        data: the file's bytes.
        kind: ``"gif"``, ``"webp"``, ``"mp4"`` or ``"png"``.
        title: what it shows.
    """

    data: bytes
    kind: str
    title: str

    def save(self, path: Path | str) -> Path:
        """Write the drawing to a file, and return its path.

        Args:
            path: with the suffix of ``kind``.

        Raises:
            UserError: if the path has another suffix, or cannot be written.
        """
        path = Path(path)
        if path.suffix != f".{self.kind}":
            remedy = f"name it {path.stem}.{self.kind}"
            if self.kind != "png" and path.suffix[1:] in FORMATS[:-1]:
                remedy += f", or draw with animate(..., kind='{path.suffix[1:]}')"
            raise UserError(f"{path} cannot hold this drawing, which is a {self.kind}; {remedy}")
        make_folder(path.parent)
        write_bytes(path, self.data)
        return path

    def _repr_html_(self) -> str:
        encoded = base64.b64encode(self.data).decode()
        if self.kind == "mp4":
            return f'<video controls loop src="data:video/mp4;base64,{encoded}"></video>'
        return f'<img src="data:image/{self.kind};base64,{encoded}" alt="{html.escape(self.title, quote=True)}">'

    def __repr__(self) -> str:
        """Return one line, without the bytes."""
        return f"<Drawing of {self.title}: {self.kind}, {len(self.data)} bytes; save(path) writes it>"


def animate(
    result: Any, *, size: tuple[int, int] | int = 480 * 270, frames: int = 60, kind: str = "gif", **settings: Any
) -> Drawing:
    """Return the animation of a run, to be shown in a notebook or saved.

    Args:
        result: the data set of `simkit.run` or a part of it in time; the folder of a run; or
            ``(frames, diagnostics)`` of `simkit.core.rollout.trajectory`.
        size: width and height in pixels, or their product for a shape that suits the view.
        frames: approximate number of frames that a longer run is thinned to.
        kind: ``"gif"``, ``"webp"`` or ``"mp4"``.
        **settings: ``view``, ``quantity``, ``label``, ``unit``, ``colormap``, ``limits``, ``frames_per_second``,
            ``title`` and others of a scenario's ``[render]``, which replace those of the run.

    Raises:
        UserError: if there is nothing to draw, or a setting is unknown or not allowed.
    """
    word("animation", FORMATS[:-1]).check(kind, "kind")
    return _drawing(result, kind, settings, size=size, maximum_frames=frames)


def picture(result: Any, *, frame: int = -1, size: tuple[int, int] | int = 640 * 360, **settings: Any) -> Drawing:
    """Return a picture of one frame of a run, to be shown in a notebook or saved as a PNG.

    Args:
        result: as for `animate`.
        frame: its index; negative counts from the end.
        size: width and height in pixels, or their product for a shape that suits the view.
        **settings: as for `animate`.

    Raises:
        UserError: if there is nothing to draw, or a setting is unknown or not allowed.
    """
    return _drawing(result, "png", settings, size=size, frame=frame)


def _drawing(result: Any, kind: str, settings: dict[str, Any], **options: Any) -> Drawing:

    options["size"] = parse_size(options["size"]) if isinstance(options["size"], str) else check_size(options["size"])
    drawable = drawable_of(result, settings)
    with tempfile.TemporaryDirectory() as folder:
        file = render(**drawable, output=Path(folder) / f"drawing.{kind}", format=kind, **options)
        return Drawing(file.read_bytes(), kind, drawable["title"])


def draw_before_and_after(
    before: Outcome, after: Outcome, output: Path, captions: tuple[str, str], size: tuple[int, int] | int
) -> Path:
    """Draw the last frames of two runs beside each other, on the same color scale.

    Args:
        before: run with the initial parameters of an optimization.
        after: run with the optimized parameters.
        output: PNG file to write.
        captions: of the two pictures.
        size: of each picture, in pixels.

    Raises:
        UserError: if the file cannot be written.
    """
    pair = [parts_of(outcome.arrays, outcome.labels) for outcome in (before, after)]
    scenario = before.scenario
    return comparison(output, pair[0], pair[1], scenario.render, scenario.title, captions, size)


# A chart holds one number per member and diagnostic in memory; more points could not be distinguished in it.
MOST_MEMBERS = 1_000_000


def draw_sweep(result: "xarray.Dataset", scenario: Scenario, output: Path) -> Path:
    """Draw the final diagnostics and objectives of a sweep over the swept parameters, and return the file.

    Args:
        result: of the sweep.
        scenario: of the sweep.
        output: PNG file to write.

    Raises:
        UserError: if no number was swept, there are too many members, or the file cannot be written.
    """
    if (members := result["status"].size) > MOST_MEMBERS:
        raise UserError(
            f"a chart shows at most {MOST_MEMBERS} members, and the sweep has {members}; plot a part of its data set"
        )
    columns = {name: values for name, values in sweep_results.columns_of(result).items() if values.dtype.kind in "fiu"}
    numbers = {name: values.ravel() for name, values in columns.items() if len(np.unique(values)) > 1}
    numbers = numbers or {name: values.ravel() for name, values in columns.items()}
    if not numbers:
        raise UserError("no number was swept, so the results have no axis to be charted over")
    axes = result["status"].dims[:-1]
    words = [axis for axis in axes if result[axis].dtype.kind not in "fiu"]
    bad = sweep_results.is_failure(result["status"].values, sweep_results.failures_of(result)).reshape(
        -1, result.sizes["seed"]
    )
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
    units |= objective_units(scenario, {name: str(array.attrs.get("units", "")) for name, array in result.items()})
    indices = {}
    if str(result.attrs.get("points", "")).startswith(("Sobol", "Latin")):
        with np.errstate(all="ignore"):
            means = {name: np.where(bad, np.nan, array).mean(axis=1) for name, array in series.items()}
        indices = {name: sweep_results.first_order_indices(numbers, mean) for name, mean in means.items()}
    grid = len(axes) > 1 and not words
    leads = next(iter(series), None) in _objectives(result, scenario)
    return sweep_chart(output, SweepData(numbers, series, bad, units, grid, indices, scenario.title, leads))


def objective_units(scenario: Scenario, units: Mapping[Any, str]) -> dict[str, str]:
    """Return the units of the objectives that are a diagnostic, or the square of one, by name.

    Args:
        scenario: of the objectives.
        units: of diagnostics, by name.
    """
    found = {}
    for name, objective in scenario.objectives.items():
        unit = units.get(objective.quantity, "")
        if unit not in ("", "1"):
            simple = unit.isalpha()
            found[name] = (f"{unit}^2" if simple else f"({unit})^2") if objective.square else unit
    return found


def informative(result: "xarray.Dataset", scenario: Scenario) -> "dict[str, xarray.DataArray]":
    """Return the objectives and final diagnostics of the members that vary over the sweep, objectives first.

    A diagnostic that repeats a swept parameter is left out; if none varies, all are returned.

    Args:
        result: of the sweep.
        scenario: of the sweep.
    """
    swept = sweep_results.columns_of(result)
    final = {
        n: array.load()
        for n, array in sweep_results.final_numbers(result).items()
        if n.removeprefix("diagnosed_") not in swept
    }
    objectives = sweep_results.objective_arrays(result)
    measured = objectives | final
    varying = {name: array for name, array in measured.items() if np.ptp(np.asarray(array, float)) != 0} or measured
    first = _objectives(result, scenario)
    return dict(sorted(varying.items(), key=lambda item: item[0] not in first))


def _objectives(result: "xarray.Dataset", scenario: Scenario) -> list[str]:
    """Return the names in a sweep's result of the objectives, and of the diagnostics whose last value is one."""
    return [*sweep_results.objective_arrays(result), *(each.quantity for each in scenario.objectives.values())]
