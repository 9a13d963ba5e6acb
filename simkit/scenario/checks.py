"""Text of a scenario file: TOML, tables with the path of every key, and checks of single values."""

import datetime
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Never

from simkit.core.expressions.syntax import CONSTANTS, FUNCTIONS, parse
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Numbers, out_of_bounds, shown_interval
from simkit.errors import Mistakes, Remedy, UserError, closest, nearest, one_line

MAX_KEY_DEPTH = 32
MAX_LENGTH = 2**20
# Strings and comments, closed or not: the rest of the text is structure. Every branch is possessive and always matches,
# so the scan is linear in the text.
_STRING_OR_COMMENT = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"{3,5})?'
    r"|'''(?:[^']++|'(?!''))*+(?:'{3,5})?"
    r'|"(?:[^"\\\n]++|\\[^\n])*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*",
    re.DOTALL,
)
_LONG_KEY = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{MAX_KEY_DEPTH}}}")
_BARE_WORD = re.compile(r"""[A-Za-z_./~][^\s"'\[\]{},=#]*""")
# Begins like a formula: a constant or a function, and an operator or bracket.
_FORMULA = re.compile(rf"(?:{'|'.join((*CONSTANTS, *FUNCTIONS))})\s*[-+*/(]")
# Begins like a number or a bracket, has an operator later, and no character of a list, table or string.
_OPERATION = re.compile(r"""(?=[\d.+(-])(?=.*[+*/(-])[^"'\[\]{}=#]+""")
_WHOLE = re.compile(r"[\d\s+*()-]+")
_LOOSE_FLOAT = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?")


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Return the dictionary of a TOML text.

    Args:
        text: the document.
        where: name of the document in errors.

    Raises:
        UserError: if it is not TOML, or nested too deeply.
    """
    # tomllib's memory grows with the square of the number of parts of one dotted key.
    if _LONG_KEY.search(_STRING_OR_COMMENT.sub("s", text)):
        raise UserError(f"{where}: not usable TOML: a key has more than {MAX_KEY_DEPTH} dotted parts; shorten it")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{where}: not valid TOML: {one_line(error)}; correct that line") from error
    except RecursionError as error:
        raise UserError(f"{where}: not usable TOML: lists or tables are nested too deeply; flatten them") from error
    except ValueError as error:
        # An integer of thousands of digits is refused by Python itself, without a position.
        raise UserError(f"{where}: not usable TOML: {one_line(error, 60)}; numbers must fit in 64 bits") from error


def parse_value(text: str, where: str) -> Any:
    """Return the value of a text after ``=``: a TOML value, a bare word, a float such as ``.5``, or arithmetic.

    Args:
        text: as typed by a user.
        where: name of the value in errors.

    Raises:
        UserError: if it is none of these.
    """
    text = text.strip()
    if len(text) > MAX_LENGTH:
        raise UserError(f"{where}: a value of {len(text)} characters; write at most {MAX_LENGTH}")
    if _LOOSE_FLOAT.fullmatch(text):
        return float(text)
    if text.isprintable() and _BARE_WORD.fullmatch(text) and text not in ("true", "false", "inf", "nan"):
        try:
            return _arithmetic(text, where) if _FORMULA.match(text) else text
        except UserError:  # such as the path e/file.xyz
            return text
    try:
        document = parse_toml(f"value = {text}", where) if text.isprintable() else {}
    except UserError:
        document = {}
    if set(document) != {"value"} and (_OPERATION.fullmatch(text) or _FORMULA.match(text)):
        return _arithmetic(text, where)
    if set(document) != {"value"}:
        raise UserError(
            f"{where}={one_line(text, 60)} is not a value; write a number, true, false, a word, "
            'a "quoted string" or a [list, of, them]'
        )
    return document["value"]


def _arithmetic(text: str, where: str) -> float:
    """Return the value of a formula such as ``2*pi/3``; an integer if it has only integers, +, - and *."""
    from simkit.core.expressions.evaluation import constant

    value = constant(text, where)
    return int(value) if value.is_integer() and _WHOLE.fullmatch(text) else value


def to_toml(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Return tables as TOML text, which `parse_toml` reads back unchanged.

    Args:
        tables: ``{dotted path: {key: number, string, boolean or nested lists and tables of them}}``; the path of the
            top level is empty.
    """
    blocks = []
    for path, entries in tables.items():
        lines = [f"[{path}]"] if path else []
        lines += [f"{key} = {_written(value)}" for key, value in entries.items()]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _written(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_written(item) for item in value)}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_written(item)}' for key, item in value.items())} }}" if value else "{}"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


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


_REQUIRED: Any = object()
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Table:
    """One table: collects a mistake for every unknown key, then returns checked values.

    Wrong and missing values are collected as mistakes, with the default or an example in their place, so that all
    mistakes of a file are found. Call ``mistakes.raise_if_any()`` at the end.

    Args:
        entries: the parsed TOML table.
        file: name of the file.
        path: dotted path of the table; empty for the top of the file.
        allowed: allowed keys; ``None`` for any.
        mistakes: of the file.
    """

    def __init__(
        self,
        entries: dict[str, Any],
        file: str,
        path: str,
        allowed: tuple[str, ...] | None,
        mistakes: Mistakes | None = None,
    ) -> None:
        """Collect unknown keys as mistakes."""
        self.entries, self.file, self.path, self.mistakes = entries, file, path, mistakes or Mistakes()
        for key in entries:
            if allowed is not None and key not in allowed:
                meant = closest(key, allowed)
                self._add(
                    key,
                    f"{self.where(key)} is not a known key{nearest(key, allowed)}",
                    allowed=allowed,
                    remedy=Remedy("rename", meant) if meant else Remedy("remove"),
                )

    def where(self, key: str) -> str:
        """Return the name of ``key`` in errors: file and dotted path."""
        shown = key if _BARE_KEY.fullmatch(key) else show(key)
        return f"{self.file}: {self.path}.{shown}" if self.path else f"{self.file}: {shown}"

    def kept(self, key: str) -> AbstractContextManager[None]:
        """Collect the mistake of a block as one of the value of ``key``, and continue after it."""
        return self.mistakes.kept(self._path(key))

    def _add(self, key: str, message: str, **data: Any) -> None:
        self.mistakes.found.append(UserError(message, key=self._path(key), **data))

    def read[T](self, key: str, check: Callable[[Any, str], T], default: T = _REQUIRED, example: str = "") -> T:
        """Return the checked value of ``key``; the default or the example if that is a mistake.

        Args:
            key: of the value.
            check: ``(value, where) -> value``, from ``simkit.scenario.checks``.
            default: value of an absent key; without it the key is required.
            example: a TOML line for the error if a required key is missing.
        """
        with self.kept(key):
            if key in self.entries:
                return check(self.entries[key], self.where(key))
            if default is _REQUIRED:
                raise UserError(f"{self.where(key)} is missing; add a line such as {example}")
        if default is not _REQUIRED:
            return default
        return tomllib.loads(example)[key]

    def table(self, key: str, allowed: tuple[str, ...] | None, example: str = "") -> "Table":
        """Return the table under ``key``; an empty one if it is absent and ``example`` is not given."""
        if key not in self.entries and example:
            self._add(key, f"{self.file}: the table [{key}] is missing; add [{key}] with {example}")
            return Table({}, self.file, self._path(key), None)
        return self._inner(key, self.entries.get(key, {}), self.where(key), self._path(key), allowed)

    def tables(self, key: str, allowed: tuple[str, ...]) -> "dict[str, Table]":
        """Return the named tables under ``key``, such as every ``[params.NAME]``."""
        outer = self.table(key, None)
        for inner in outer.entries:
            with outer.kept(inner):
                path(inner, outer.where(inner))
        return {
            name: outer._inner(name, value, outer.where(name), outer._path(name), allowed)
            for name, value in outer.entries.items()
        }

    def list_of_tables(self, key: str, allowed: tuple[str, ...]) -> "list[Table]":
        """Return the tables of an array written ``[[key]]``."""
        values = self.entries.get(key, [])
        if not isinstance(values, list):
            self._add(key, f"{self.where(key)} is {kind(values)}; write it as [[{key}]] in double brackets")
            return []
        keys = [f"{key}[{index}]" for index in range(len(values))]
        return [
            self._inner(each, value, f"{self.file}: {self._path(each)}", self._path(each), allowed)
            for value, each in zip(values, keys, strict=True)
        ]

    def _path(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def _inner(self, key: str, value: Any, where: str, path: str, allowed: tuple[str, ...] | None) -> "Table":
        if not isinstance(value, dict):
            shown = show(value)
            holding = (
                f" with expression = {shown}" if isinstance(value, str) and "expression" in (allowed or ()) else ""
            )
            self._add(key, f"{where} = {shown} is {kind(value)}; write the table [{path}]{holding}")
            return Table({}, self.file, path, None)
        return Table(value, self.file, path, allowed, self.mistakes)
