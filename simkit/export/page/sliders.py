"""Sliders of a page: one for each number among the parameters, with its range, its scale and when it acts."""

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from simkit.core.parameter import POSITIVE
from simkit.export.programs.ports import Port
from simkit.render.labels import shown_unit

# An array with more entries has no sliders.
MOST_ENTRIES = 12
# A range whose ends are farther apart than this factor is shown on a logarithmic scale.
_WIDE = 50.0
# Reach of a slider, where nothing bounds it, as a factor of its default.
_REACH = 10.0


def sliders_of(ports: Sequence[Port], values: Sequence[np.ndarray], live: Collection[str]) -> dict[str, Any]:
    """Return the inputs and sliders of a page's parameters as plain data.

    Args:
        ports: of the parameters.
        values: their defaults, in the same order.
        live: names of those that a step or a picture depends on; the others act on the initial state only.

    Returns:
        ``inputs``, arrays by name with their defaults; ``sliders``, one for each number of small arrays; and
        ``without_slider``, labels of the others.
    """
    inputs, sliders, without = [], [], []
    for port, value in zip(ports, values, strict=True):
        numbers = [float(number) for number in np.ravel(value)]
        inputs.append({"name": port.name, "dtype": port.dtype, "shape": list(port.shape), "default": numbers})
        label = port.name.removeprefix("params.")
        if len(numbers) > MOST_ENTRIES or not all(map(math.isfinite, numbers)):
            without.append(label)
            continue
        for index, place in enumerate(np.ndindex(*port.shape)):
            low, high = port.bounds or (-math.inf, math.inf)
            first, last = _range(numbers[index], low, high)
            sliders.append(
                {
                    "input": port.name,
                    "index": index,
                    "label": label + (f"[{', '.join(map(str, place))}]" if place else ""),
                    "unit": shown_unit(port.unit),
                    "doc": port.doc,
                    "default": numbers[index],
                    "low": low if math.isfinite(low) else None,
                    "high": high if math.isfinite(high) else None,
                    "first": first,
                    "last": last,
                    "logarithmic": first > 0 and last / first > _WIDE,
                    "live": port.name in live,
                }
            )
    return {"inputs": inputs, "sliders": sliders, "without_slider": without}


def _range(default: float, low: float, high: float) -> tuple[float, float]:
    """Return the ends of a slider: the bounds where they are finite, otherwise what is near the default.

    Args:
        default: value at the start.
        low: lower bound, or minus infinity.
        high: upper bound, or infinity.
    """
    size = abs(default) or 1.0
    first, last = low, high
    if low == POSITIVE[0]:
        # Any positive number: as many powers of ten below the default as there is room above it, or two.
        first = min(default, last) / _REACH if math.isfinite(last) else size / _REACH
    if not math.isfinite(first):
        first = -size if default <= 0 or math.isfinite(last) else -default
        first = min(first, default)
    if not math.isfinite(last):
        last = _REACH * size if first > 0 else max(2 * size, 2 * first)
    return first, max(last, default)
