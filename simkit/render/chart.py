"""Charts of diagnostics over time, and comparisons of a run before and after."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from simkit.errors import UserError
from simkit.render.figure import DEFAULT_PIXELS, Size, drawn, new_figure, scale_of
from simkit.render.labels import drawable, fit
from simkit.render.panels import finite, frame_values, new_panels, write
from simkit.render.style import BODIES, INK, house_style
from simkit.render.video import write_png
from simkit.render.views import new_painter
from simkit.scenario.sections import RenderSettings

# Height of a caption and width of the gap, in pixels of the design at 640 x 360.
_CAPTION = 30
_GAP = 10


def history_chart(path: Path, x_label: str, x: np.ndarray, series: Mapping[str, np.ndarray], title: str = "") -> Path:
    """Draw one small chart per quantity over time or iterations.

    Args:
        path: PNG file to write.
        x_label: name of the horizontal axis.
        x: values along it (points,).
        series: quantities by name, (points,); positive ones over more than three decades get a logarithmic axis.
        title: title above the panels; empty for none.

    Raises:
        UserError: if there is nothing to draw or shapes disagree.
    """
    x = np.asarray(x, dtype=float)
    with house_style():
        figure, panels = new_panels(list(series), title, x_label, {})
        for axes, (key, values) in zip(panels, series.items(), strict=True):
            data = finite(key, values, len(x), axes=1)
            axes.plot(x, data, color=BODIES[0], marker="o" if len(x) <= 40 else None, ms=3)
            frame_values(axes, data)
        return write(path, figure)


def comparison(
    path: Path,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    settings: RenderSettings,
    title: str,
    captions: tuple[str, str],
    size: Size = DEFAULT_PIXELS,
    frame: int = -1,
) -> Path:
    """Draw one frame of each of two runs under its caption, with the same colors and window for both.

    Args:
        path: PNG file to write.
        before: the first run: its ``frames``, ``diagnostics``, ``coordinates`` and ``units``, as for ``render``.
        after: the second run.
        settings: view, quantity and colors.
        title: title of both pictures.
        captions: caption of each picture.
        size: width and height of each picture in pixels, or their product; wide pictures are stacked, others are placed
            side by side.
        frame: index of the frame; negative ones count from the end of each run.

    Raises:
        UserError: if a run has no such frame or lacks what the view needs.
    """
    pictures = []
    for run, other in ((before, after), (after, before)):
        if pictures:
            size = pictures[0].shape[1::-1]
        painter = new_painter(**run, title=title, settings=settings, size=size, alongside=[other["frames"]])
        if not -len(painter) <= frame < len(painter):
            raise UserError(f"frame {frame} is out of range; the run has frames 0 to {len(painter) - 1}")
        pictures.append(painter.image(frame % len(painter)))
    height, width = pictures[0].shape[:2]
    scale = scale_of((width, height))
    panels = [
        np.concatenate([_caption(caption, width, scale), image])
        for caption, image in zip(captions, pictures, strict=True)
    ]
    # Two 2:1 pictures form a square when stacked and a narrow band side by side.
    axis = 0 if width > 2 * height else 1
    gap = round(_GAP * scale)
    space = np.full((gap, width, 3) if axis == 0 else (len(panels[0]), gap, 3), 255, np.uint8)
    write_png(path, np.concatenate([panels[0], space, panels[1]], axis=axis))
    return path


def _caption(caption: str, width: int, scale: float) -> np.ndarray:
    height = max(round(_CAPTION * scale), 1)
    with house_style():
        figure = new_figure((width, height), scale)
        text = figure.text(0.5, 0.35, drawable(caption), ha="center", va="center", size=11, color=INK)
        fit(text, 0.94 * width)
        return drawn(figure)
