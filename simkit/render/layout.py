"""Page layout: rectangles in pixels and in data units, page sizes, and tick positions."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from simkit.errors import UserError

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
