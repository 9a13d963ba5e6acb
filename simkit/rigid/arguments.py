"""Checks of the numbers given to methods of time stepping, by declarations of `simkit.core.settings`."""

from typing import Any

from simkit.core.parameter import POSITIVE
from simkit.core.settings import Setting, number, whole
from simkit.errors import UserError


def check_integer(name: str, value: Any, low: int, high: int | None = None) -> None:
    """Refuse an argument that is not an integer within its bounds.

    Args:
        name: name of the argument.
        value: value to check.
        low: smallest allowed value.
        high: largest allowed value; None for no upper bound.

    Raises:
        UserError: naming the value and the bounds.
    """
    _check(whole(name, low=low) if high is None else whole(name, low=low, high=high), name, value)


def check_number(name: str, value: Any, low: float = POSITIVE[0], high: float = POSITIVE[1]) -> None:
    """Refuse an argument that is not a number within its bounds, by default a positive one.

    Args:
        name: name of the argument.
        value: value to check.
        low: smallest allowed value.
        high: largest allowed value.

    Raises:
        UserError: naming the value and the bounds.
    """
    if isinstance(value, str):
        raise UserError(f"{name} = {value!r:.60} is not a finite number; write one")
    _check(number(name, bounds=(low, high)), name, value)


def _check(setting: Setting, name: str, value: Any) -> None:
    setting.check(value.item() if hasattr(value, "item") else value, name)
