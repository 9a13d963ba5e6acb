"""Charts of diagnostics over time: panels, the line that grows with a run, comparisons before and after."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import IdentityTransform

from simkit.errors import UserError, nearest
from simkit.render.figure import drawn, new_figure, page_of, rgb_copy, scale_of
from simkit.render.style import BODIES, INK, MUTED, drawable, drawing_style, fit, house_style, plain, stamps, with_unit
from simkit.render.video import write_png
from simkit.render.views import DEFAULT_PIXELS, Clip, Size, image_of, new_painter
from simkit.scenario.scenario import RenderSettings

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


# Margin above and below the line, as a fraction of its range.
_MARGIN = 0.08
# Lengths of the design at 640 x 360 pixels.
_PADDING, _BASELINE = 14, 28
# Left, bottom, right and top of the axes, as fractions of the page.
_AXES = (0.12, 0.15, 0.965, 0.85)


class LinePainter:
    """Draws a diagnostic over time, iterations or frames up to the present frame, and the rest of the curve pale.

    Args:
        clip: its diagnostics hold ``settings.quantity`` (frames,), and ``time`` or ``iteration``.
        size: width and height in pixels; or their product, for a page of 16:9.

    Raises:
        UserError: if there is no such diagnostic, or it is not one number per frame.
    """

    def __init__(self, clip: Clip, size: Size) -> None:
        diagnostics, settings = clip.diagnostics, clip.settings
        if settings.quantity not in diagnostics and not any(np.ndim(one) == 1 for one in diagnostics.values()):
            raise UserError(
                "there is nothing to draw: no number is diagnosed, and no field, particles or bodies are observed; "
                "add a number with simulation.with_quantities(NAME=function of (state, params))"
            )
        if settings.quantity not in diagnostics:
            raise UserError(f"no diagnostic is '{settings.quantity}'", nearest(settings.quantity, list(diagnostics)))
        values = np.asarray(diagnostics[settings.quantity], float)
        if values.ndim != 1:
            raise UserError(f"'{settings.quantity}' has {values.ndim - 1} axes per frame; this view draws numbers")
        self._y = np.where(np.isfinite(values), values, np.nan)
        clock = next((name for name in ("time", "iteration") if name in diagnostics), "frame")
        self._x = np.asarray(diagnostics.get(clock, np.arange(len(values))), float)
        self._stamps = stamps(diagnostics, len(values), clip.units.get("time", ""))
        width, height = _page(size) if isinstance(size, int) else size
        unit = scale_of((width, height))
        with house_style():
            self._figure = new_figure((width, height), unit)
            left, bottom, right, top = _AXES
            self._axes = self._figure.add_axes((left, bottom, right - left, top - bottom))
            self._axes.grid(True)
            self._axes.set(xlim=_limits(self._x, 0.0), ylim=settings.limits or _limits(self._y, _MARGIN))
            fit(self._axes.set_xlabel(drawable(with_unit(clock, clip.units.get(clock, "")))), (right - left) * width)
            fit(self._axes.set_ylabel(drawable(with_unit(settings.label, settings.unit))), (top - bottom) * height)
            self._axes.plot(self._x, self._y, color=MUTED, alpha=0.3, lw=1.0)
            (self._line,) = self._axes.plot([], [], color=BODIES[0], animated=True)
            (self._point,) = self._axes.plot([], [], "o", color=BODIES[0], ms=5, animated=True, clip_on=False)
            style = {"transform": IdentityTransform(), "va": "baseline"}
            padding, baseline = round(_PADDING * unit), height - round(_BASELINE * unit)
            longest = max(self._stamps, key=len)
            self._stamp = self._figure.text(0, baseline, longest, color=MUTED, size=10, animated=True, **style)
            start = width - padding - int(np.ceil(self._stamp.get_window_extent().width))
            self._stamp.set_x(start)
            heading = self._figure.text(
                padding, baseline, drawable(clip.title), color=INK, size=12, weight="bold", **style
            )
            fit(heading, start - 2 * padding)
            # Long numbers push the label to the left: the axes make room for both.
            numbers = self._axes.yaxis.get_tightbbox()
            if numbers and numbers.x0 < padding / 2:
                left += (padding / 2 - numbers.x0) / width
                self._axes.set_position((left, bottom, right - left, top - bottom))
            self._figure.canvas.draw()
        self._background = page_of(self._figure).copy()

    def __len__(self) -> int:
        return len(self._x)

    def image(self, index: int) -> np.ndarray:
        """Return frame ``index`` as an array (height, width, 3) of uint8."""
        page = page_of(self._figure)
        np.copyto(page, self._background)
        self._line.set_data(self._x[: index + 1], self._y[: index + 1])
        self._point.set_data(self._x[index : index + 1], self._y[index : index + 1])
        self._stamp.set_text(self._stamps[index])
        with drawing_style():
            for artist in (self._line, self._point):
                self._axes.draw_artist(artist)
            self._figure.draw_artist(self._stamp)
        return rgb_copy(page)


def _page(pixels: int) -> tuple[int, int]:
    """Return the even width and height of a page of 16:9."""
    width, height = (16 * pixels / 9) ** 0.5, (9 * pixels / 16) ** 0.5
    return 2 * round(width / 2), 2 * round(height / 2)


def _limits(values: np.ndarray, margin: float) -> tuple[float, float]:
    """Return the range of the finite values with a margin; a wider one where they are constant but for round-off."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if high - low <= 1e-6 * max(abs(low), abs(high)):
        spread = 0.1 * max(abs(low), abs(high)) or 1.0
        return low - spread, high + spread
    return low - margin * (high - low), high + margin * (high - low)


# Height of a caption and width of the gap, in pixels of the design at 640 x 360.
_CAPTION = 30
_GAP = 10


def history_chart(path: Path, x_label: str, x: np.ndarray, series: Mapping[str, np.ndarray], title: str = "") -> Path:
    """Draw one small chart per quantity over time or iterations.

    Args:
        path: PNG file to write.
        x_label: name of the horizontal axis.
        x: values along it (points,).
        series: quantities by name, (points,); positive ones over more than three decades get a logarithmic axis.
        title: title above the panels; empty for none.

    Raises:
        UserError: if there is nothing to draw or shapes disagree.
    """
    x = np.asarray(x, dtype=float)
    with house_style():
        figure, panels = new_panels(list(series), title, x_label, {})
        for axes, (key, values) in zip(panels, series.items(), strict=True):
            data = finite(key, values, len(x), axes=1)
            axes.plot(x, data, color=BODIES[0], marker="o" if len(x) <= 40 else None, ms=3)
            frame_values(axes, data)
        return write(path, figure)


def comparison(
    path: Path,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    settings: RenderSettings,
    title: str,
    captions: tuple[str, str],
    size: Size = DEFAULT_PIXELS,
    frame: int = -1,
) -> Path:
    """Draw one frame of each of two runs under its caption, with the same colors and window for both.

    Args:
        path: PNG file to write.
        before: the first run: its ``frames``, ``diagnostics``, ``coordinates`` and ``units``, as for ``render``.
        after: the second run.
        settings: view, quantity and colors.
        title: title of both pictures.
        captions: caption of each picture.
        size: width and height of each picture in pixels, or their product; wide pictures are stacked, others are placed
            side by side.
        frame: index of the frame; negative ones count from the end of each run.

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
        pictures.append(image_of(painter, frame % len(painter)))
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
