"""Schema of manifests: the check of every key, and the checks from which jobs compose the schema of their request."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from simkit.storage.kinds import KINDS, kind_of

type Check = Callable[[Any, str], None]
"""``(value, where)``; raises `SchemaError`."""


class SchemaError(Exception):
    """A value in a manifest of the wrong type, or a missing key."""


def check_schema(manifest: Mapping[str, Any]) -> None:
    """Check that every required key exists and its value is valid; unknown keys are ignored.

    Args:
        manifest: manifest read from a run directory.

    Raises:
        SchemaError: naming the key.
    """
    _MANIFEST(manifest, "manifest.json")
    if "parameters" in manifest:  # absent in earlier versions
        _table(dict.fromkeys(manifest["values"]["params"], _PARAMETER))(
            manifest["parameters"], "manifest.json: parameters"
        )
    kind, request = kind_of(manifest["kind"]), manifest["request"]
    required = {"labels": _LABELS, "arrays": _ARRAYS, **kind.request_checks}
    added_later = {name: check for name, check in kind.request_added_later.items() if name in request}
    _table(required | added_later)(request, "manifest.json: request")


def value_check(words: str, test: Callable[[Any], bool]) -> Check:
    """Return the check of a value.

    Args:
        words: description of a valid value, such as ``"a word"``.
        test: predicate of the value.
    """

    def check(value: Any, where: str) -> None:
        if not test(value):
            raise SchemaError(f"{where} is not {words}")

    return check


def _table(keys: Mapping[str, Check]) -> Check:
    def check(value: Any, where: str) -> None:
        value_check("a table", lambda value: isinstance(value, dict))(value, where)
        for key, entry in keys.items():
            if key not in value:
                raise SchemaError(f"{where} has no '{key}'")
            entry(value[key], f"{where}.{key}")

    return check


def each(entry: Check) -> Check:
    """Return the check of a table with arbitrary keys, whose values all pass the same check."""

    def check(value: Any, where: str) -> None:
        _table({key: entry for key in value} if isinstance(value, dict) else {})(value, where)

    return check


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _described(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[1], list):
        return False
    return value[0] in DTYPES and all(map(_count, value[1]))


_INTEGERS = (f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))
DTYPES = ("bool", *_INTEGERS, "float16", "float32", "float64")
# Checks of values in requests.
WORD = value_check("a word", lambda value: isinstance(value, str))
FLAG = value_check("true or false", lambda value: isinstance(value, bool))
NUMBER = value_check("a number", _number)
COUNT = value_check("a whole number from 1", lambda value: _count(value) and value > 0)
NUMBERS = value_check(
    "a list of numbers", lambda value: isinstance(value, list) and bool(value) and all(map(_number, value))
)
WORDS = value_check(
    "a list of words", lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value)
)
_ANY_TABLE = _table({})
_LABELS = _table(
    {
        "dimensions": each(WORDS),
        "coordinates": each(value_check("a list", lambda value: isinstance(value, list))),
        "quantities": each(_table({"unit": WORD, "doc": WORD})),
    }
)
_PARAMETER = _table(
    {
        "bounds": value_check(
            "two numbers or null",
            lambda value: isinstance(value, list) and len(value) == 2 and all(e is None or _number(e) for e in value),
        ),
        "unit": WORD,
        "doc": WORD,
    }
)
_ARRAYS = each(value_check("a type and a shape", _described))
_MANIFEST = _table(
    {
        "kind": value_check(f"one of {', '.join(KINDS)}", lambda value: value in tuple(KINDS)),
        "scenario": WORD,
        "values": _table({"config": _ANY_TABLE, "params": _ANY_TABLE, "run": _ANY_TABLE}),
        "request": _ANY_TABLE,
        "versions": each(WORD),
        "devices": WORDS,
    }
)
