"""Figures of an exact size in pixels without pyplot: rectangles in pixels and data units, page sizes, ticks."""

from collections.abc import Mapping
from typing import NamedTuple, cast

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from simkit.errors import UserError
from simkit.render.views import DEFAULT_PIXELS, Size

# Limits of width and height of a page of free aspect ratio, in pixels of the design.
_NARROWEST, _WIDEST, _MOST_FOR_HEADER = 420, 960, 620
_LOWEST, _HIGHEST = 180, 640


class Window(NamedTuple):
    """The part of the plane that is shown, in data units."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    @property
    def width(self) -> float:
        """Extent in x."""
        return self.x_high - self.x_low

    @property
    def height(self) -> float:
        """Extent in y."""
        return self.y_high - self.y_low

    def cut(self, chosen: Mapping[str, tuple[float, float]]) -> "Window":
        """Return a part of the window.

        Args:
            chosen: lowest and highest coordinate by axis, ``"x"`` or ``"y"``; an absent axis is kept whole.

        Raises:
            UserError: if it is not within this window.
        """
        ends: list[float] = []
        for name, low, high in (("x", self.x_low, self.x_high), ("y", self.y_low, self.y_high)):
            begin, end = chosen.get(name, (low, high))
            # Ends of the field may differ from the given ones by the rounding of stored coordinates.
            if begin < low - 1e-6 * (high - low) or end > high + 1e-6 * (high - low):
                raise UserError(
                    f"render.window.{name} = [{begin:g}, {end:g}] is not within the field; choose from {low:g} to "
                    f"{high:g}"
                )
            ends += [max(begin, low), min(end, high)]
        return Window(*ends)


class Box(NamedTuple):
    """A rectangle in pixels, from the lower left corner of the page."""

    left: int
    bottom: int
    width: int
    height: int

    def fractions(self, size: tuple[int, int]) -> tuple[float, float, float, float]:
        """Return (left, bottom, width, height) as fractions of a page of ``size`` pixels."""
        return self.left / size[0], self.bottom / size[1], self.width / size[0], self.height / size[1]


class Margins(NamedTuple):
    """Pixels of the page around a window."""

    left: int
    right: int
    below: int
    above: int


def filling_scale(pixels: float, window: Window, across: float, up: float) -> float:
    """Return the pixels per data unit with which a window and its margins fill a page of a given area.

    Args:
        pixels: width times height of the page.
        window: the window.
        across: sum of the left and right margins in pixels.
        up: sum of the margins below and above in pixels.
    """
    # The positive root of (width s + across) (height s + up) = pixels.
    a, b = window.width * window.height, window.width * up + window.height * across
    c = across * up - pixels
    return 2 * max(-c, 0.0) / (b + (b * b - 4 * a * min(c, 0.0)) ** 0.5)


def page_for(pixels: int, window: Window, margins: Margins, unit: float, header: float = 0.0) -> tuple[int, int]:
    """Return the even width and height of a page with the aspect ratio of a window.

    Args:
        pixels: approximate area of the page; smaller where it would become a narrow band.
        window: the window.
        margins: margins around the window.
        unit: pixels per pixel of the design.
        header: width required by title and time stamp.
    """
    across, up = margins.left + margins.right, margins.below + margins.above
    scale = filling_scale(pixels, window, across, up)
    scale = min(scale, (_WIDEST * unit - across) / window.width, (_HIGHEST * unit - up) / window.height)
    width = max(window.width * scale + across, min(max(header, _NARROWEST * unit), _MOST_FOR_HEADER * unit))
    height = max(window.height * scale + up, _LOWEST * unit)
    return 2 * round(width / 2), 2 * round(height / 2)


def tick_locator(length: float) -> MaxNLocator:
    """Return a locator of ticks at round numbers for an axis of ``length`` pixels at 640 x 360."""
    return MaxNLocator(int(np.clip(length / 45, 1, 8)), steps=[1, 2, 5, 10])


# Reference size of the design; fonts and lines are scaled with the picture.
_REFERENCE = (640, 360)
_REFERENCE_DPI = 100.0


def scale_of(size: Size) -> float:
    """Return the scale of fonts and lines in a picture of ``size`` pixels, relative to 640 x 360.

    The size is width and height, or their product for a picture of free aspect ratio. The scale is the square root of
    the ratio of areas, limited by width / 320 and height / 180 so that margins do not fill very flat or tall pictures.
    """
    if isinstance(size, int):
        return (size / DEFAULT_PIXELS) ** 0.5
    width, height = size
    area = width * height / (_REFERENCE[0] * _REFERENCE[1])
    return min(area**0.5, width / 320, height / 180)


def new_figure(size: tuple[int, int], scale: float | None = None) -> Figure:
    """Return an empty figure with an Agg canvas.

    Args:
        size: width and height in pixels, met exactly.
        scale: enlargement of fonts and lines; ``None`` chooses it to suit the size.
    """
    dpi = _REFERENCE_DPI * (scale or scale_of(size))
    figure = Figure(dpi=dpi)
    FigureCanvasAgg(figure)
    resize(figure, size)
    return figure


def resize(figure: Figure, size: tuple[int, int]) -> None:
    """Set the size of a figure in pixels exactly, without scaling fonts and lines."""
    # Agg truncates inches * dpi to integers: a thousandth of a pixel more compensates for round-off.
    width, height = ((side + 1e-3) / figure.dpi for side in size)
    figure.set_size_inches(width, height)


def canvas_of(figure: Figure) -> FigureCanvasAgg:
    """Return the canvas of a figure made by ``new_figure``."""
    return cast(FigureCanvasAgg, figure.canvas)


def page_of(figure: Figure) -> np.ndarray:
    """Return the pixels of a figure, RGBA (height, width, 4) of uint8, as a writable view."""
    return np.asarray(canvas_of(figure).get_renderer().buffer_rgba())


def drawn(figure: Figure) -> np.ndarray:
    """Draw a figure and return a copy of its pixels, RGB (height, width, 3) of uint8."""
    figure.canvas.draw()
    return rgb_copy(page_of(figure))


def rgb_copy(page: np.ndarray) -> np.ndarray:
    """Return a copy of RGBA pixels without the alpha channel."""
    picture = np.empty((*page.shape[:2], 3), np.uint8)
    # Copying page[..., :3] at once takes six times as long as channel by channel.
    for channel in range(3):
        picture[..., channel] = page[..., channel]
    return picture
