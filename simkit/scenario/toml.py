"""TOML text to plain dictionaries and back, with every failure of the parser as one line."""

import re
from collections.abc import Mapping
from typing import Any

from simkit.core.expressions.names import CONSTANTS, FUNCTIONS
from simkit.errors import UserError, one_line

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
    import tomllib

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
    from simkit.core.expressions.expression import constant

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
    import json

    if isinstance(value, list | tuple):
        return f"[{', '.join(_written(item) for item in value)}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_written(item)}' for key, item in value.items())} }}" if value else "{}"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
