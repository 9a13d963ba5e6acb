"""Panels of charts: layout, axes and scales."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from simkit.errors import UserError
from simkit.render.figure import drawn, new_figure
from simkit.render.labels import drawable, fit, plain, with_unit
from simkit.render.style import MUTED
from simkit.render.video import write_png

# Sizes of a panel and height of the title in pixels, before scaling by SCALE.
PANEL = (300, 210)
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
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each quantity.

    Args:
        names: names of the quantities.
        title: title of the figure; empty for none.
        x_label: label of the horizontal axes.
        units: units of the quantities by name, as far as they are known.
        panel: width and height of a panel in pixels, before scaling.
        columns: number of panels side by side; ``None`` chooses it, see `panel_columns`.
        shares_x: whether the panels share one horizontal axis.

    Raises:
        UserError: if there is no quantity.
    """
    if not names:
        raise UserError("there is nothing to chart; name at least one diagnostic")
    columns = columns or panel_columns(len(names))
    rows = -(-len(names) // columns)
    size = (columns * panel[0], rows * panel[1] + (TITLE if title else 0))
    figure = new_figure((round(size[0] * SCALE), round(size[1] * SCALE)), SCALE)
    figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.08)
    if title:
        fit(figure.suptitle(drawable(title), x=0.02, ha="left", weight="bold", size=12), 0.96 * SCALE * size[0])
    # Titles begin at the left of the axes, which the numbers along them move by up to a quarter of a panel.
    panels, width = [], 0.74 * SCALE * panel[0]
    for number, name in enumerate(names):
        axes = figure.add_subplot(rows, columns, number + 1, sharex=panels[0] if panels and shares_x else None)
        fit(axes.set_title(drawable(with_unit(plain(name), units.get(name, ""))), loc="left"), width)
        axes.grid(True)
        if number + columns >= len(names):
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
    if data.ndim != axes or len(data) != count:
        required = f"({count}, seeds)" if axes == 2 else f"({count},)"
        raise UserError(f"'{name}' has shape {data.shape}; the chart needs {required}")
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
    elif high - low <= 1e-6 * max(abs(low), abs(high)):
        # A constant but for round-off: a wider range, so that the round-off is not magnified.
        spread = 0.1 * max(abs(low), abs(high)) or 1.0
        axes.set_ylim(low - spread, high + spread)


def write(path: Path, figure: Figure) -> Path:
    """Write a figure as PNG, and return the file."""
    write_png(path, drawn(figure))
    return path
