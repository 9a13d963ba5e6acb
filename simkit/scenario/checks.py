"""Checks of single values: each returns the value as stored, or raises one line with what is allowed.

Every check takes ``where``, the name of the value in its error, such as ``flow.toml: run.steps``.
"""

import datetime
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, Never

from simkit.core.expressions.syntax import parse
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Numbers, out_of_bounds, shown_interval
from simkit.errors import Remedy, UserError, closest

MAX_DEPTH = 8
MAX_STEPS = 2**31 - 1  # iteration counters are 32-bit integers
MAX_SEED = 2**32 - 1
LONGEST_TITLE, LONGEST_LABEL, LONGEST_TEXT = 120, 100, 1000  # characters
MOST_STRINGS = 100
PRECISIONS = ("float32", "float64")

_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,63}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_DOTTED = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+")


def refuse(
    value: Any, where: str, problem: str, allowed: Iterable[Any] | None = None, remedy: Remedy | None = None
) -> Never:
    """Raise the error ``where = value problem``, with the words or the range that the value may have."""
    raise UserError(f"{where} = {show(value)} {problem}", allowed=allowed, remedy=remedy)


def string(value: Any, where: str, longest: int = LONGEST_TEXT) -> str:
    """Return ``value`` if it is text of at most ``longest`` characters that can be printed on one line."""
    if not isinstance(value, str):
        refuse(value, where, f"is {kind(value)}; write a string in quotes")
    if not value.strip():
        refuse(value, where, "is empty; write at least one word")
    if not value.isprintable():
        odd = next(character for character in value if not character.isprintable())
        refuse(value, where, f"contains the character {odd!r}; write it on one line without control characters")
    if len(value) > longest:
        refuse(value, where, f"has {len(value)} characters; write at most {longest}")
    return value


def identifier(value: Any, where: str) -> str:
    """Return ``value`` if it can name a scenario."""
    if not _IDENTIFIER.fullmatch(string(value, where)):
        refuse(value, where, "is not a name; use up to 64 lowercase letters, digits and _, starting with a letter")
    return value


def name(value: str, where: str) -> str:
    """Return ``value`` if it can name a parameter or an objective."""
    if not _NAME.fullmatch(value):
        raise UserError(f"{where} is not a name; use up to 64 letters, digits and _, starting with a letter")
    return value


def path(value: str, where: str) -> str:
    """Return ``value`` if it can be the path of a parameter: a name, then names and indices, separated by dots."""
    first, *steps = value.split(".")
    for step in (name(first, where), *steps):
        if not step.isdecimal():
            name(step, where)
    return value


def dotted(value: Any, where: str) -> str:
    """Return ``value`` if it has the form of a registered name of a factory, ``domain.name``."""
    if not _DOTTED.fullmatch(string(value, where)):
        refuse(value, where, "is not a simulation's name; write domain.name in lowercase, such as 'flow.domain'")
    return value


def strings(value: Any, where: str) -> tuple[str, ...]:
    """Return a list of strings as a tuple."""
    if not isinstance(value, list | tuple):
        refuse(value, where, f"is {kind(value)}; write a list of strings, such as ['one', 'two']")
    if len(value) > MOST_STRINGS:
        raise UserError(f"{where} has {len(value)} entries; write at most {MOST_STRINGS}")
    return tuple(string(entry, f"{where}[{index}]", LONGEST_LABEL) for index, entry in enumerate(value))


def title(value: Any, where: str) -> str:
    """Return ``value`` if it is text short enough for the title of a picture."""
    return string(value, where, LONGEST_TITLE)


def label(value: Any, where: str) -> str:
    """Return ``value`` if it is text short enough for a color bar, an axis or a column of a table."""
    return string(value, where, LONGEST_LABEL)


def measured(value: Any, where: str) -> str:
    """Return ``value`` if it may be the name of a diagnostic beside which an expression could stand."""
    if any(sign in label(value, where) for sign in "()*/+"):
        refuse(value, where, f"is an expression; write it as expression = {show(value)}, without quantity")
    return value


def boolean(value: Any, where: str) -> bool:
    """Return ``value`` if it is true or false."""
    if not isinstance(value, bool):
        refuse(value, where, f"is {kind(value)}; write true or false")
    return value


def choice(value: Any, where: str, allowed: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of the words in ``allowed``."""
    words = ", ".join(repr(word) for word in allowed)
    if not isinstance(value, str):
        refuse(value, where, f"is {kind(value)}; choose one of {words}")
    if value not in allowed:
        meant = closest(value, allowed)
        hint = f"did you mean '{meant}'?" if meant else "choose one of them"
        refuse(value, where, f"is not one of {words}; {hint}", allowed, Remedy("replace", meant) if meant else None)
    return value


def expression(value: Any, where: str, *, is_truth: bool = False) -> str:
    """Return ``value`` if it is text of an expression; names in it are checked when the simulation is built."""
    if not isinstance(value, str):
        refuse(value, where, f"is {kind(value)}; write an expression in quotes")
    parse(value, where, is_condition=is_truth)
    return value


def integer(value: Any, where: str, low: int = -(2**31), high: int = 2**31 - 1) -> int:
    """Return ``value`` if it is an integer in ``[low, high]``, by default the range of 32 bits of compiled programs."""
    if isinstance(value, float) and value.is_integer() and low <= value <= high:
        refuse(value, where, f"is a float; write the integer {int(value)}")
    if isinstance(value, bool) or not isinstance(value, int):
        refuse(value, where, f"is {kind(value)}; write an integer")
    if not low <= value <= high:
        refuse(value, where, f"is out of range; choose an integer in [{low}, {high}]", (low, high))
    return value


def number(value: Any, where: str) -> float:
    """Return ``value`` as a float if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(value, where, f"is {kind(value)}; write a number")
    if isinstance(value, float) and not math.isfinite(value):
        refuse(value, where, "is not finite; write a finite number")
    # Larger integers are not exact in double precision.
    return float(integer(value, where, -(2**53), 2**53) if isinstance(value, int) else value)


def positive(value: Any, where: str) -> float:
    """Return ``value`` as a float if it is a finite number above zero."""
    if number(value, where) <= 0.0:
        refuse(value, where, "is not positive; write a number above 0")
    return float(value)


def interval(value: Any, where: str) -> tuple[float, float]:
    """Return ``[low, high]`` as two floats, low below high."""
    return _pair(value, where, number)


def bounds(value: Any, where: str) -> tuple[float, float]:
    """Return ``[low, high]`` as two floats, low below high; either may be infinite (``-inf``, ``inf``)."""

    def end(entry: Any, label: str) -> float:
        return entry if isinstance(entry, float) and math.isinf(entry) else number(entry, label)

    return _pair(value, where, end)


def _pair(value: Any, where: str, end: Callable[[Any, str], float]) -> tuple[float, float]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        refuse(value, where, "is not a pair; write [low, high]")
    low, high = (end(entry, f"{where}[{index}]") for index, entry in enumerate(value))
    if not low < high:
        refuse(value, where, f"has its lower bound {show(low)} not below its upper bound {show(high)}; swap or widen")
    return low, high


def numbers(value: Any, where: str, depth: int = 0) -> Numbers:
    """Return a finite number, or nested lists of them with rows of equal length, as floats in tuples."""
    if not isinstance(value, list | tuple):
        return number(value, where)
    if not value or depth == MAX_DEPTH:
        refuse(value, where, f"is empty or nested over {MAX_DEPTH} deep; write a number or a list of numbers")
    entries = tuple(numbers(entry, f"{where}[{index}]", depth + 1) for index, entry in enumerate(value))
    if len({shape(entry) for entry in entries}) > 1:
        refuse(value, where, "has rows of different lengths; write rows of one length")
    return entries


def shape(value: Numbers) -> tuple[int, ...]:
    """Return the lengths of the nested tuples of a checked array, outermost first; ``()`` for a number."""
    return (len(value), *shape(value[0])) if isinstance(value, tuple) else ()


def inside(value: Numbers, where: str, bounds: tuple[float, float]) -> Numbers:
    """Return ``value`` if all its entries are in ``bounds``, ends included."""
    if isinstance(value, tuple):
        return tuple(inside(entry, f"{where}[{index}]", bounds) for index, entry in enumerate(value))
    low, high = bounds
    if low <= value <= high:
        return value
    if bounds in (POSITIVE, NOT_NEGATIVE):
        refuse(value, where, out_of_bounds(bounds), bounds)
    if low == POSITIVE[0]:
        side = f"above its upper bound {show(high)}" if value > high else "not above 0"
        refuse(value, where, f"is {side}; choose a value in {shown_interval(bounds)}", bounds)
    side = f"below its lower bound {show(low)}" if value < low else f"above its upper bound {show(high)}"
    refuse(value, where, f"is {side}; choose a value in [{show(low)}, {show(high)}]", bounds)


def plain(value: Any, where: str, depth: int = 0) -> Any:
    """Return a factory argument: boolean, integer, finite float, string, or lists (as tuples) and tables of them."""
    if isinstance(value, list | tuple | dict) and depth == MAX_DEPTH:
        refuse(value, where, f"is nested over {MAX_DEPTH} deep; flatten it")
    if isinstance(value, dict):
        return {name(key, f"{where}.{key}"): plain(entry, f"{where}.{key}", depth + 1) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return tuple(plain(entry, f"{where}[{index}]", depth + 1) for index, entry in enumerate(value))
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return integer(value, where)
    if isinstance(value, float):
        return number(value, where)
    refuse(value, where, f"is {kind(value)}; write a number, a string, true, false, or a list or table of them")


def like(value: Any, where: str, template: Any) -> Any:
    """Return a factory argument if it has the type and shape of ``template``; an integer is allowed for a float."""
    if isinstance(template, dict):
        if not isinstance(value, dict):
            refuse(value, where, f"is {kind(value)}; write a table, or set one of its keys: {where}.KEY=value")
        return plain(value, where)
    if isinstance(template, tuple):
        if not isinstance(value, list | tuple) or len(value) != len(template):
            refuse(value, where, f"does not fit; write a list of {len(template)}, such as {show(template)}")
        return tuple(like(entry, f"{where}[{i}]", template[i]) for i, entry in enumerate(value))
    if isinstance(template, str):
        if not isinstance(value, str):
            refuse(value, where, f"is {kind(value)}; write a string, such as {show(template)}")
        return value
    if isinstance(template, bool):
        return boolean(value, where)
    return integer(value, where) if isinstance(template, int) else number(value, where)


def run_setting(key: str, value: Any, where: str) -> Any:
    """Return the value of ``steps``, ``every``, ``precision``, ``seed`` or ``stop``."""
    if key == "stop":
        return value if value == "" else expression(value, where, is_truth=True)
    if key == "precision":
        return choice(value, where, PRECISIONS)
    return integer(value, where, *((0, MAX_SEED) if key == "seed" else (1, MAX_STEPS)))


def kind(value: Any) -> str:
    """Return the type of a value in words."""
    types = {bool: "a boolean", int: "an integer", float: "a float", str: "a string", dict: "a table"}
    if isinstance(value, datetime.date | datetime.time):
        return "a date or time"
    return types.get(type(value), "a list" if isinstance(value, list | tuple) else f"of type {type(value).__name__}")


def unwrapped(value: Any) -> Any:
    """Return numbers and arrays of NumPy or JAX as plain numbers and lists; any other value unchanged.

    Args:
        value: of a parameter or setting, from a caller in Python.
    """
    if type(value) in (list, tuple):
        return type(value)(map(unwrapped, value))
    return value.tolist() if hasattr(value, "tolist") else value


def show(value: Any, depth: int = 0) -> str:
    """Return a value as a short printable text, as written in a scenario file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, dict):
        return "{...}"
    if isinstance(value, list | tuple):
        text = f"[{', '.join(show(entry, depth + 1) for entry in value[:20])}]" if depth < MAX_DEPTH else "[...]"
    else:
        text = repr(value) if isinstance(value, int | float | str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
