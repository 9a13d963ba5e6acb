"""What a parameter is: its default, unit, meaning and bounds."""

import dataclasses
import math

from simkit.errors import UserError

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

    def __post_init__(self) -> None:
        """Refuse bounds that are none.

        Raises:
            UserError: if they are not two numbers, the lower one first.
        """
        pair = isinstance(self.bounds, tuple | list) and len(self.bounds) == 2
        numbers = pair and all(isinstance(end, int | float) for end in self.bounds)
        if not numbers or not self.bounds[0] < self.bounds[1]:
            raise UserError(f"bounds = {self.bounds!r:.60} are not (low, high); either may be infinite")
