"""Matplotlib figures of an exact size in pixels, without pyplot, and their pixels as arrays."""

from typing import cast

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Default number of pixels of a picture of free aspect ratio.
DEFAULT_PIXELS = 640 * 360
# Reference size of the design; fonts and lines are scaled with the picture.
_REFERENCE = (640, 360)
_REFERENCE_DPI = 100.0


type Size = tuple[int, int] | int


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
