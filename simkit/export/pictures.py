"""Pictures and animations of runs, sweeps and optimizations, in memory and as files."""

import base64
import dataclasses
import html
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.core.settings import whole, word
from simkit.errors import UserError
from simkit.export.markup import framed, line
from simkit.jobs import sweep_results
from simkit.jobs.job import Prepared
from simkit.jobs.runs import Outcome
from simkit.jobs.stored_jobs import open_run
from simkit.render.animate import FORMATS, check_size, parse_size, render
from simkit.render.chart import SweepData, comparison, history_chart, sweep_chart
from simkit.render.selection import choose_pace
from simkit.render.video import write_gif, write_png
from simkit.render.views import DEFAULT_PIXELS, Clip, image_of, new_painter
from simkit.scenario.checks import LONGEST_LABEL
from simkit.scenario.drawing import CLOCKS, Frame, likely_view, render_settings, view_of
from simkit.scenario.scenario import RenderSettings, Scenario
from simkit.storage import datasets
from simkit.storage.datasets import ALONG_X, ALONG_Y
from simkit.storage.files import make_folder, write_bytes

if TYPE_CHECKING:
    import xarray

# Characters of a title, as of a scenario; pictures show it in one line.
LONGEST_TITLE = 120


def drawable_of(result: Any, changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `simkit.render.animate.render` for a result: frames, units, settings, title and others.

    Args:
        result: a data set of a run, sweep or optimization, its folder, an outcome, ``(frames, diagnostics)``, or
            ``(state, frames, diagnostics)``.
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
        # Defaults are left out: some keys have an effect only beside others.
        defaults = {name: setting.default for name, setting in view_of(stored.view).keys.items()}
        table = {key: value for key, value in stored.table().items() if key not in defaults or value != defaults[key]}
        if quantity not in (None, stored.quantity):
            # Label, unit and limits of the stored quantity do not apply to another one.
            table = {key: value for key, value in table.items() if key not in ("label", "unit", "limits")}
            table |= {"unit": units.get(quantity) or "1"}
    settings = render_settings(table | {key: value for key, value in changed.items() if key != "title"})
    return {**parts, "settings": settings, "title": line(str(changed.get("title", title)), LONGEST_TITLE)}


type _Run = tuple[dict[str, Any], RenderSettings | None, str]


def _parts(result: Any) -> _Run:
    """Return ``(arrays and units, settings or None, title)`` of a result."""
    import xarray

    if isinstance(result, Outcome):
        return _of_outcome(result)
    result = opened(result)
    if isinstance(result, xarray.Dataset):
        origin = getattr(result, "origin", None)
        if origin is None:
            return _of_dataset(result)
        if origin.report == "derivative":
            raise UserError(f"a derivative of {origin.scenario.name} has no frames; draw a run, sweep or optimization")
        if origin.report in ("sweep", "starts"):
            return _of_members(result, origin.scenario)
        return _of_outcome(origin.result, origin.objective)
    if isinstance(result, tuple) and len(result) in (2, 3) and all(isinstance(part, Mapping) for part in result[-2:]):
        frames, diagnostics = ({name: np.asarray(array) for name, array in part.items()} for part in result[-2:])
        return {"frames": frames, "diagnostics": diagnostics, "coordinates": {}, "units": {}}, None, "Simulation"
    raise UserError(
        f"{type(result).__name__} cannot be drawn; give what simkit.run, simkit.sweep or simkit.optimize returned, the "
        "folder of one, or (frames, diagnostics)"
    )


def opened(result: Any) -> Any:
    """Return the stored result of a job, given by its folder; anything else as it is."""
    return open_run(result) if isinstance(result, str | Path) else result


def _of_outcome(outcome: Outcome, objective: str = "") -> _Run:
    settings, parts = outcome.scenario.render, parts_of(outcome.arrays, outcome.labels)
    if objective:  # the frames of an optimization are iterations, not those of the view
        settings = render_settings({"view": "chart", "quantity": "loss", "label": objective[:LONGEST_LABEL]})
    return parts, settings, outcome.scenario.title


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


def _of_members(result: "xarray.Dataset", scenario: Scenario) -> _Run:
    """Return the parts of a sweep: the last frames of its members along the first axis, the first of all others."""
    sizes = {str(name): size for name, size in result["status"].sizes.items()}
    axis = next((name for name, size in sizes.items() if size > 1), next(iter(sizes)))
    rest = dict.fromkeys(sizes.keys() - {axis}, 0) | ({"frame": -1} if "frame" in result.dims else {})
    parts, _, _ = _of_dataset(result.isel(rest), axis)
    swept = result[axis].values if axis in result.coords else np.arange(sizes[axis])
    frames = {name.removeprefix("final_"): array for name, array in parts["frames"].items()}
    if not frames:
        raise UserError("the sweep has kept no frames of its members; simkit.picture charts its numbers")
    diagnostics = {axis: np.asarray(swept)} if swept.dtype.kind in "fiu" else {}
    return {**parts, "frames": frames, "diagnostics": diagnostics}, scenario.render, scenario.title


def _of_dataset(dataset: "xarray.Dataset", clock: str | None = None) -> _Run:
    """Return the parts of a run's data set: arrays along its clock, fields transposed back to x before y."""
    known = clock is not None
    clock = clock or next((name for name in (*CLOCKS, "frame") if name in dataset.dims), None)
    if clock is None or ("seed" in dataset.dims and not known):
        raise UserError(
            "the data set is not that of a run: it has no axis time, iteration or frame, or several seeds; draw a "
            "whole sweep, or what simkit.run returns for one member"
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
        kind: ``"gif"``, ``"webp"``, ``"mp4"``, ``"png"`` or ``"html"``.
        title: what it shows.
        redraw: function that returns the bytes of another kind; ``None`` for a chart, which is a PNG.
    """

    data: bytes
    kind: str
    title: str
    redraw: Callable[[str], bytes] | None = dataclasses.field(default=None, compare=False)

    def save(self, path: Path | str) -> Path:
        """Write the drawing to a file, in the format of its ending, and return its path.

        Args:
            path: ending in ``.gif``, ``.webp``, ``.mp4`` or ``.png``; of an animation the picture is that of its last
                frame.

        Raises:
            UserError: if there is no such format of the drawing, or the file cannot be written.
        """
        path = Path(path)
        kinds, kind = FORMATS if self.redraw else (self.kind,), path.suffix[1:].lower()
        if kind not in kinds:
            names = " or ".join(f"{path.stem}.{each}" for each in kinds)
            raise UserError(f"{path} cannot hold this drawing, which is a {self.kind}; name it {names}")
        make_folder(path.parent)
        write_bytes(path, self.redraw(kind) if self.redraw and kind != self.kind else self.data)
        return path

    def _repr_html_(self) -> str:
        if self.kind == "html":
            return framed(self.data, self.title)
        encoded = base64.b64encode(self.data).decode()
        if self.kind == "mp4":
            return f'<video controls loop src="data:video/mp4;base64,{encoded}"></video>'
        return f'<img src="data:image/{self.kind};base64,{encoded}" alt="{html.escape(self.title, quote=True)}">'

    def __repr__(self) -> str:
        """Return one line, without the bytes."""
        return f"<Drawing of {self.title}: {self.kind}, {len(self.data)} bytes; save(path) writes it>"


# Default number of frames of an animation, and the fewest worth one.
FRAMES, FEWEST = 60, 8


def play(
    result: Any, maximum_frames: int | None = None, three: Path | None = None, **settings: Any
) -> "tuple[Drawing, int]":
    """Return the player of a run, a page that shows it in space, and its number of frames.

    Args:
        result: as for `animate`.
        maximum_frames: largest number of frames.
        three: folder of the files of three.js; ``None`` for npm's.
        **settings: as for `animate`.

    Raises:
        UserError: if there is nothing to turn around, a setting is unknown or not allowed, or three.js is not found.
    """
    from simkit.export.player import playing

    drawable = drawable_of(result, settings)
    clip = Clip(**drawable)
    with tempfile.TemporaryDirectory() as folder:
        last = render(**drawable, output=Path(folder) / "last.png", format="png", size=480 * 270).read_bytes()
    made = playing.player(clip, maximum_frames or playing.MOST_FRAMES, last, three)
    return Drawing(made.page, "html", drawable["title"]), made.frames


def animate(
    result: Any, *, size: tuple[int, int] | int = 480 * 270, frames: int = FRAMES, kind: str = "gif", **settings: Any
) -> Drawing:
    """Return the animation of a run, to be shown in a notebook or saved; of a sweep that of its members' last frames.

    Args:
        result: the data set of `simkit.run`, `simkit.sweep` or `simkit.optimize`, or a part of a run in time; the
            folder of one; or ``(frames, diagnostics)`` of `simkit.core.rollout.trajectory`.
        size: width and height in pixels, or their product for a shape that suits the view.
        frames: approximate number of frames that a longer run is thinned to.
        kind: ``"gif"``, ``"webp"``, ``"mp4"``, or ``"html"`` for a page to turn the run around and step through it, see
            [players](../runs.md#players).
        **settings: ``view``, ``quantity``, ``label``, ``unit``, ``colormap``, ``limits``, ``frames_per_second``,
            ``title`` and others of a scenario's ``[render]``, which replace those of the run.

    Raises:
        UserError: if there is nothing to draw, or a setting is unknown or not allowed.

    Example:
        >>> run = simkit.run("bouncing_ball")
        >>> film = simkit.animate(run, frames=20, size=(160, 120), title="Thrown")
        >>> film.save("ball.gif").stat().st_size < 20_000
        True
    """
    word("animation", (*FORMATS[:-1], "html")).check(kind, "kind")
    whole("number of frames", low=1).check(frames, "frames")
    if kind == "html":
        return play(result, frames, **settings)[0]
    return _drawing(result, kind, settings, size=size, maximum_frames=frames)


def picture(
    result: Any, *, frame: int | None = None, size: tuple[int, int] | int | None = None, **settings: Any
) -> Drawing:
    """Return a picture of one frame of a run, or the chart of a sweep or optimization, to be shown or saved as a PNG.

    Args:
        result: as for `animate`. Objectives and final diagnostics of a sweep are drawn over the swept parameters, loss
            and parameters of an optimization over its iterations.
        frame: index of the frame of a run; negative counts from the end, and ``None`` is the last.
        size: width and height in pixels, or their product for a shape that suits the view; ``None`` is 640 x 360.
        **settings: as for `animate`; an optimization is then drawn as one curve.

    Raises:
        UserError: if there is nothing to draw, or a setting is unknown or not allowed.

    Example:
        >>> run = simkit.run("bouncing_ball")
        >>> simkit.picture(run, frame=0, size=(160, 120)).save("start.png").name
        'start.png'
    """
    result = opened(result)
    origin = getattr(result, "origin", None)
    named = [*(["frame"] * (frame is not None)), *(["size"] * (size is not None)), *settings]
    if origin and origin.report in ("sweep", "starts"):
        if named:
            raise UserError(
                f"{named[0]} has no effect on the chart of a sweep; leave it out, or draw what simkit.run returns for "
                "one member"
            )
        return chart_of_sweep(result)
    if origin and origin.report == "optimization" and not named:
        return chart_of_iterations(result)
    size = DEFAULT_PIXELS if size is None else size
    if frame is not None:
        whole("index of a frame", low=-(2**31)).check(frame, "frame")
    return _drawing(result, "png", settings, size=size, frame=-1 if frame is None else frame)


def chart_of_sweep(result: "xarray.Dataset", panels: int | None = None) -> Drawing:
    """Return the chart of a sweep.

    Args:
        result: the whole data set of a sweep.
        panels: largest number of panels; ``None`` for that of `draw_sweep`.

    Raises:
        UserError: as `draw_sweep`.
    """
    scenario: Scenario = result.origin.scenario
    if panels is not None:
        kept = {*list(informative(result, scenario))[:panels], "status"}
        result = result.drop_vars([name for name in result.data_vars if name not in kept])
    return _chart(lambda file: draw_sweep(result, scenario, file), scenario.title)


def chart_of_iterations(result: "xarray.Dataset") -> Drawing:
    """Return the chart of loss and parameters of an optimization over its iterations.

    Args:
        result: the whole data set of an optimization.
    """
    origin = result.origin
    iterations = result["iteration"].values
    curves = {origin.objective: result["loss"].values} | {
        name: result[name].values for name in origin.wrt if name in result and result[name].ndim == 1
    }
    title = origin.scenario.title
    return _chart(lambda file: history_chart(file, "iteration", iterations, curves, title), title)


def _chart(draw: Callable[[Path], Path], title: str) -> Drawing:
    with tempfile.TemporaryDirectory() as folder:
        return Drawing(draw(Path(folder) / "chart.png").read_bytes(), "png", title)


def _drawing(result: Any, kind: str, settings: dict[str, Any], **options: Any) -> Drawing:
    options["size"] = parse_size(options["size"]) if isinstance(options["size"], str) else check_size(options["size"])
    drawable = drawable_of(result, settings)

    def redraw(kind: str) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            return render(**drawable, output=Path(folder) / f"drawing.{kind}", format=kind, **options).read_bytes()

    return Drawing(redraw(kind), kind, drawable["title"], redraw)


def film_within(result: Any, seconds: float, size: int) -> tuple[Drawing, Drawing | None]:
    """Return a film of a run with as many frames as can be drawn in a time, and the picture of its last frame.

    Args:
        result: as for `animate`.
        seconds: for drawing, of which the first two frames measure the speed.
        size: number of pixels.

    Returns:
        Film and picture; the picture and ``None`` where there is time for fewer than `FEWEST` frames, or where the view
        is a chart, whose last picture shows all.

    Raises:
        UserError: if there is nothing to draw.
    """
    began, drawable = time.monotonic(), drawable_of(result, {})
    painter, title, settings = new_painter(**drawable, size=size), drawable["title"], drawable["settings"]
    count = len(painter)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "drawing"
        write_png(file, image_of(painter, count - 1))
        still = Drawing(file.read_bytes(), "png", title)
        if count < FEWEST or view_of(settings.view).source == "diagnosed":
            return still, None
        drawn = time.monotonic()
        image_of(painter, 0)
        now = time.monotonic()
        # Compressing a frame takes about as long as drawing it.
        room = int((began + seconds - now) / (2 * (now - drawn)))
        if room < FEWEST:
            return still, None
        wanted, rate = min(FRAMES, count), settings.frames_per_second
        frames, diagnostics = drawable["frames"], drawable["diagnostics"]
        pace = choose_pace(frames, diagnostics, settings.quantity, rate, min(wanted, room))
        images = []
        for index in pace.indices:
            images.append(image_of(painter, int(index)))
            if time.monotonic() > began + seconds:
                return still, None
        # Fewer frames take as long as all would.
        write_gif(file, images, pace.frames_per_second * min(1.0, room / wanted), pace.hold)
        return Drawing(file.read_bytes(), "gif", title), still


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
    by_name = {}
    for name, objective in scenario.objectives.items():
        unit = units.get(objective.quantity, "")
        if unit not in ("", "1"):
            simple = unit.isalpha()
            by_name[name] = (f"{unit}^2" if simple else f"({unit})^2") if objective.square else unit
    return by_name


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
