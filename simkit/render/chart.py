"""Charts of diagnostics over a parameter or over time, and comparisons of a run before and after."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from simkit.errors import UserError
from simkit.render.figure import USUAL, Size, drawn, new_figure, scale_of
from simkit.render.labels import drawable, fit, plain, with_unit
from simkit.render.style import BODIES, INK, MUTED, house_style
from simkit.render.video import write_png
from simkit.render.views import new_painter
from simkit.scenario.sections import RenderSettings

# Pixels before enlargement.
_PANEL = (300, 210)
_TITLE = 30
_SCALE = 1.6
_COLUMNS = 3
_CAPTION = 30
_GAP = 10


def sweep_chart(
    path: Path,
    name: str,
    unit: str,
    values: np.ndarray,
    series: Mapping[str, np.ndarray],
    title: str = "",
    failed: np.ndarray | None = None,
    units: Mapping[str, str] | None = None,
    is_curve: bool = True,
) -> Path:
    """Draw one small chart per diagnostic against a swept parameter: every seed as a point, their mean as a line.

    Members that failed are crosses, and left out of the mean.

    Args:
        path: PNG file to write.
        name: the swept parameter.
        unit: its unit, ``"1"`` for none.
        values: its values (points,); geometric spacing gets a logarithmic axis.
        series: diagnostics by name, (points, seeds); values that are not finite are left out.
        title: shown above; empty for none.
        failed: booleans (points, seeds); ``None`` if no member failed.
        units: of the diagnostics by name, as far as they are known.
        is_curve: whether means are joined by a line; not where other parameters change from point to point, too.

    Raises:
        UserError: if there is nothing to draw or shapes disagree.
    """
    values = np.asarray(values, dtype=float)
    order = np.argsort(values, kind="stable")
    with house_style():
        figure, panels = _panels(list(series), title, with_unit(plain(name), unit), units or {})
        for axes, (key, array) in zip(panels, series.items(), strict=True):
            data = _finite(key, array, len(values), axes=2)[order]
            seeds = data.shape[1]
            bad = np.zeros(data.shape, bool) if failed is None else np.asarray(failed)[order]
            good = np.where(bad, np.nan, data)
            if seeds > 1:
                axes.plot(values[order], good, "o", ms=3, mew=0, color=BODIES[0], alpha=0.3)
            if bad.any():
                axes.plot(values[order], np.where(bad, data, np.nan), "x", ms=4, color=BODIES[1])
            axes.plot(values[order], _mean(good), color=BODIES[0], marker="o", ms=3.5, ls="-" if is_curve else "")
            if is_geometric(values):
                _space_by_factors(axes, values)
            _frame_values(axes, data)
            notes = [f"{'line' if is_curve else 'dark'}: mean of {seeds} seeds"] * (seeds > 1) + ["x: failed"] * bool(
                bad.any()
            )
            if notes and axes is panels[0]:
                axes.set_title(", ".join(notes), loc="right", color=MUTED, size=7.5)
        return _write(path, figure)


def history_chart(path: Path, x_label: str, x: np.ndarray, series: Mapping[str, np.ndarray], title: str = "") -> Path:
    """Draw one small chart per quantity over time or iterations.

    Args:
        path: PNG file to write.
        x_label: name of the horizontal axis.
        x: its values (points,).
        series: quantities by name, (points,); positive ones that span over three decades get a logarithmic axis.
        title: shown above; empty for none.

    Raises:
        UserError: if there is nothing to draw or shapes disagree.
    """
    x = np.asarray(x, dtype=float)
    with house_style():
        figure, panels = _panels(list(series), title, x_label, {})
        for axes, (key, values) in zip(panels, series.items(), strict=True):
            data = _finite(key, values, len(x), axes=1)
            axes.plot(x, data, color=BODIES[0], marker="o" if len(x) <= 40 else None, ms=3)
            _frame_values(axes, data)
        return _write(path, figure)


def comparison(
    path: Path,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    settings: RenderSettings,
    title: str,
    captions: tuple[str, str],
    size: Size = USUAL,
    frame: int = -1,
) -> Path:
    """Draw one frame of each of two runs under its caption, with the same colors and window for both.

    Args:
        path: PNG file to write.
        before: the first run: its ``frames``, ``diagnostics``, ``coordinates`` and ``units``, as for ``render``.
        after: the second run.
        settings: what to draw.
        title: shown in both pictures.
        captions: a line for each.
        size: width and height of each picture in pixels, or their product; wide ones are stacked, others stand side
            by side.
        frame: which frame; negative ones count from the end of each run.

    Raises:
        UserError: if a run has no such frame or lacks what the view needs.
    """
    pictures = []
    for run, other in ((before, after), (after, before)):
        if pictures:
            size = pictures[0].shape[1::-1]
        painter = new_painter(**run, title=title, settings=settings, size=size, alongside=[other["frames"]])
        if not -len(painter) <= frame < len(painter):
            raise UserError(f"frame {frame} is out of range; the run has frames 0 to {len(painter) - 1}")
        pictures.append(painter.image(frame % len(painter)))
    height, width = pictures[0].shape[:2]
    scale = scale_of((width, height))
    panels = [
        np.concatenate([_caption(caption, width, scale), image])
        for caption, image in zip(captions, pictures, strict=True)
    ]
    # Two 2:1 pictures make a square when stacked and a narrow band when not.
    axis = 0 if width > 2 * height else 1
    gap = round(_GAP * scale)
    space = np.full((gap, width, 3) if axis == 0 else (len(panels[0]), gap, 3), 255, np.uint8)
    write_png(path, np.concatenate([panels[0], space, panels[1]], axis=axis))
    return path


def is_geometric(values: np.ndarray) -> bool:
    """Return whether positive ``values`` are spaced by a factor, over a range wide enough to tell that from a step."""
    values = np.sort(np.asarray(values, dtype=float))
    if len(values) < 3 or values[0] <= 0 or values[-1] < 3 * values[0]:
        return False
    steps, factors = np.diff(values), np.diff(np.log(values))
    return bool(np.std(factors) / np.mean(factors) < np.std(steps) / np.mean(steps))


def _space_by_factors(axes: Axes, values: np.ndarray) -> None:
    axes.set_xscale("log")
    if values.max() < 30 * values.min():
        # Powers of ten alone would leave such an axis with hardly a number.
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _panels(names: list[str], title: str, x_label: str, units: Mapping[str, str]) -> tuple[Figure, list[Axes]]:
    if not names:
        raise UserError("there is nothing to chart; name at least one diagnostic")
    columns = len(names) if len(names) <= _COLUMNS else 2 if len(names) == 4 else _COLUMNS
    rows = -(-len(names) // columns)
    size = (columns * _PANEL[0], rows * _PANEL[1] + (_TITLE if title else 0))
    figure = new_figure((round(size[0] * _SCALE), round(size[1] * _SCALE)), _SCALE)
    figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.08)
    if title:
        fit(figure.suptitle(drawable(title), x=0.02, ha="left", weight="bold", size=12), 0.96 * _SCALE * size[0])
    panels, width = [], 0.8 * _SCALE * _PANEL[0]
    for place, name in enumerate(names):
        axes = figure.add_subplot(rows, columns, place + 1, sharex=panels[0] if panels else None)
        fit(axes.set_title(drawable(with_unit(plain(name), units.get(name, ""))), loc="left"), width)
        axes.grid(True)
        if place + columns >= len(names):
            fit(axes.set_xlabel(drawable(x_label)), width)
        panels.append(axes)
    return figure, panels


def _finite(name: str, values: np.ndarray, count: int, axes: int) -> np.ndarray:
    data = np.asarray(values, dtype=float)
    if data.ndim != axes or len(data) != count:
        wanted = f"({count}, seeds)" if axes == 2 else f"({count},)"
        raise UserError(f"'{name}' has shape {data.shape}; the chart needs {wanted}")
    return np.where(np.isfinite(data), data, np.nan)


def _mean(data: np.ndarray) -> np.ndarray:
    """Return the mean over seeds, leaving out those that are not a number."""
    valid = ~np.isnan(data)
    count = valid.sum(axis=1)
    return np.where(count, np.where(valid, data, 0).sum(axis=1) / np.maximum(count, 1), np.nan)


def _frame_values(axes: Axes, data: np.ndarray) -> None:
    data = data[~np.isnan(data)]
    if not data.size:
        axes.text(0.5, 0.5, "no finite values", transform=axes.transAxes, ha="center", va="center", color=MUTED)
        return
    low, high = data.min(), data.max()
    if low > 0 and high > 1e3 * low:
        axes.set_yscale("log")
    elif high - low <= 1e-6 * max(abs(low), abs(high)):
        # Round-off around a constant is not a curve.
        spread = 0.1 * max(abs(low), abs(high)) or 1.0
        axes.set_ylim(low - spread, high + spread)


def _write(path: Path, figure: Figure) -> Path:
    write_png(path, drawn(figure))
    return path


def _caption(caption: str, width: int, scale: float) -> np.ndarray:
    height = max(round(_CAPTION * scale), 1)
    with house_style():
        figure = new_figure((width, height), scale)
        text = figure.text(0.5, 0.35, drawable(caption), ha="center", va="center", size=11, color=INK)
        fit(text, 0.94 * width)
        return drawn(figure)
