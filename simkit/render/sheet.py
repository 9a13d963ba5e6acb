"""The page every view draws on: margins, title, axes and color bar drawn once; each frame adds only what moves."""

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator
from matplotlib.transforms import IdentityTransform

from simkit.render.bar import ColorBar
from simkit.render.color import ColorScale
from simkit.render.figure import canvas_of, new_figure, page_of, rgb_copy, scale_of
from simkit.render.labels import drawable, fit
from simkit.render.layout import Box, Window, tick_places
from simkit.render.style import INK, MUTED, WALL, drawing_style, house_style

# Lengths of the design at 640 x 360 pixels.
_PADDING = 18
_HEADER = 52
_BAND = 5
# Room that header, labels and color bar usually take, across and up, with the bar at the right or below.
_BAR_RIGHT = (150, 128)
_BAR_BELOW = (90, 175)


class Sheet:
    """A page showing a window of the plane at equal scale in x and y.

    Args:
        size: width and height of the picture in pixels.
        title: upper left, shortened where it does not fit.
        stamps: upper right, one per frame.
        window: what to show.
        axis_labels: names of the two axes; ``None`` draws neither labels nor ticks.
        bar: the color scale and label of the color bar, or ``None``.
        stretch: widen the window to fill the page instead of centering it.
        walls: draw solid walls below and above the window.

    Attributes:
        axes: Matplotlib axes in data units. Artists added before the first picture are drawn once, unless animated.
        box: the pixels of the window.
        window: the window shown; wider than asked for if ``stretch``.
        stamp: the time stamp, a Matplotlib text.
        bar: the color bar, or ``None``.
    """

    def __init__(
        self,
        size: tuple[int, int],
        title: str,
        stamps: Sequence[str],
        window: Window,
        axis_labels: tuple[str, str] | None = None,
        bar: tuple[ColorScale, str] | None = None,
        stretch: bool = False,
        walls: bool = False,
    ) -> None:
        self._size = size
        self._unit = scale_of(size)
        self._stamps = list(stamps)
        self._band = max(1, self._pixels(_BAND)) if walls else 0
        with house_style():
            self.figure = new_figure(size)
            self.axes: Axes = self.figure.add_axes((0, 0, 1, 1))
            self.axes.set_autoscale_on(False)
            below = not stretch and self._larger_with_bar_below(window)
            self.bar = ColorBar(self.figure, *bar, below=below) if bar else None
            self._label_axes(axis_labels)
            self._place(window, stretch)
            if walls:
                self._draw_walls()
            self._draw_header(title)

    def picture(self, index: int, artists: Iterable[Artist] = (), pixels: np.ndarray | None = None) -> np.ndarray:
        """Return frame ``index`` as an array (height, width, 3) of uint8.

        Args:
            index: which frame; picks the time stamp.
            artists: animated artists of ``axes``, drawn in this order.
            pixels: packed colors (box height, box width) that fill the window, first row at the bottom.
        """
        page = page_of(self.figure)
        np.copyto(page, self._background)
        if pixels is not None:
            top = self._size[1] - self.box.bottom - self.box.height
            rows, columns = slice(top, top + self.box.height), slice(self.box.left, self.box.left + self.box.width)
            page[rows, columns] = pixels[::-1, :, None].view(np.uint8)
        with drawing_style():
            self.stamp.set_text(self._stamps[index])
            for artist in artists:
                self.axes.draw_artist(artist)
            self.figure.draw_artist(self.stamp)
        return rgb_copy(page)

    @cached_property
    def _background(self) -> np.ndarray:
        with house_style():
            self.figure.canvas.draw()
        return page_of(self.figure).copy()

    def _pixels(self, length: float) -> int:
        return round(length * self._unit)

    def _larger_with_bar_below(self, window: Window) -> bool:
        def scale(taken: tuple[int, int]) -> float:
            width, height = (max(side - self._pixels(used), 1) for side, used in zip(self._size, taken, strict=True))
            return min(width / window.width, height / window.height)

        return scale(_BAR_BELOW) > scale(_BAR_RIGHT)

    def _label_axes(self, labels: tuple[str, str] | None) -> None:
        self.axes.spines[:].set_visible(False)
        if labels is None:
            self.axes.xaxis.set_major_locator(NullLocator())
            self.axes.yaxis.set_major_locator(NullLocator())
            return
        self.axes.set_xlabel(labels[0], labelpad=2)
        self.axes.set_ylabel(labels[1], labelpad=4)
        if self._band:
            self.axes.spines.bottom.set_position(("outward", self._band * 72 / self.figure.dpi))

    def _place(self, window: Window, stretch: bool) -> None:
        """Fit the window between the labels around it, which are measured: their width differs from case to case."""
        reach = self._pixels(40)
        margins = [self._pixels(length) for length in (40, 56, 40)]
        for _ in range(3):
            self.box, self.window = self._fit(margins, window, stretch)
            self.axes.set_position(self.box.fractions(self._size))
            self.axes.set(xlim=self.window[:2], ylim=self.window[2:])
            for axis, length in ((self.axes.xaxis, self.box.width), (self.axes.yaxis, self.box.height)):
                if not isinstance(axis.get_major_locator(), NullLocator):
                    axis.set_major_locator(tick_places(length / self._unit))
            if self.bar:
                self.bar.place(self.box, reach, self._size, self._unit)
            reach, margins = self._measure()

    def _measure(self) -> tuple[int, list[int]]:
        """Return how far labels reach below the window, and they and the bar to the left, right and below it."""
        renderer = canvas_of(self.figure).get_renderer()
        drawn = [self.axes, self.bar.axes] if self.bar else [self.axes]
        around = (axes.get_tightbbox(renderer) for axes in drawn)
        extents = np.array([place.extents for place in around if place])
        box = self.box
        reach = max(0, int(np.ceil(box.bottom - extents[0, 1])))
        left, below = (np.array([box.left, box.bottom]) - extents[:, :2].min(axis=0)).tolist()
        right = extents[:, 2].max() - box.left - box.width
        return reach, [max(0, int(np.ceil(length))) for length in (left, right, below)]

    def _fit(self, margins: Sequence[int], window: Window, stretch: bool) -> tuple[Box, Window]:
        left, right, below = (self._pixels(_PADDING) + margin for margin in margins)
        room_width = max(self._size[0] - left - right, 1)
        room_height = max(self._size[1] - below - self._pixels(_HEADER) - 2 * self._band, 1)
        below += self._band
        scale = min(room_width / window.width, room_height / window.height)
        if stretch:
            spare = (room_width / scale - window.width) / 2
            top = window.y_low + room_height / scale
            shown = Window(window.x_low - spare, window.x_high + spare, window.y_low, top)
            return Box(left, below, room_width, room_height), shown
        width, height = max(round(window.width * scale), 1), max(round(window.height * scale), 1)
        return Box(left + (room_width - width) // 2, below + (room_height - height) // 2, width, height), window

    def _draw_walls(self) -> None:
        for bottom in (self.box.bottom - self._band, self.box.bottom + self.box.height):
            corner = (self.box.left, bottom)
            wall = Rectangle(corner, self.box.width, self._band, color=WALL, lw=0, transform=IdentityTransform())
            self.figure.add_artist(wall)

    def _draw_header(self, title: str) -> None:
        width, height = self._size
        padding = self._pixels(_PADDING)
        style = {"transform": IdentityTransform(), "va": "baseline"}
        baseline = height - self._pixels(_PADDING + 14)
        # Left-aligned where the longest stamp still fits: a stamp that gains a digit then stays in place.
        self.stamp = self.figure.text(0, baseline, max(self._stamps, key=len), color=MUTED, size=10, **style)
        self.stamp.set_animated(True)
        start = width - padding - int(np.ceil(self.stamp.get_window_extent().width))
        self.stamp.set_x(start)
        heading = self.figure.text(padding, baseline, drawable(title), color=INK, size=12, weight="bold", **style)
        fit(heading, start - 2 * padding)
