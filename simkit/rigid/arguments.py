"""Checks of the numbers given to factories and methods of time stepping, on the host."""

import math
import numbers
from typing import Any

from simkit.errors import UserError


def check_integer(name: str, value: Any, low: int, high: int | None, example: int) -> None:
    """Refuse an argument that is not an integer within its bounds.

    Args:
        name: name of the argument.
        value: value to check.
        low: smallest allowed value.
        high: largest allowed value; None for no upper bound.
        example: a good value, shown in the error.

    Raises:
        UserError: naming the value, the bounds and the example.
    """
    most = math.inf if high is None else high
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not low <= int(value) <= most:
        allowed = f"of at least {low}" if high is None else f"in [{low}, {high}]"
        raise UserError(f"{name} = {value!r:.60} is not an integer {allowed}; choose for example {example}")


def check_number(name: str, value: Any, low: float, high: float, example: float) -> None:
    """Refuse an argument that is not a number within its bounds.

    Args:
        name: name of the argument.
        value: value to check.
        low: smallest allowed value.
        high: largest allowed value.
        example: a good value, shown in the error.

    Raises:
        UserError: naming the value, the bounds and the example.
    """
    if not (_is_number(value) and low <= value <= high):
        raise UserError(
            f"{name} = {value!r:.60} is not a number in [{low:g}, {high:g}]; choose for example {example:g}"
        )


def check_positive(name: str, value: Any, example: float, unit: str = "") -> None:
    """Refuse an argument that is not a positive number.

    Args:
        name: name of the argument.
        value: value to check.
        example: a good value, shown in the error.
        unit: unit of both, with a space before it.

    Raises:
        UserError: naming the value and the example.
    """
    if not (_is_number(value) and value > 0):
        raise UserError(f"{name} = {value!r:.60}{unit} is not a positive number; choose for example {example:g}{unit}")


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
