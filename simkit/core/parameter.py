"""Declarations of parameters: default, bounds, unit and meaning."""

import dataclasses
import math
from typing import Any

from simkit.errors import UserError

type Numbers = float | tuple[Numbers, ...]

UNBOUNDED = (-math.inf, math.inf)
# The open lower end 0 is represented by the smallest normal number of single precision: smaller ones flush to zero.
POSITIVE = (2.0**-126, math.inf)
NOT_NEGATIVE = (0.0, math.inf)
SHARE = (0.0, 1.0)

# Arrays of more numbers than this, such as the weights of a network, are shown by their count only.
MOST_SHOWN = 64


def count(value: Any) -> int:
    """Return how many numbers nested lists or tuples contain; 1 for a number.

    Args:
        value: nested lists or tuples, or a number.
    """
    return sum(map(count, value)) if isinstance(value, list | tuple) else 1


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A number (or array of numbers) that may be swept and differentiated.

    Attributes:
        default: a number, nested tuples of numbers or an array, or a tree of these, each of which has the same bounds,
            unit and doc.
        bounds: lowest and highest value allowed, for every entry of an array; either may be infinite. `POSITIVE`,
            `NOT_NEGATIVE` and `SHARE` are the usual ones.
        unit: physical unit; ``"1"`` for a pure number.
        doc: its meaning.

    Example:
        >>> mass = simkit.Parameter(1.0, bounds=(0.1, 10.0), unit="kg", doc="mass of the pendulum's bob")
        >>> mass.default, mass.bounds
        (1.0, (0.1, 10.0))
    """

    default: Any
    bounds: tuple[float, float] = UNBOUNDED
    unit: str = "1"
    doc: str = ""

    def __post_init__(self) -> None:
        """Refuse invalid bounds.

        Raises:
            UserError: if they are not two numbers, the lower one first.
        """
        pair = isinstance(self.bounds, tuple | list) and len(self.bounds) == 2
        numbers = pair and all(isinstance(end, int | float) for end in self.bounds)
        if not numbers or not self.bounds[0] < self.bounds[1]:
            raise UserError(f"bounds = {self.bounds!r:.60} are not (low, high); either may be infinite")


def shown_bounds(bounds: tuple[float, float]) -> str:
    """Return bounds as short text: ``"[0, 1]"``, ``"above 0"``, ``"any"``.

    Args:
        bounds: lowest and highest value allowed.
    """
    low, high = bounds
    if bounds == UNBOUNDED:
        return "any"
    if math.isinf(high):
        return "above 0" if low == POSITIVE[0] else f"{low:g} or more"
    return f"{high:g} or less" if math.isinf(low) else shown_interval(bounds)


def shown_interval(bounds: tuple[float, float]) -> str:
    """Return bounds as an interval, ``"[0, 1]"``, or ``"(0, 1]"`` where 0 itself is not allowed.

    Args:
        bounds: lowest and highest value allowed.
    """
    low, high = bounds
    return f"(0, {high:g}]" if low == POSITIVE[0] else f"[{low:g}, {high:g}]"


def shown_bound(bounds: tuple[float, float], side: int) -> str:
    """Return one of two bounds as text: a number, or ``"0, which it must stay above"`` for an open lower end.

    Args:
        bounds: lowest and highest value allowed.
        side: 0 for the lower, 1 for the upper.
    """
    return "0, which it must stay above" if not side and bounds[0] == POSITIVE[0] else f"{bounds[side]:g}"


def out_of_bounds(bounds: tuple[float, float], value: float) -> str:
    """Return the end of an error message for a value out of bounds: the problem and the remedy.

    Args:
        bounds: lowest and highest value allowed.
        value: the value.
    """
    if value != value:
        return "is not a number; give one"
    if bounds == POSITIVE:
        return "is not positive; choose a value above 0"
    if bounds == NOT_NEGATIVE:
        return "is negative; choose 0 or a value above"
    if value > bounds[1]:
        side = f"above its upper bound {bounds[1]:g}"
    else:
        side = "not above 0" if bounds[0] == POSITIVE[0] else f"below its lower bound {bounds[0]:g}"
    return f"is {side}; choose a value in {shown_interval(bounds)}"
