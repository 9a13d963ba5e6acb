"""Rendering of stored frames to a picture or animation file."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from simkit.core.arguments import check_integer
from simkit.core.settings import word
from simkit.errors import UserError
from simkit.render.selection import choose_pace
from simkit.render.video import write_gif, write_mp4, write_png, write_webp
from simkit.render.views import DEFAULT_PIXELS, Pictures, Size, image_of, new_painter
from simkit.scenario.drawing import view_of
from simkit.scenario.scenario import RenderSettings

_SMALLEST, _LARGEST = 64, 4096
_ANIMATIONS: dict[str, Callable] = {"gif": write_gif, "webp": write_webp, "mp4": write_mp4}
FORMATS = (*_ANIMATIONS, "png")


def parse_size(text: str | None) -> Size:
    """Return (width, height) in pixels from ``"1280x720"``; from ``None`` the default number of pixels, of any shape.

    Raises:
        UserError: if the text is not of that form or a side is outside 64 ... 4096.
    """
    if text is None:
        return DEFAULT_PIXELS
    match = re.fullmatch(r"\s*([0-9]{1,6})\s*[xX]\s*([0-9]{1,6})\s*", text)
    if not match:
        raise UserError(f"size '{text}' is not WIDTHxHEIGHT in pixels; write for instance 1280x720")
    return check_size((int(match[1]), int(match[2])))


def check_size(size: Size) -> Size:
    """Return ``size`` if both sides lie in 64 ... 4096 pixels, or their product between the squares of these.

    Raises:
        UserError: otherwise.
    """
    if isinstance(size, int):
        check_integer("size in pixels", size, _SMALLEST**2, _LARGEST**2)
    else:
        for side in size:
            check_integer(f"side of the size {size[0]}x{size[1]}", side, _SMALLEST, _LARGEST)
    return size


def render(
    frames: Mapping[str, np.ndarray],
    diagnostics: Mapping[str, np.ndarray],
    coordinates: Mapping[str, np.ndarray],
    title: str,
    settings: RenderSettings,
    output: Path,
    format: str = "gif",
    size: Size = DEFAULT_PIXELS,
    frame: int = -1,
    maximum_frames: int = 150,
    units: Mapping[str, str] | None = None,
    report: Callable[[float], None] = lambda fraction: None,
) -> Path:
    """Draw a run into a file, written atomically; the same input gives the same bytes.

    Args:
        frames: observed arrays by name, frame axis first.
        diagnostics: scalars by name, frame axis first, with ``time`` or ``iteration``.
        coordinates: physical coordinates by name; a field needs its cell centers ``x`` and ``y``.
        title: title at the upper left.
        settings: view, quantity, label, unit, limits, speed, and values of the keys of the view.
        output: the file to write; an existing one is replaced.
        format: ``"gif"``, ``"webp"``, ``"mp4"`` or ``"png"``.
        size: width and height in pixels, 64 to 4096 each; or their product, for a picture of the aspect ratio of its
            content.
        frame: index of the frame of a png; negative ones count from the end.
        maximum_frames: largest number of frames; more are thinned, keeping the first and the last, see ``choose_pace``.
        units: units of diagnostics and coordinates by name, as far as they are known.
        report: called with the fraction of the animation that has been drawn.

    Returns:
        ``output``.

    Raises:
        UserError: if the format, size or frame is not possible, or the frames lack what the view needs.
    """
    word("of a file", tuple(FORMATS)).check(format, "format")
    painter = new_painter(frames, diagnostics, coordinates, title, settings, check_size(size), units)
    count = len(painter)
    if format == "png":
        check_integer("frame", frame, -count, count - 1)
        write_png(output, image_of(painter, frame % count))
    else:
        shown = frames
        if view_of(settings.view).source == "diagnosed":
            shown = {settings.quantity: diagnostics[settings.quantity]}
        pace = choose_pace(shown, diagnostics, settings.quantity, settings.frames_per_second, maximum_frames)
        _ANIMATIONS[format](output, Pictures(painter, pace.indices, report), pace.frames_per_second, pace.hold)
    return output
