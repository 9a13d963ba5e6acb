"""Charts of sweeps over one, two or more parameters."""

import dataclasses
import textwrap
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simkit.render.chart import (
    PANEL,
    SCALE,
    finite,
    frame_values,
    is_geometric,
    new_panels,
    note,
    panel_columns,
    use_log_scale,
    write,
)
from simkit.render.color import ColorScale, color_scale
from simkit.render.style import ACCENT, BODIES, FAINT, INK, MISSING, MUTED, drawable, fit, house_style, plain, with_unit

WIDE = (640, 250)
# Width of a parallel axis, and largest width of all panels side by side, before scaling; more axes than fit in WIDE
# make wider panels.
AXIS_WIDTH = 90
WIDEST = 2000
# Largest numbers of panels, and of lines in a panel of parallel coordinates.
MOST_PANELS = 24
MOST_LINES = 400
# Largest number of seeds drawn as points besides their quantiles.
MOST_POINTS = 12
# Largest numbers of letters in a line, and of lines, of the label of a parallel axis.
MOST_LETTERS = 24
MOST_LABEL_LINES = 3
_COLORS = "viridis"


@dataclasses.dataclass(frozen=True)
class SweepData:
    """Data of a sweep chart.

    Attributes:
        points: values of the swept parameters by name, (points,) each; at least one parameter.
        series: final diagnostics by name, (points, seeds); values that are not finite are ignored.
        failed: whether each member failed, (points, seeds) of booleans.
        units: units of parameters and diagnostics by name, as far as they are known.
        is_grid: whether the points are all combinations of the values.
        indices: first-order variance share by diagnostic and parameter; empty if unknown.
        title: title above the panels.
    """

    points: Mapping[str, np.ndarray]
    series: Mapping[str, np.ndarray]
    failed: np.ndarray
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)
    is_grid: bool = True
    indices: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    title: str = ""


def sweep_chart(path: Path, data: SweepData) -> Path:
    """Draw the diagnostics of a sweep against its parameters, one panel each.

    Over one parameter: the median over seeds as a line, with bands of the quartiles and of the 5 % and 95 % quantiles.
    Over two: a heat map of the mean over seeds. Over more: parallel coordinates, one line per point, colored by the
    mean over seeds, with the variance shares if known. Failed members are crosses, or broken lines. Of more than
    `MOST_PANELS` diagnostics the first are drawn, and a note says so.

    Args:
        path: PNG file to write.
        data: points, diagnostics and failures of the sweep.

    Raises:
        UserError: if there is nothing to draw or shapes disagree.
    """
    count = len(next(iter(data.points.values())))
    series = {name: finite(name, array, count, axes=2) for name, array in list(data.series.items())[:MOST_PANELS]}
    with house_style():
        draw = (_over_one, _over_two)[len(data.points) - 1] if len(data.points) < 3 else _over_many
        return write(path, draw(data, series))


def _over_one(data: SweepData, series: Mapping[str, np.ndarray]) -> Figure:
    """Draw medians and quantiles over seeds."""
    (name, values), *_ = data.points.items()
    order = np.argsort(values, kind="stable")
    x, bad = np.asarray(values, float)[order], data.failed[order]
    figure, panels = new_panels(list(series), data.title, _label(data, name), data.units)
    for axes, array in zip(panels, series.values(), strict=True):
        good = np.where(bad, np.nan, array[order])
        seeds = good.shape[1]
        if seeds > 1:
            low, quarter, median, three_quarters, high = _quantiles(good, (0.05, 0.25, 0.5, 0.75, 0.95))
            axes.fill_between(x, low, high, color=BODIES[0], alpha=0.12, lw=0)
            axes.fill_between(x, quarter, three_quarters, color=BODIES[0], alpha=0.25, lw=0)
            if seeds <= MOST_POINTS:
                axes.plot(x, good, "o", ms=3, mew=0, color=BODIES[0], alpha=0.3)
        else:
            median = good[:, 0]
        if bad.any():
            axes.plot(x, np.where(bad, array[order], np.nan), "x", ms=4, color=ACCENT)
            # A failed member without a finite value is marked at the bottom of the panel.
            no_value = (bad & ~np.isfinite(array[order])).any(axis=1)
            style = {"ms": 4, "color": ACCENT, "transform": axes.get_xaxis_transform(), "clip_on": False}
            # An empty line without clipping extends to the corner of the page for the layout, which makes the axes
            # collapse.
            if no_value.any():
                axes.plot(x[no_value], np.full(no_value.sum(), 0.02), "x", **style)
        axes.plot(x, median, color=BODIES[0], marker="o" if len(x) <= 60 else None, ms=3.5)
        if is_geometric(x):
            use_log_scale(axes, x)
        frame_values(axes, good if np.isfinite(good).any() else array[order])
    seeds = data.failed.shape[1]
    drawn = [f"median of {seeds} seeds, bands 25-75 % and 5-95 %"] * (seeds > 1 and not bad.all())
    note(figure, drawn + _crosses(bad) + _left_out(data))
    return figure


def _over_two(data: SweepData, series: Mapping[str, np.ndarray]) -> Figure:
    """Draw means over seeds as colors in the plane of two parameters."""
    (across, x), (up, y) = ((name, np.asarray(values, float)) for name, values in data.points.items())
    figure, panels = new_panels(list(series), data.title, _label(data, across), data.units, (PANEL[0], 230))
    bad, columns_of_page, bars = data.failed.any(axis=1), panel_columns(len(panels)), []
    for number, (axes, array) in enumerate(zip(panels, series.values(), strict=True)):
        axes.grid(False)
        mean = _mean(np.where(data.failed, np.nan, array))
        scale = color_scale(mean, None, None, _COLORS, signed=True)
        color = {"cmap": scale.colormap, "vmin": scale.low, "vmax": scale.high}
        if data.is_grid:
            columns, rows = np.unique(x), np.unique(y)
            cells = np.full((len(rows), len(columns)), np.nan)
            cells[np.searchsorted(rows, y), np.searchsorted(columns, x)] = mean
            axes.set_facecolor(MISSING)
            drawn = axes.pcolormesh(_edges(columns), _edges(rows), cells, rasterized=True, **color)
        else:
            drawn = axes.scatter(x, y, c=mean, s=14, lw=0, **color)
        if is_geometric(np.unique(x)):
            use_log_scale(axes, x)
        if is_geometric(np.unique(y)):
            axes.set_yscale("log")
        if bad.any():
            axes.plot(x[bad], y[bad], "x", ms=4, color=INK)
        if number % columns_of_page == 0:
            fit(axes.set_ylabel(drawable(_label(data, up))), 0.8 * SCALE * PANEL[1])
        bar = figure.colorbar(drawn, ax=axes, pad=0.02)
        bar.outline.set_visible(False)  # type: ignore[operator]
        bars.append(bar)
    seeds = data.failed.shape[1]
    note(figure, [f"mean of {seeds} seeds"] * (seeds > 1) + _crosses(bad) + _left_out(data))
    # The power of ten above a color bar is known once the figure is laid out; a title ends before it.
    figure.draw_without_rendering()
    for axes, bar in zip(panels, bars, strict=True):
        if bar.ax.yaxis.get_offset_text().get_text():
            fit(axes.set_title(axes.get_title(loc="left"), loc="left"), axes.get_window_extent().width)
    return figure


def _over_many(data: SweepData, series: Mapping[str, np.ndarray]) -> Figure:
    """Draw parallel coordinates: one line per point through the parameters to the mean over seeds."""
    names, count = list(data.points), len(data.failed)
    chosen = np.unique(np.linspace(0, count - 1, min(count, MOST_LINES)).round().astype(int))
    panel = (min(max(WIDE[0], AXIS_WIDTH * (len(names) + 1)), WIDEST), WIDE[1])
    side_by_side = min(1 if len(series) <= 3 else 2 if len(series) <= 12 else 3, WIDEST // panel[0])
    figure, panels = new_panels(list(series), data.title, "", data.units, panel, side_by_side, shares_x=False)
    # Of each axis the label, centered on it, has the width up to the next label, less a gap.
    width = 0.92 * SCALE * panel[0] / (len(names) + 1)
    labels = {name: _lines(figure, _label(data, name) + _scale(data.points[name]), width) for name in names}
    for axes, (key, array) in zip(panels, series.items(), strict=True):
        axes.grid(False)
        mean = _mean(np.where(data.failed, np.nan, array))
        columns = [*(np.asarray(data.points[name], float) for name in names), mean]
        heights = np.stack([_height(column) for column in columns], axis=1)
        scale = color_scale(mean, None, None, _COLORS)
        _draw_lines(axes, heights[chosen], mean[chosen], data.failed[chosen].all(axis=1), scale)
        for place, column in enumerate(columns):
            axes.axvline(place, color=FAINT, lw=0.8, zorder=0)
            if np.isfinite(column).any():
                for height, value in ((0, np.nanmin(column)), (1, np.nanmax(column))):
                    at = {"ha": "left", "va": "center", "size": 7.5, "color": MUTED, "textcoords": "offset points"}
                    behind = {"fc": axes.get_facecolor(), "lw": 0, "alpha": 0.8, "pad": 0.6}
                    axes.annotate(f"{value:.4g}", (place, height), (3, 0), bbox=behind, **at)
        shown = {name: f"\nS = {share:.2f}" for name, share in data.indices.get(key, {}).items()}
        shares = [label + shown.get(name, "") for name, label in labels.items()]
        axes.set_xticks(range(len(columns)), [*shares, _lines(figure, plain(key) + _scale(mean), width)])
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlim(-0.1, len(names) + 0.25)
    notes = ["S: share of the variance, first order"] * any(bool(found) for found in data.indices.values())
    notes += ["broken: failed"] * bool(data.failed.all(axis=1).any())
    note(figure, notes + [f"{len(chosen)} of {count} points"] * (len(chosen) < count) + _left_out(data))
    return figure


def _draw_lines(axes: Axes, heights: np.ndarray, mean: np.ndarray, failed: np.ndarray, scale: ColorScale) -> None:
    """Draw parallel coordinates in the order of their values, failed points last and without the last segment."""
    share = (mean - scale.low) / (scale.high - scale.low)
    for index in np.argsort(np.where(failed, np.inf, np.nan_to_num(share)), kind="stable"):
        if failed[index] or not np.isfinite(mean[index]):
            axes.plot(heights[index, :-1], color=ACCENT, lw=0.9, ls=(0, (3, 2)), alpha=0.8)
        else:
            axes.plot(heights[index], color=scale.colormap(share[index]), lw=0.8, alpha=0.6)


def _scale(values: np.ndarray) -> str:
    """Return the end of the label of a parallel axis, which says that it is logarithmic."""
    return " (log)" * is_geometric(np.unique(values[np.isfinite(values)]))


def _height(values: np.ndarray) -> np.ndarray:
    """Return values scaled to heights from 0 to 1, logarithmically if they are spaced geometrically."""
    shown = np.log(values) if _scale(values) else values
    if not np.isfinite(shown).any():
        return np.full(shown.shape, np.nan)
    low, high = np.nanmin(shown), np.nanmax(shown)
    return np.full(shown.shape, 0.5) if high == low else (shown - low) / (high - low)


def _label(data: SweepData, name: str) -> str:
    return with_unit(plain(name), data.units.get(name, "1"))


def _lines(figure: Figure, label: str, width: float) -> str:
    """Return a label of a parallel axis in lines of at most ``width`` pixels, shortened to `MOST_LABEL_LINES`."""
    text = figure.text(0, 0, "", size=rcParams["xtick.labelsize"])
    for letters in range(MOST_LETTERS, 0, -1):
        lines = textwrap.wrap(label, letters, max_lines=MOST_LABEL_LINES, placeholder="\N{HORIZONTAL ELLIPSIS}")
        text.set_text("\n".join(drawable(line) for line in lines))
        if text.get_window_extent().width <= width:
            break
    text.remove()
    return text.get_text()


def _left_out(data: SweepData) -> list[str]:
    count = len(data.series)
    return [f"{MOST_PANELS} of {count} quantities"] * (count > MOST_PANELS)


def _crosses(bad: np.ndarray) -> list[str]:
    return ["x: failed"] * bool(bad.any())


def _edges(values: np.ndarray) -> np.ndarray:
    """Return the edges of cells around values, at midpoints, in the logarithm if values are spaced geometrically."""
    if len(values) == 1:
        half = 0.5 * abs(values[0]) or 0.5
        return np.array([values[0] - half, values[0] + half])
    inner = np.log(values) if is_geometric(values) else values
    middle = (inner[1:] + inner[:-1]) / 2
    edges = np.concatenate([[2 * inner[0] - middle[0]], middle, [2 * inner[-1] - middle[-1]]])
    return np.exp(edges) if is_geometric(values) else edges


def _mean(data: np.ndarray) -> np.ndarray:
    """Return the mean over seeds, ignoring NaN, (points,)."""
    valid = ~np.isnan(data)
    count = valid.sum(axis=1)
    return np.where(count, np.where(valid, data, 0).sum(axis=1) / np.maximum(count, 1), np.nan)


def _quantiles(data: np.ndarray, fractions: tuple[float, ...]) -> np.ndarray:
    """Return quantiles over seeds, ignoring NaN, (fractions, points)."""
    quantiles = np.full((len(fractions), len(data)), np.nan)
    has_values = np.isfinite(data).any(axis=1)
    if has_values.any():
        quantiles[:, has_values] = np.nanquantile(data[has_values], fractions, axis=1)
    return quantiles
