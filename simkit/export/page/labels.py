"""Labels and color scales of a page, as plain data."""

import base64
import re
from typing import Any

import numpy as np

from simkit.render.clip import Clip
from simkit.render.color import ColorScale
from simkit.render.labels import with_unit


def plain_text(text: str) -> str:
    """Return a label without the signs of mathematics: ``"$u_x$"`` becomes ``"u_x"``.

    Args:
        text: of a scenario file or a simulation.
    """
    return re.sub(r"\$([^$]*)\$", lambda match: re.sub(r"[\\{}]", "", match[1]), text)


def scale_data(scale: ColorScale) -> dict[str, Any]:
    """Return a color scale as plain data: its range, its whole numbers and 257 colors, the last for what is no number.

    Args:
        scale: any.
    """
    middles = np.append(scale.low + (np.arange(256) + 0.5) / 256 * (scale.high - scale.low), np.nan)
    places = np.append((np.arange(256) + 0.5), np.nan)
    return {
        "low": scale.low,
        "high": scale.high,
        "levels": None if scale.levels is None else list(scale.levels),
        "words": None if scale.levels is None else [plain_text(scale.word(level)) for level in scale.levels],
        "table": base64.b64encode(scale.colors(places[: len(middles)]).tobytes()).decode(),
    }


def label_of(clip: Clip) -> str:
    """Return what stands beside the color bar."""
    return plain_text(with_unit(clip.settings.label, clip.settings.unit))
