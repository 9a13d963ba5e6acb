"""Rectangles on the page and on the plane, and how densely axes are labeled."""

from typing import NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator


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


class Box(NamedTuple):
    """A rectangle of whole pixels, counted from the lower left corner of the page."""

    left: int
    bottom: int
    width: int
    height: int

    def fractions(self, size: tuple[int, int]) -> tuple[float, float, float, float]:
        """Return (left, bottom, width, height) as fractions of a page of ``size`` pixels."""
        return self.left / size[0], self.bottom / size[1], self.width / size[0], self.height / size[1]


def tick_places(length: float) -> MaxNLocator:
    """Return round numbers for the ticks of an axis of ``length`` pixels at 640 x 360, far enough apart to read."""
    return MaxNLocator(int(np.clip(length / 45, 1, 8)), steps=[1, 2, 5, 10])
