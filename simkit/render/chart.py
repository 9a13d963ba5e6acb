"""Charts: diagnostics over time, comparisons before and after, and sweeps over one, two or more parameters."""

import dataclasses
import textwrap
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from simkit.core.arguments import check_shape
from simkit.errors import UserError
from simkit.render.color import ColorScale, color_scale
from simkit.render.field import cell_edges
from simkit.render.page import PADDING, Page, drawn, new_figure, scale_of
from simkit.render.selection import observed
from simkit.render.style import (
    ACCENT,
    BODIES,
    FAINT,
    INK,
    MISSING,
    MUTED,
    drawable,
    fit,
    house_style,
    plain,
    with_unit,
)
from simkit.render.video import write_png
from simkit.render.views import DEFAULT_PIXELS, Clip, Size, image_of, new_painter
from simkit.scenario.scenario import RenderSettings

# Sizes of a panel and height of the title in pixels, before scaling by SCALE; height of the leading panel relative to
# that of others.
PANEL = (300, 210)
LEADING = 1.4
_LEADING_TITLE: dict[str, Any] = {"weight": "bold", "size": 11}
TITLE = 30
SCALE = 1.6


def is_geometric(values: np.ndarray) -> bool:
    """Return whether positive ``values`` are spaced geometrically rather than evenly, over a factor of at least 3."""
    values = np.sort(np.asarray(values, dtype=float))
    if len(values) < 3 or values[0] <= 0 or values[-1] < 3 * values[0]:
        return False
    steps, factors = np.diff(values), np.diff(np.log(values))
    return bool(np.std(factors) / np.mean(factors) < np.std(steps) / np.mean(steps))


def use_log_scale(axes: Axes, values: np.ndarray) -> None:
    """Set a logarithmic horizontal scale with enough tick labels.

    Args:
        axes: axes of the panel.
        values: geometrically spaced values along the horizontal axis.
    """
    axes.set_xscale("log")
    if values.max() < 30 * values.min():
        # Powers of ten alone would give such an axis one or two labels.
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


# Largest number of values that are all ticks, and width of a letter of their labels as a fraction of the axis.
MOST_TICKS, LETTER = 8, 0.04


def tick_values(axes: Axes, values: np.ndarray) -> None:
    """Set the horizontal ticks at the values themselves where these are few and apart; whole numbers get whole ticks.

    Args:
        axes: axes of the panel, whose horizontal scale is set.
        values: finite values along it.
    """
    places = np.unique(values)
    heights = np.log(places) if axes.get_xscale() == "log" else places
    letters = 1 + max(len(f"{place:.4g}") for place in places)
    if 1 < len(places) <= MOST_TICKS and np.diff(heights).min() >= LETTER * letters * np.ptp(heights):
        axes.xaxis.set_major_locator(FixedLocator(places.tolist()))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:.4g}".replace("-", "\u2212")))
        axes.xaxis.set_minor_locator(NullLocator())
    elif axes.get_xscale() == "linear" and np.array_equal(places, np.rint(places)):
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))


def panel_columns(count: int) -> int:
    """Return the number of panels side by side, up to four.

    Args:
        count: number of panels.
    """
    return next((columns for most, columns in ((3, count), (4, 2), (9, 3)) if count <= most), 4)


def new_panels(
    names: list[str],
    title: str,
    x_label: str,
    units: Mapping[str, str],
    panel: tuple[int, int] = PANEL,
    columns: int | None = None,
    shares_x: bool = True,
    leads: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each quantity; of three or more the first may lead, above all others.

    Args:
        names: names of the quantities.
        title: title of the figure; empty for none.
        x_label: label of the horizontal axes.
        units: units of the quantities by name, as far as they are known.
        panel: width and height of a panel in pixels, before scaling.
        columns: number of panels side by side; ``None`` chooses it, see `panel_columns`.
        shares_x: whether the panels share one horizontal axis.
        leads: whether the first quantity is an objective, whose panel leads.

    Raises:
        UserError: if there is no quantity.
    """
    if not names:
        raise UserError("there is nothing to chart; name at least one diagnostic")
    first = int(leads and len(names) > 2)
    columns = columns or panel_columns(len(names) - first)
    rows = -(-(len(names) - first) // columns)
    heights = [LEADING] * first + [1.0] * rows
    size = (columns * panel[0], round(sum(heights) * panel[1]) + (TITLE if title else 0))
    figure = new_figure((round(size[0] * SCALE), round(size[1] * SCALE)), SCALE)
    figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.08)
    if title:
        fit(figure.suptitle(drawable(title), x=0.02, ha="left", weight="bold", size=12), 0.96 * SCALE * size[0])
    # Titles begin at the left of the axes, which the numbers along them move by up to a quarter of a panel.
    panels, grid = [], figure.add_gridspec(len(heights), columns, height_ratios=heights)
    for number, name in enumerate(names):
        is_leading = number < first
        row, column = divmod(number - first, columns)
        cell = grid[0, :] if is_leading else grid[row + first, column]
        axes = figure.add_subplot(cell, sharex=panels[0] if panels and shares_x else None)
        width = 0.74 * SCALE * panel[0] * (columns if is_leading else 1)
        style = _LEADING_TITLE if leads and number == 0 else {}
        fit(axes.set_title(drawable(with_unit(plain(name), units.get(name, ""))), loc="left", **style), width)
        axes.grid(True)
        if is_leading or number + columns >= len(names):
            fit(axes.set_xlabel(drawable(x_label)), width)
        panels.append(axes)
    return figure, panels


def note(figure: Figure, words: list[str]) -> None:
    """Write a legend of the marks below the panels, in as many lines as it needs.

    Args:
        figure: figure of the panels.
        words: entries of the legend.
    """
    if not words:
        return
    # The layout keeps a place for this label, unlike for other text of a figure.
    text = figure.supxlabel("; ".join(words), x=0.985, ha="right", size=7, color=MUTED)
    if text.get_window_extent().width > 0.96 * figure.bbox.width:
        text.set_text("\n".join(words))


def finite(name: str, values: np.ndarray, count: int, axes: int) -> np.ndarray:
    """Return values with NaN for those that are not finite.

    Args:
        name: name of the quantity, for the error.
        values: its values.
        count: required length of the first axis.
        axes: required number of axes, 1 or 2.

    Raises:
        UserError: if they have another shape.
    """
    data = np.asarray(values, dtype=float)
    shape = (count, None)[:axes]
    check_shape(f"'{name}'", data, f"({count}, seeds)" if axes == 2 else f"({count},)", shape)
    return np.where(np.isfinite(data), data, np.nan)


def frame_values(axes: Axes, data: np.ndarray) -> None:
    """Set the vertical scale of a panel for its values, or write that there is no finite value.

    Args:
        axes: axes of the panel.
        data: values drawn in it; NaN is ignored.
    """
    data = data[~np.isnan(data)]
    if not data.size:
        axes.text(0.5, 0.5, "no finite values", transform=axes.transAxes, ha="center", va="center", color=MUTED)
        return
    low, high = data.min(), data.max()
    if low > 0 and high > 1e3 * low:
        axes.set_yscale("log")
    elif (limits := _around_constant(low, high)) is not None:
        axes.set_ylim(*limits)


def write(path: Path, figure: Figure) -> Path:
    """Write a figure as PNG, and return the file."""
    write_png(path, drawn(figure))
    return path


# Margin above and below the line, as a fraction of its range.
_MARGIN = 0.08
# Left, bottom, right and top of the axes, as fractions of the page.
_AXES = (0.12, 0.15, 0.965, 0.85)


class LinePainter(Page):
    """Draws a diagnostic over time, iterations or frames up to the present frame, and the rest of the curve pale.

    Args:
        clip: its diagnostics hold ``settings.quantity`` (frames,), and ``time`` or ``iteration``.
        size: width and height in pixels; or their product, for a page of 16:9.

    Raises:
        UserError: if there is no such diagnostic, or it is not one number per frame.
    """

    def __init__(self, clip: Clip, size: Size) -> None:
        diagnostics, settings = clip.diagnostics, clip.settings
        if settings.quantity not in diagnostics and not any(np.ndim(array) == 1 for array in diagnostics.values()):
            raise UserError(
                "there is nothing to draw: no number is diagnosed, and no field, particles or bodies are observed; "
                "add a number with simulation.with_quantities(NAME=function of (state, params))"
            )
        values = observed(diagnostics, settings.quantity, axes=1).astype(float)
        self._y = np.where(np.isfinite(values), values, np.nan)
        clock = next((name for name in ("time", "iteration") if name in diagnostics), "frame")
        self._x = np.asarray(diagnostics.get(clock, np.arange(len(values))), float)
        width, height = size = page_of_shape(size) if isinstance(size, int) else size
        with house_style():
            super().__init__(clip, size, scale_of(size))
            left, bottom, right, top = _AXES
            self.axes.set_position((left, bottom, right - left, top - bottom))
            self.axes.grid(True)
            self.axes.set(xlim=limits_of(self._x, 0.0), ylim=settings.limits or limits_of(self._y, _MARGIN))
            fit(self.axes.set_xlabel(drawable(with_unit(clock, clip.units.get(clock, "")))), (right - left) * width)
            fit(self.axes.set_ylabel(drawable(with_unit(settings.label, settings.unit))), (top - bottom) * height)
            self.axes.plot(self._x, self._y, color=MUTED, alpha=0.3, lw=1.0)
            (self._line,) = self.axes.plot([], [], color=BODIES[0], animated=True)
            (self._point,) = self.axes.plot([], [], "o", color=BODIES[0], ms=5, animated=True, clip_on=False)
            self._place_header()
            # Long numbers push the label to the left: the axes make room for both.
            numbers, least = self.axes.yaxis.get_tightbbox(), self._pixels(PADDING) / 2
            if numbers and numbers.x0 < least:
                left += (least - numbers.x0) / width
                self.axes.set_position((left, bottom, right - left, top - bottom))

    def __len__(self) -> int:
        return len(self._x)

    def image(self, index: int) -> np.ndarray:
        """Return frame ``index`` as an array (height, width, 3) of uint8."""
        self._line.set_data(self._x[: index + 1], self._y[: index + 1])
        self._point.set_data(self._x[index : index + 1], self._y[index : index + 1])
        return self.picture(index, (self._line, self._point))


def page_of_shape(pixels: int) -> tuple[int, int]:
    """Return the even width and height of a page of 16:9."""
    width, height = (16 * pixels / 9) ** 0.5, (9 * pixels / 16) ** 0.5
    return 2 * round(width / 2), 2 * round(height / 2)


def limits_of(values: np.ndarray, margin: float) -> tuple[float, float]:
    """Return the range of the finite values with a margin."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return _around_constant(low, high) or (low - margin * (high - low), high + margin * (high - low))


def _around_constant(low: float, high: float) -> tuple[float, float] | None:
    """Return a wide range around values that are constant but for round-off; ``None`` for other values."""
    largest = max(abs(low), abs(high))
    spread = 0.1 * largest or 1.0
    return (low - spread, high + spread) if high - low <= 1e-6 * largest else None


# Height of a caption and width of the gap, in pixels of the design at 640 x 360.
_CAPTION = 30
_GAP = 10


def history_chart(
    path: Path,
    x_label: str,
    x: np.ndarray,
    series: Mapping[str, np.ndarray],
    title: str = "",
    units: Mapping[str, str] = MappingProxyType({}),
    best: int | None = None,
) -> Path:
    """Draw one chart per quantity over time or iterations.

    Args:
        path: PNG file to write.
        x_label: name of the horizontal axis.
        x: values along it (points,).
        series: quantities by name, (points,); positive ones over more than three decades get a logarithmic axis.
        title: title above the panels; empty for none.
        units: units of the quantities by name, as far as they are known.
        best: index of the best point, which is marked, where the first quantity is an objective; its panel leads.

    Raises:
        UserError: if there is nothing to draw or shapes disagree.
    """
    x = np.asarray(x, dtype=float)
    with house_style():
        figure, panels = new_panels(list(series), title, x_label, units, leads=best is not None)
        for axes, (key, values) in zip(panels, series.items(), strict=True):
            data = finite(key, values, len(x), axes=1)
            axes.plot(x, data, color=BODIES[0], marker="o" if len(x) <= 40 else None, ms=3)
            frame_values(axes, data)
            tick_values(axes, x)
            if best is not None and np.isfinite(data[best]):
                axes.plot(x[best], data[best], "o", ms=6, color=ACCENT)
                at: dict[str, Any] = {"textcoords": "offset points", "va": "bottom", "ha": "right", "color": ACCENT}
                axes.annotate(f"best {data[best]:.4g}", (x[best], data[best]), (0, 6), **at)
        return write(path, figure)


def comparison(
    path: Path,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    settings: RenderSettings,
    title: str,
    captions: tuple[str, str],
    size: Size = DEFAULT_PIXELS,
) -> Path:
    """Draw the last frame of each of two runs under its caption, with the same colors and window for both.

    Args:
        path: PNG file to write.
        before: the first run: its ``frames``, ``diagnostics``, ``coordinates`` and ``units``, as for ``render``.
        after: the second run.
        settings: view, quantity and colors.
        title: title of both pictures.
        captions: caption of each picture.
        size: width and height of each picture in pixels, or their product; wide pictures are stacked, others are placed
            side by side.

    Raises:
        UserError: if a run lacks what the view needs.
    """
    pictures = []
    for run, other in ((before, after), (after, before)):
        if pictures:
            size = pictures[0].shape[1::-1]
        painter = new_painter(**run, title=title, settings=settings, size=size, alongside=[other["frames"]])
        pictures.append(image_of(painter, len(painter) - 1))
    height, width = pictures[0].shape[:2]
    scale = scale_of((width, height))
    panels = [
        np.concatenate([_caption(caption, width, scale), image])
        for caption, image in zip(captions, pictures, strict=True)
    ]
    # Two 2:1 pictures form a square when stacked and a narrow band side by side.
    axis = 0 if width > 2 * height else 1
    gap = round(_GAP * scale)
    space = np.full((gap, width, 3) if axis == 0 else (len(panels[0]), gap, 3), 255, np.uint8)
    write_png(path, np.concatenate([panels[0], space, panels[1]], axis=axis))
    return path


def _caption(caption: str, width: int, scale: float) -> np.ndarray:
    height = max(round(_CAPTION * scale), 1)
    with house_style():
        figure = new_figure((width, height), scale)
        text = figure.text(0.5, 0.35, drawable(caption), ha="center", va="center", size=11, color=INK)
        fit(text, 0.94 * width)
        return drawn(figure)


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
        leads: whether the first of the series is an objective, whose panel leads.
    """

    points: Mapping[str, np.ndarray]
    series: Mapping[str, np.ndarray]
    failed: np.ndarray
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)
    is_grid: bool = True
    indices: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    title: str = ""
    leads: bool = False


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
    figure, panels = new_panels(list(series), data.title, _label(data, name), data.units, leads=data.leads)
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
        tick_values(axes, x)
        frame_values(axes, good if np.isfinite(good).any() else array[order])
    seeds = data.failed.shape[1]
    drawn = [f"median of {seeds} seeds, bands 25-75 % and 5-95 %"] * (seeds > 1 and not bad.all())
    note(figure, drawn + _crosses(bad) + _left_out(data))
    return figure


def _over_two(data: SweepData, series: Mapping[str, np.ndarray]) -> Figure:
    """Draw means over seeds as colors in the plane of two parameters."""
    (across, x), (up, y) = ((name, np.asarray(values, float)) for name, values in data.points.items())
    panel, label = (PANEL[0], 230), _label(data, across)
    figure, panels = new_panels(list(series), data.title, label, data.units, panel, leads=data.leads)
    bad, bars = data.failed.any(axis=1), []
    for axes, array in zip(panels, series.values(), strict=True):
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
        tick_values(axes, x)
        if bad.any():
            axes.plot(x[bad], y[bad], "x", ms=4, color=INK)
        if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
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
            style = _LEADING_TITLE if data.leads and axes is panels[0] else {}
            fit(axes.set_title(axes.get_title(loc="left"), loc="left", **style), axes.get_window_extent().width)
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
    notes = ["S: share of the variance, first order"] * any(bool(shares) for shares in data.indices.values())
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
        return values[0] + np.array([-0.5, 0.5]) * (abs(values[0]) or 1.0)
    return np.exp(cell_edges(np.log(values))) if is_geometric(values) else cell_edges(values)


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
