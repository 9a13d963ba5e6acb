"""Checks of arguments given in Python: numbers, names, shapes, types; each refusal in one place."""

from collections.abc import Hashable, Iterable
from typing import Any

from simkit.core.parameter import POSITIVE
from simkit.core.settings.kinds import exact, number, whole
from simkit.core.settings.setting import Setting
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
    if isinstance(value, str):  # no arithmetic here
        exact(value, name)
    _check(number(name, bounds=(low, high)), name, value)


def check_shape(name: str, value: Any, wanted: str, *shapes: tuple[int | None, ...]) -> None:
    """Refuse an array of another shape; it may be traced.

    Args:
        name: name of the array.
        value: array, number or nested lists of numbers.
        wanted: what to give, in words.
        *shapes: shapes that it may have, ``None`` for an axis of any length but 0.

    Raises:
        UserError: naming its shape.
    """
    shape = _shape_of(value)
    if not any(len(each) == len(shape) and all(map(_fits, shape, each)) for each in shapes):
        raise UserError(f"{name} has shape {shape}; give {wanted}")


def check_type(name: str, value: Any, wanted: str, *types: Any) -> None:
    """Refuse an argument of another type.

    Args:
        name: name of the argument.
        value: value to check.
        wanted: what to give, in words.
        *types: types that it may have.

    Raises:
        UserError: naming the value.
    """
    if not isinstance(value, types):
        raise UserError(f"{name} = {value!r:.60} is of type {type(value).__name__}; give {wanted}")


def check_distinct(where: str, names: Iterable[Hashable]) -> None:
    """Refuse a list that has an entry twice.

    Args:
        where: name of the list, for the message.
        names: its entries.

    Raises:
        UserError: naming the entry.
    """
    seen = set()
    for name in names:
        if name in seen:
            raise UserError(f"{where} has {name!r:.60} twice; give each once")
        seen.add(name)


def _shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of an array or of lists, of which the entries may be traced."""
    if isinstance(value, list | tuple):
        return (len(value), *(_shape_of(value[0]) if value else ()))
    return tuple(getattr(value, "shape", ()))


def _fits(length: int, wanted: int | None) -> bool:
    return length > 0 if wanted is None else length == wanted


def _check(setting: Setting, name: str, value: Any) -> None:
    setting.check(value.item() if hasattr(value, "item") else value, name)
