"""Sliders of a page: one for each number of the parameters, with its range and scale."""

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from simkit.core.parameter import POSITIVE
from simkit.export.programs.ports import Port
from simkit.render.labels import shown_unit

# An array with more entries has no sliders.
MOST_ENTRIES = 12
# Ratio of the ends of a range above which its scale is logarithmic.
_WIDE = 50.0
# Ratio of the end of an unbounded range to the default value.
_REACH = 10.0


def sliders_of(ports: Sequence[Port], values: Sequence[np.ndarray], live: Collection[str]) -> dict[str, Any]:
    """Return the inputs and sliders of a page's parameters as plain data.

    Args:
        ports: of the parameters.
        values: their defaults, in the same order.
        live: names of the parameters that a step or a picture depends on; the others act on the initial state only.

    Returns:
        ``inputs``, the parameters' names, shapes and defaults; ``sliders``, one for each number of small finite
        arrays; and ``without_slider``, labels of the other arrays.
    """
    inputs, sliders, without = [], [], []
    for port, value in zip(ports, values, strict=True):
        numbers = [float(number) for number in np.ravel(value)]
        inputs.append({"name": port.name, "dtype": port.dtype, "shape": list(port.shape), "default": numbers})
        label = port.name.removeprefix("params.")
        if len(numbers) > MOST_ENTRIES or not all(map(math.isfinite, numbers)):
            without.append(label)
            continue
        for index, entry in enumerate(np.ndindex(*port.shape)):
            low, high = port.bounds or (-math.inf, math.inf)
            first, last = _range(numbers[index], low, high)
            sliders.append(
                {
                    "input": port.name,
                    "index": index,
                    "label": label + (f"[{', '.join(map(str, entry))}]" if entry else ""),
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
    """Return the ends of a slider: finite bounds, otherwise values near the default.

    Args:
        default: initial value.
        low: lower bound, or minus infinity.
        high: upper bound, or infinity.
    """
    size = abs(default) or 1.0
    first, last = low, high
    if low == POSITIVE[0]:
        # Any positive number is allowed: begin at a tenth of the default.
        first = min(default, last) / _REACH if math.isfinite(last) else size / _REACH
    if not math.isfinite(first):
        first = -size if default <= 0 or math.isfinite(last) else -default
        first = min(first, default)
    if not math.isfinite(last):
        last = _REACH * size if first > 0 else max(2 * size, 2 * first)
    return first, max(last, default)
