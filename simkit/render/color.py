"""Color scales: limits, color maps and the mapping of values to colors."""

import dataclasses
import math
from collections.abc import Sequence
from functools import cached_property

import matplotlib
import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, Colormap, ListedColormap, Normalize, to_rgba

from simkit.core.settings import interval
from simkit.errors import known
from simkit.render.style import MISSING
from simkit.scenario.scenario import Scenario

# Integer quantities (contact numbers, species) with at most this many levels get one flat color per level.
MOST_LEVELS = 12
_MISSING_INDEX = 256
_FARTHEST = 1e30


@dataclasses.dataclass(frozen=True)
class ColorScale:
    """A color map over ``[low, high]``, in 256 steps or, where ``levels`` is given, one flat color per integer.

    Attributes:
        colormap: Matplotlib's color map.
        low: value of the first color.
        high: value of the last color.
        levels: the integers shown, or ``None`` for a continuous scale.
        names: names of the integers from 0 on; empty for none.
    """

    colormap: Colormap
    low: float
    high: float
    levels: tuple[int, ...] | None = None
    names: tuple[str, ...] = ()

    def word(self, level: int) -> str:
        """Return the label of an integer's color: its name or the number."""
        return self.names[level] if 0 <= level < len(self.names) else str(level)

    def position(self, values: np.ndarray) -> np.ndarray:
        """Return positions of values in the table of 256 colors, ``[0, 256)`` inside the limits; NaN and inf stay.

        Values far outside the limits have positions that float32 holds.
        """
        if self.levels is not None:
            values = np.rint(values)
        # Halving keeps the range finite for limits near the largest float.
        half_range = self.high / 2 - self.low / 2
        with np.errstate(invalid="ignore", over="ignore"):
            position = (np.asarray(values, dtype=np.float64) / 2 - self.low / 2) * (256 / half_range)
        return np.where(np.isfinite(values), np.clip(position, -_FARTHEST, _FARTHEST), position)

    def colors(self, position: np.ndarray) -> np.ndarray:
        """Return the RGBA colors (uint8, one more axis of 4) at table positions; gray where not finite."""
        return self.packed(position)[..., None].view(np.uint8)

    def packed(self, position: np.ndarray) -> np.ndarray:
        """Return the colors at table positions, each RGBA packed into one uint32: one lookup per pixel."""
        with np.errstate(invalid="ignore"):
            index = np.clip(position, 0, 255).astype(np.int16)
        finite = np.isfinite(position)
        if not finite.all():
            index[~finite] = _MISSING_INDEX
        return self._table[index]

    @cached_property
    def _table(self) -> np.ndarray:
        colors = self._distinct
        if self.levels is not None:
            colors = colors[np.floor(np.arange(256) / 256 * len(colors)).astype(int)]
        colors = np.vstack([colors, to_rgba(MISSING)])
        return np.ascontiguousarray(np.rint(colors * 255).astype(np.uint8)).view(np.uint32)[:, 0]

    @cached_property
    def _distinct(self) -> np.ndarray:
        count = 256 if self.levels is None else len(self.levels)
        return self.colormap(np.linspace(0, 1, count) if count > 1 else np.array([0.5]))

    def mappable(self) -> ScalarMappable:
        """Return the Matplotlib mappable of a color bar."""
        if self.levels is None:
            return ScalarMappable(Normalize(self.low, self.high), self.colormap)
        edges = np.linspace(self.low, self.high, len(self.levels) + 1)
        return ScalarMappable(BoundaryNorm(edges, len(self.levels)), ListedColormap(self._distinct))


# Color map of a quantity with two signs, such as vorticity.
DIVERGING = "RdBu_r"
# Smallest ratio of the two extremes of a quantity with two signs; below it one sign is noise or undershoot.
LEAST_SHARE = 0.05


def check_colormap(name: str, where: str) -> str:
    """Return the name of a color map if Matplotlib has it.

    Args:
        name: name of the color map.
        where: file and key, for the message.

    Raises:
        UserError: if it is unknown.
    """
    usual = ("inferno", "viridis", "magma", "cividis", "plasma")
    return name if name in matplotlib.colormaps else known(name, usual, where)


def check_scenario(scenario: Scenario) -> None:
    """Refuse a scenario with an unknown color map, before anything runs.

    Args:
        scenario: any scenario.

    Raises:
        UserError: that names file and key.
    """
    if (colormap := scenario.render.options.get("colormap")) is not None:
        check_colormap(colormap, f"{scenario.file}: render.colormap")


def color_scale(
    values: np.ndarray,
    colormap: str | None,
    limits: Sequence[float] | None,
    default: str,
    whole: bool = False,
    names: Sequence[str] = (),
    signed: bool = False,
) -> ColorScale:
    """Choose the color scale for a quantity over all frames.

    Args:
        values: the quantity, any shape; values that are not finite are ignored.
        colormap: name of a Matplotlib color map, or ``None`` for ``default``.
        limits: ``(low, high)``, or ``None`` for the range of the data, from zero if it nearly reaches zero.
        default: name of the color map used when none is given.
        whole: use one flat color per integer if all values are integers with few levels.
        names: names of these integers from 0 on; others are shown as numbers.
        signed: use a diverging map with zero in its middle for values of both signs, if no color map is given.

    Raises:
        UserError: if the color map is unknown or the limits are not two increasing finite numbers.
    """
    chosen = matplotlib.colormaps[check_colormap(colormap or default, "colormap")]
    values = np.asarray(values)
    values = values[np.isfinite(values)]
    if limits is not None:
        low, high = interval("of colors").check([float(end) for end in limits], "limits")
    elif values.size:
        low, high = float(values.min()), float(values.max())
        # A speed that nearly vanishes at a wall gets a scale from zero.
        if 0 < low < 0.02 * high:
            low = 0.0
    else:
        low, high = 0.0, 1.0
    first, last = math.ceil(low), math.floor(high)
    if whole and values.size and np.array_equal(values, np.rint(values)) and 0 <= last - first < MOST_LEVELS:
        levels = tuple(range(first, last + 1))
        return ColorScale(chosen, levels[0] - 0.5, levels[-1] + 0.5, levels, tuple(names))
    # A range within the float32 round-off of the values is a constant, whose noise is not colored.
    if high - low <= 1e-6 * max(abs(low), abs(high)):
        spread = max(abs(low), abs(high)) or 1.0
        low, high = (low - spread / 2, high + spread / 2) if low or high else (0.0, 1.0)
    if signed and colormap is None and _has_two_signs(low, high):
        largest = max(-low, high)
        return ColorScale(matplotlib.colormaps[DIVERGING], -largest, largest)
    return ColorScale(chosen, low, high)


def _has_two_signs(low: float, high: float) -> bool:
    """Return whether a range extends well below and well above zero."""
    return low < 0 < high and min(-low, high) > LEAST_SHARE * max(-low, high)
