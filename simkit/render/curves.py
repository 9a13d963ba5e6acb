"""Curves of an observed array over one of its coordinates, such as dispersion relations and profiles."""

import numpy as np

from simkit.core.arguments import check_shape
from simkit.errors import known
from simkit.render.chart import limits_of, page_of_shape
from simkit.render.page import PADDING, Page, scale_of
from simkit.render.selection import observed
from simkit.render.style import BODIES, FAINT, drawable, fit, house_style, plain, with_unit
from simkit.render.views import Clip, Size

# Left, bottom, right and top of the axes, as fractions of the page.
AXES = (0.12, 0.15, 0.965, 0.85)
MARGIN = 0.04


class CurvePainter(Page):
    """Draws an array over a coordinate of its first axis, a curve for each number along a second one.

    Coordinates ``NAME_names`` are words at the whole numbers of the coordinate NAME, each with a vertical line, and
    those of the array the words of its curves, which then differ in color.

    Args:
        clip: its frames hold ``settings.quantity``, (frames, points) or (frames, points, curves), and its coordinates
            that of the key ``along``, (points,).
        size: width and height in pixels; or their product, for a page of 16:9.

    Raises:
        UserError: if the coordinate is unknown, or has another number of points.
    """

    def __init__(self, clip: Clip, size: Size) -> None:
        settings, along = clip.settings, clip.settings.options["along"]
        known(along, clip.coordinates, "render.along")
        self._x, shape = np.asarray(clip.coordinates[along], float), np.shape(clip.frames[settings.quantity])
        values = observed(clip.frames, settings.quantity, axes=3 if len(shape) == 3 else 2).astype(float)
        wanted = f"the coordinate of the first axis of '{settings.quantity}', which has {values.shape[1]} points"
        check_shape(f"render.along = '{along}'", self._x, wanted, values.shape[1:2])
        self._y = np.where(np.isfinite(values), values, np.nan).reshape(*values.shape[:2], -1)
        width, height = size = page_of_shape(size) if isinstance(size, int) else size
        with house_style():
            super().__init__(clip, size, scale_of(size))
            left, bottom, right, top = AXES
            self.axes.set_position((left, bottom, right - left, top - bottom))
            self.axes.grid(True)
            self.axes.set(xlim=limits_of(self._x, 0.0), ylim=settings.limits or limits_of(self._y, MARGIN))
            names = [str(name) for name in clip.coordinates.get(f"{along}_names", ())]
            if names:
                self.axes.set_xticks(range(len(names)), [drawable(name) for name in names])
                for place in range(len(names)):
                    self.axes.axvline(place, color=FAINT, lw=0.8, zorder=0)
            else:
                unit = clip.units.get(along, "1")
                fit(self.axes.set_xlabel(drawable(with_unit(plain(along), unit))), (right - left) * width)
            fit(self.axes.set_ylabel(drawable(with_unit(settings.label, settings.unit))), (top - bottom) * height)
            curves = [str(name) for name in clip.coordinates.get(f"{settings.quantity}_names", ())]
            self._lines = [
                self.axes.plot([], [], color=BODIES[index % len(BODIES) if curves else 0], animated=True, lw=1.2)[0]
                for index in range(self._y.shape[2])
            ]
            if curves:
                self.axes.legend(self._lines, [drawable(name) for name in curves], frameon=False)
            self._place_header()
            # Long numbers push the label to the left: the axes make room for both.
            numbers, least = self.axes.yaxis.get_tightbbox(), self._pixels(PADDING) / 2
            if numbers and numbers.x0 < least:
                left += (least - numbers.x0) / width
                self.axes.set_position((left, bottom, right - left, top - bottom))

    def __len__(self) -> int:
        return len(self._y)

    def image(self, index: int) -> np.ndarray:
        """Return frame ``index`` as an array (height, width, 3) of uint8."""
        for line, values in zip(self._lines, self._y[index].T, strict=True):
            line.set_data(self._x, values)
        return self.picture(index, tuple(self._lines))
