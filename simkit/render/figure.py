"""Figures of an exact size in pixels, made without pyplot, and what is drawn on them as arrays."""

from typing import cast

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Pixels of a picture whose shape suits what it shows.
USUAL = 640 * 360
# The whole design is drawn at this size and scaled, fonts and lines included, to any other.
_REFERENCE = (640, 360)
_REFERENCE_DPI = 100.0


type Size = tuple[int, int] | int


def scale_of(size: Size) -> float:
    """Return how much larger than at 640 x 360 fonts and lines are drawn in a picture of ``size`` pixels.

    The size is width and height, or their product for a picture whose shape is yet to be chosen.

    The square root of the area ratio keeps the balance of text and picture for any shape; the other two terms keep
    margins from eating up very flat or very tall pictures.
    """
    if isinstance(size, int):
        return (size / USUAL) ** 0.5
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
    """Give a figure a size in pixels, met exactly; fonts and lines stay as they are."""
    # Agg truncates inches * dpi to pixels: a thousandth of a pixel more keeps rounding from losing a whole one.
    width, height = ((side + 1e-3) / figure.dpi for side in size)
    figure.set_size_inches(width, height)


def canvas_of(figure: Figure) -> FigureCanvasAgg:
    """Return the canvas of a figure made by ``new_figure``."""
    return cast(FigureCanvasAgg, figure.canvas)


def page_of(figure: Figure) -> np.ndarray:
    """Return the pixels of a figure, RGBA (height, width, 4) of uint8, as a view that may be written to."""
    return np.asarray(canvas_of(figure).get_renderer().buffer_rgba())


def drawn(figure: Figure) -> np.ndarray:
    """Draw a figure and return a copy of its pixels, RGB (height, width, 3) of uint8."""
    figure.canvas.draw()
    return rgb_copy(page_of(figure))


def rgb_copy(page: np.ndarray) -> np.ndarray:
    """Return a copy of RGBA pixels without their opacity."""
    picture = np.empty((*page.shape[:2], 3), np.uint8)
    # Channel by channel: copying page[..., :3] at once takes six times as long.
    for channel in range(3):
        picture[..., channel] = page[..., channel]
    return picture
