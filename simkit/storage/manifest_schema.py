"""Schema of manifests: the check of every key, for runs, sweeps and optimizations."""

import math
from collections.abc import Callable, Mapping
from typing import Any

KINDS = ("run", "sweep", "optimize")


class SchemaError(Exception):
    """A value of the manifest that is of the wrong kind."""


def check_schema(manifest: Mapping[str, Any]) -> None:
    """Check that every key is there and holds what it should; keys that are not known are left alone.

    Args:
        manifest: as it was read.

    Raises:
        SchemaError: that names the key.
    """
    _MANIFEST(manifest, "manifest.json")
    if "parameters" in manifest:  # not in those of earlier versions
        _table(dict.fromkeys(manifest["values"]["params"], _PARAMETER))(
            manifest["parameters"], "manifest.json: parameters"
        )
    _REQUESTS[manifest["kind"]](manifest["request"], "manifest.json: request")


type _Check = Callable[[Any, str], None]


def _is(words: str, test: Callable[[Any], bool]) -> _Check:
    def check(value: Any, where: str) -> None:
        if not test(value):
            raise SchemaError(f"{where} is not {words}")

    return check


def _table(keys: Mapping[str, _Check]) -> _Check:
    def check(value: Any, where: str) -> None:
        _is("a table", lambda value: isinstance(value, dict))(value, where)
        for key, entry in keys.items():
            if key not in value:
                raise SchemaError(f"{where} has no '{key}'")
            entry(value[key], f"{where}.{key}")

    return check


def _each(entry: _Check) -> _Check:
    """Return the check of a table whose entries are all alike."""

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
    return value[0] in _DTYPES and all(map(_count, value[1]))


_DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
)
_WORD = _is("a word", lambda value: isinstance(value, str))
_ANY_TABLE = _table({})
_COUNT = _is("a whole number from 1", lambda value: _count(value) and value > 0)
_NUMBERS = _is("a list of numbers", lambda value: isinstance(value, list) and bool(value) and all(map(_number, value)))
_WORDS = _is("a list of words", lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value))
_LABELS = _table(
    {
        "dimensions": _each(_WORDS),
        "coordinates": _each(_is("a list", lambda value: isinstance(value, list))),
        "quantities": _each(_table({"unit": _WORD, "doc": _WORD})),
    }
)
_PARAMETER = _table(
    {
        "bounds": _is(
            "two numbers or null",
            lambda value: isinstance(value, list) and len(value) == 2 and all(e is None or _number(e) for e in value),
        ),
        "unit": _WORD,
        "doc": _WORD,
    }
)
_ARRAYS = _each(_is("a type and a shape", _described))
_MANIFEST = _table(
    {
        "kind": _is(f"one of {', '.join(KINDS)}", lambda value: value in KINDS),
        "scenario": _WORD,
        "values": _table({"config": _ANY_TABLE, "params": _ANY_TABLE, "run": _ANY_TABLE}),
        "request": _ANY_TABLE,
        "versions": _each(_WORD),
        "devices": _WORDS,
    }
)
_REQUESTS = {
    "run": _table({"labels": _LABELS, "arrays": _ARRAYS}),
    "sweep": _table(
        {
            "labels": _LABELS,
            "arrays": _ARRAYS,
            "over": _each(_NUMBERS),
            "seeds": _COUNT,
            "chunk": _COUNT,
            "final_frames": _is("true or false", lambda value: isinstance(value, bool)),
        }
    ),
    "optimize": _table(
        {
            "labels": _LABELS,
            "arrays": _ARRAYS,
            "wrt": _WORDS,
            "objective": _WORD,
            "method": _WORD,
            "iterations": _COUNT,
            "learning_rate": _is("a number", _number),
            "mode": _is("a mode", lambda value: value in ("shortest", "reverse", "forward")),
        }
    ),
}
