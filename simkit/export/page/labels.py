"""Labels and color scales of a page, as plain data."""

import base64
import re
from typing import Any

import numpy as np

from simkit.render.clip import Clip
from simkit.render.color import ColorScale
from simkit.render.labels import with_unit


def plain_text(text: str) -> str:
    """Return a label without TeX markup: ``"$u_x$"`` becomes ``"u_x"``.

    Args:
        text: of a scenario file or a simulation.
    """
    return re.sub(r"\$([^$]*)\$", lambda match: re.sub(r"[\\{}]", "", match[1]), text)


def scale_data(scale: ColorScale) -> dict[str, Any]:
    """Return a color scale as plain data: its range, its levels and 257 RGBA colors in base64, the last one for NaN.

    Args:
        scale: continuous, or with one color per level.
    """
    positions = np.append(np.arange(256) + 0.5, np.nan)
    return {
        "low": scale.low,
        "high": scale.high,
        "levels": None if scale.levels is None else list(scale.levels),
        "words": None if scale.levels is None else [plain_text(scale.word(level)) for level in scale.levels],
        "table": base64.b64encode(scale.colors(positions).tobytes()).decode(),
    }


def label_of(clip: Clip) -> str:
    """Return the label of the color bar, with its unit."""
    return plain_text(with_unit(clip.settings.label, clip.settings.unit))
