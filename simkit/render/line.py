"""View of one diagnostic over time, as a line that grows with the run."""

import numpy as np
from matplotlib.transforms import IdentityTransform

from simkit.errors import UserError, nearest
from simkit.render.clip import Clip
from simkit.render.figure import Size, new_figure, page_of, rgb_copy, scale_of
from simkit.render.labels import drawable, fit, stamps, with_unit
from simkit.render.style import BODIES, INK, MUTED, drawing_style, house_style

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
            raise UserError(f"no diagnostic is '{settings.quantity}'{nearest(settings.quantity, list(diagnostics))}")
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
