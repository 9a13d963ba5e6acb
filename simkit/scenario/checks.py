"""Text of a scenario file: TOML, and the kinds of values that only scenario files have."""

import datetime
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, Never

from simkit.core import settings
from simkit.core.expressions.syntax import CONSTANTS, FUNCTIONS, parse
from simkit.core.parameter import UNBOUNDED, Numbers, out_of_bounds
from simkit.core.settings import Setting, flag, line, several, whole, word
from simkit.core.settings.kinds import MAX_DEPTH, exact
from simkit.core.settings.setting import shown as show
from simkit.errors import UserError, one_line
from simkit.plugins import Registry

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
_LOOSE_FLOAT = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Return the dictionary of a TOML text.

    Args:
        text: the document.
        where: name of the document in errors.

    Raises:
        UserError: if it is not TOML, or nested too deeply.
    """
    # tomllib's memory grows with the square of the number of parts of one dotted key.
    problem = f"a key has more than {MAX_KEY_DEPTH} dotted parts; shorten it"
    if not _LONG_KEY.search(_STRING_OR_COMMENT.sub("s", text)):
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            problem = f"{one_line(error)}; correct that line"
        except RecursionError:
            problem = "lists or tables are nested too deeply; flatten them"
        except ValueError as error:
            # An integer of thousands of digits is refused by Python itself, without a position.
            problem = f"{one_line(error, 60)}; numbers must fit in 64 bits"
    raise UserError(f"{where}: not valid TOML: {problem}")


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


# Names of arguments and settings; paths of parameters; names of scenarios and simulations.
NAME = r"[A-Za-z][A-Za-z0-9_]{0,63}"
STEP = rf"(?:{NAME}|\d{{1,9}})"
PATH = rf"{NAME}(?:\.{STEP})*"
IDENTIFIER = r"[a-z][a-z0-9_]{0,63}"
DOTTED = r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+"
IDENTIFIED = "a name; use up to 64 lowercase letters, digits and _, starting with a letter"
NO_DOTS = "a simulation's name; write domain.name in lowercase, such as 'flow.domain'"
LONGEST_LABEL = 100
MAX_SEED = 2**32 - 1
# Expression in place of a wrong one while further mistakes are looked for.
IN_PLACE = "0*0"
_REQUIRED: Any = object()


def expression(doc: str, default: Any = _REQUIRED, *, is_condition: bool = False) -> Setting:
    """Return a setting that is the text of an expression; names in it are checked when the simulation is built."""

    def check(value: Any, where: str) -> str:
        if not isinstance(value, str):
            raise UserError(f"{where} = {show(value)} is no expression; write one in quotes")
        try:
            if value != default:
                parse(value, where, is_condition=is_condition)
        except UserError as error:
            error.partial = None if is_condition else IN_PLACE
            raise
        return value

    is_required = default is _REQUIRED
    schema = {"type": "string"}
    return Setting("an expression", doc, check, None if is_required else default, dict, is_required, lambda: schema)


def diagnostic(doc: str, default: Any = _REQUIRED) -> Setting:
    """Return a setting that is the name of a diagnostic, beside which an expression could stand."""
    form = "a name; write an expression as expression = ..., without quantity"
    return line(doc, default, LONGEST_LABEL, pattern=r"[^()*/+]*", form=form)


def registered(doc: str, parts: Registry) -> Setting:
    """Return a setting that is a name of a registry; installed packages are searched only for names not its own."""

    def check(value: Any, where: str) -> str:
        is_own = isinstance(value, str) and value in parts.own
        return value if is_own else word(doc, tuple(parts.names())).check(value, where)

    return Setting("a name", doc, check, is_required=True, describe=lambda: {"enum": parts.names()})


def anything(doc: str) -> Setting:
    """Return a setting of any kind: an argument of a factory that does not declare its settings."""
    return Setting("a value", doc, plain, is_required=True)


def refuse(value: Any, where: str, problem: str, hint: str = "", *, allowed: Iterable[Any] | None = None) -> Never:
    """Raise the error ``where = value problem``, with the words or the range that the value may have."""
    raise UserError(f"{where} = {show(value)} {problem}", hint, allowed=allowed)


def path(value: str, where: str) -> str:
    """Return ``value`` if it can be the path of a parameter: a name, then names and indices, separated by dots."""
    if not re.fullmatch(PATH, value):
        raise UserError(f"{where} is not a name; use up to 64 letters, digits and _, starting with a letter")
    return value


def choice(value: Any, where: str, allowed: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of the words in ``allowed``."""
    return word("", allowed).check(value, where)


def integer(value: Any, where: str, low: int = -(2**31), high: int = 2**31 - 1) -> int:
    """Return ``value`` if it is an integer in ``[low, high]``, by default the range of 32 bits of compiled programs."""
    return whole("", low=low, high=high).check(value, where)


def number(value: Any, where: str, bounds: tuple[float, float] = UNBOUNDED) -> float:
    """Return ``value`` as a float if it is a finite number within bounds."""
    return inside(exact(value, where), where, bounds)  # type: ignore[return-value]


def interval(value: Any, where: str) -> tuple[float, float]:
    """Return ``[low, high]`` as two floats, low below high."""
    return settings.interval("").check(value, where)


def numbers(value: Any, where: str) -> Numbers:
    """Return a finite number, or nested lists of them with rows of equal length, as floats in tuples."""
    return settings.numbers("").check(value, where)


def inside(value: Numbers, where: str, bounds: tuple[float, float]) -> Numbers:
    """Return ``value`` if all its entries are in ``bounds``, ends included."""
    if isinstance(value, tuple):
        return tuple(inside(entry, f"{where}[{index}]", bounds) for index, entry in enumerate(value))
    if not bounds[0] <= value <= bounds[1]:
        refuse(value, where, out_of_bounds(bounds, value), allowed=bounds)
    return value


def plain(value: Any, where: str, depth: int = 0) -> Any:
    """Return a factory argument: boolean, integer, finite float, string, or lists (as tuples) and tables of them."""
    is_deep = isinstance(value, list | tuple | dict) and depth == MAX_DEPTH
    if is_deep or not isinstance(value, list | tuple | dict | bool | str | int | float):
        problem = f"is nested over {MAX_DEPTH} deep; flatten it" if is_deep else f"is {kind(value)}; write a number, a"
        refuse(value, where, problem if is_deep else f"{problem} string, true, false, or a list or table of them")
    if isinstance(value, dict):
        return {path(key, f"{where}.{key}"): plain(entry, f"{where}.{key}", depth + 1) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return tuple(plain(entry, f"{where}[{index}]", depth + 1) for index, entry in enumerate(value))
    if isinstance(value, bool | str):
        return value
    return integer(value, where) if isinstance(value, int) else number(value, where)


def like(template: Any) -> Setting:
    """Return the setting of an undeclared argument of a factory: of the type and shape of the value in the file."""
    if isinstance(template, bool):
        return flag("")
    if isinstance(template, int):
        return whole("", low=-(2**31))
    if isinstance(template, float):
        return Setting("a number", "", number)
    if isinstance(template, tuple) and template:
        is_uniform = len({type(entry) for entry in template}) == 1
        return several(like(template[0]) if is_uniform else anything(""), "", (len(template),))
    return settings.text("") if isinstance(template, str) else anything("")


def kind(value: Any) -> str:
    """Return the type of a value in words."""
    types = {bool: "a boolean", int: "an integer", float: "a float", str: "a string", dict: "a table"}
    if isinstance(value, datetime.date | datetime.time):
        return "a date or time"
    return types.get(type(value), "a list" if isinstance(value, list | tuple) else f"of type {type(value).__name__}")
