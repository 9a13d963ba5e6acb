"""Color bar of a picture."""

import re

from matplotlib.figure import Figure

from simkit.render.color import ColorScale
from simkit.render.labels import drawable, fit, shown_unit, with_unit
from simkit.render.layout import Box, tick_locator

# Lengths of the design at 640 x 360 pixels.
_THICKNESS = 11
_GAP = 14


class ColorBar:
    """A color bar at the right of a window, or below it and its labels.

    Args:
        figure: figure of the bar.
        scale: color scale.
        label: name of the quantity.
        unit: unit of the quantity.
        below: whether the bar is below the window.

    Attributes:
        axes: Matplotlib axes of the bar.
    """

    def __init__(self, figure: Figure, scale: ColorScale, label: str, unit: str, below: bool) -> None:
        self.axes = figure.add_axes((0, 0, 1, 1))
        self.below = below
        self._axis = self.axes.xaxis if below else self.axes.yaxis
        self._ticks_move = scale.levels is None
        bar = figure.colorbar(scale.mappable(), cax=self.axes, orientation="horizontal" if below else "vertical")
        if scale.levels is not None:
            shown = scale.levels[:: -(-len(scale.levels) // 8)]
            bar.set_ticks(list(shown), labels=[drawable(scale.word(level)) for level in shown])
            self.axes.tick_params(length=0)
        bar.minorticks_off()
        bar.outline.set_visible(False)
        self._label = label, unit
        bar.set_label("", labelpad=2 if below else 5)

    def place(self, window: Box, wall: int, reach: int, size: tuple[int, int], unit: float) -> None:
        """Place the bar beside the window, with the length of the window.

        Args:
            window: pixels of the window.
            wall: thickness of the wall at the right of the window, in pixels.
            reach: extent of the labels below the window, in pixels.
            size: width and height of the page in pixels.
            unit: pixels per pixel of the design.
        """
        gap, thickness = round(_GAP * unit), max(round(_THICKNESS * unit), 1)
        if self.below:
            place = Box(window.left, window.bottom - reach - gap - thickness, window.width, thickness)
        else:
            place = Box(window.left + window.width + wall + gap, window.bottom, thickness, window.height)
        length = place.width if self.below else place.height
        self.axes.set_position(place.fractions(size))
        if self._ticks_move:
            self._axis.set_major_locator(tick_locator(length / unit))
        self._axis.set_label_text(drawable(self._label_text()))
        fit(self._axis.label, length)

    def _label_text(self) -> str:
        """Return the label with the common power of ten of the numbers, which above the bar would meet the title."""
        label, unit = self._label
        formatter = self._axis.get_major_formatter()
        formatter.set_locs(self._axis.get_majorticklocs().tolist())
        power = re.search(r"10\^\{(-?[0-9]+)\}", formatter.get_offset().replace("\N{MINUS SIGN}", "-"))
        self._axis.offsetText.set_visible(False)
        return with_unit(label, f"10^{power[1]} {shown_unit(unit)}".rstrip() if power else unit)
