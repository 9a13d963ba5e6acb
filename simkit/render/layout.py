"""Rectangles on the page and on the plane, and how densely axes are labeled."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from simkit.errors import UserError

# Bounds of a page that suits its content, in pixels of the design: titles need room, and bands are hard to place.
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
        """Return the part of it that is chosen.

        Args:
            chosen: lowest and highest coordinate by axis, ``"x"`` or ``"y"``.

        Raises:
            UserError: if that is not within this window.
        """
        ends: list[float] = []
        for name, low, high in (("x", self.x_low, self.x_high), ("y", self.y_low, self.y_high)):
            begin, end = chosen.get(name, (low, high))
            # A window that ends with the field may miss its ends by the rounding of stored coordinates.
            if begin < low - 1e-6 * (high - low) or end > high + 1e-6 * (high - low):
                raise UserError(
                    f"render.window.{name} = [{begin:g}, {end:g}] is not within the field; choose from {low:g} to "
                    f"{high:g}"
                )
            ends += [max(begin, low), min(end, high)]
        return Window(*ends)


class Box(NamedTuple):
    """A rectangle of whole pixels, counted from the lower left corner of the page."""

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


def larger_scale(pixels: float, window: Window, across: float, up: float) -> float:
    """Return pixels per data unit of a window that, with what surrounds it, fills a page of that many pixels.

    Args:
        pixels: width times height of the page.
        window: what is shown.
        across: pixels left and right of the window.
        up: pixels below and above it.
    """
    # The positive root of (width s + across) (height s + up) = pixels.
    a, b = window.width * window.height, window.width * up + window.height * across
    c = across * up - pixels
    return 2 * max(-c, 0.0) / (b + (b * b - 4 * a * min(c, 0.0)) ** 0.5)


def page_for(pixels: int, window: Window, margins: Margins, unit: float, header: float = 0.0) -> tuple[int, int]:
    """Return the even width and height of a page that suits a window.

    Args:
        pixels: about how many it has; fewer where it would become a narrow band.
        window: what is shown.
        margins: around the window.
        unit: pixels per pixel of the design.
        header: width that title and time stamp ask for.
    """
    across, up = margins.left + margins.right, margins.below + margins.above
    scale = larger_scale(pixels, window, across, up)
    scale = min(scale, (_WIDEST * unit - across) / window.width, (_HIGHEST * unit - up) / window.height)
    width = max(window.width * scale + across, min(max(header, _NARROWEST * unit), _MOST_FOR_HEADER * unit))
    height = max(window.height * scale + up, _LOWEST * unit)
    return 2 * round(width / 2), 2 * round(height / 2)


def tick_places(length: float) -> MaxNLocator:
    """Return round numbers for the ticks of an axis of ``length`` pixels at 640 x 360, far enough apart to read."""
    return MaxNLocator(int(np.clip(length / 45, 1, 8)), steps=[1, 2, 5, 10])
