"""What a parameter is: its default, unit, meaning and bounds."""

import dataclasses
import math

type Numbers = float | tuple[Numbers, ...]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A number (or array of numbers) that may be swept and differentiated.

    Attributes:
        default: the value, or nested tuples of values for an array.
        bounds: lowest and highest value allowed, for every entry of an array; either may be infinite.
        unit: physical unit; ``"1"`` for a pure number.
        doc: what it means.
    """

    default: Numbers
    bounds: tuple[float, float] = (-math.inf, math.inf)
    unit: str = "1"
    doc: str = ""
