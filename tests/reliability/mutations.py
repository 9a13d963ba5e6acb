"""Mutations of texts, bytes and nested tables: wrong numbers, words, types, sizes, names and places."""

import json
import random
import re
from typing import Any

_NUMBERS = """0 -1 1 2 1e308 -1e308 5e-324 nan inf -inf 1e9 1000000000 2147483648 9223372036854775808 0.5 1e-30 -0.0
0x10 1_000 1e400 \u0663"""
_WORDS = """a \u00e9 \u202e \U0001f4a5 ' " \\ /dev/zero /dev/null / . .. ~ missing.toml /nowhere/x true [ ] {}
@/dev/zero @. @missing = -- - %s%n ${HOME} ../../x.toml"""
NUMBERS = [*_NUMBERS.split(), "9" * 400, "9" * 5000]
WORDS = [*_WORDS.split(), "", " ", "\n", "\x00", "\x1b[31m", "\ud800", "a" * 300, "x" * 100_000, "(" * 300, "[" * 500]
WORDS += ["a." * 400 + "a"]
_VALUES = """[0, -1, 1, 3, 1000000000, 2147483648, 9223372036854775808, -1000000000000000000, 1e308, -1e308, 5e-324,
NaN, Infinity, 0.5, true, "", "a", "\\u0000", "\\u202e", "1/0", "nan", "1e308*1e308", "speed", "time", [], [[]],
[1, "a"], [64, 64], [1000000000, 1000000000, 1000000000], [0, 0], [-1.0], {}, {"file": "/etc/passwd"},
{"file": "missing"}, {"file": "."}, {"a": {"b": {"c": [1, {"d": 1}]}}}, [[[[[[[[[[1]]]]]]]]]], [{}]]"""
VALUES: list[Any] = [*json.loads(_VALUES), 10**400, "x" * 2000, "(" * 90, [0.5] * 3000, ["a"] * 200, "9" * 300]

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d+\.?\d*(?:e[+-]?\d+)?|\"[^\"\n]*\"|\s+|.", re.DOTALL)

# Repetitions of repetitions reach gigabytes, which the generator itself would hold.
LONGEST = 2**22

type Moments = random.Random


def mutated(moments: Moments, text: str, words: list[str], others: tuple[str, ...] = ()) -> str:
    """Return a text with some tokens deleted, repeated, swapped or replaced by words, numbers or parts of others."""
    tokens = _TOKEN.findall(text)
    for _ in range(moments.choice([1, 1, 1, 2, 3, 6])):
        if not tokens:
            break
        here, there = moments.randrange(len(tokens)), moments.randrange(len(tokens))
        match moments.randrange(8):
            case 0:
                del tokens[min(here, there) : min(here, there) + moments.choice([1, 1, 5, len(tokens)])]
            case 1:
                tokens[here:here] = tokens[here : here + moments.choice([1, 3, 40])]
            case 2:
                tokens[here], tokens[there] = tokens[there], tokens[here]
            case 3:
                numbers = [index for index, token in enumerate(tokens) if token[:1].isdigit()] or [here]
                tokens[moments.choice(numbers)] = moments.choice(NUMBERS)
            case 4:
                tokens[here] = moments.choice([*words, *WORDS])
            case 5 if others:
                part = _TOKEN.findall(moments.choice(others))
                begin = moments.randrange(len(part))
                tokens[here : here + moments.choice([0, 1, 10])] = part[begin : begin + moments.choice([1, 10, 60])]
            case 6:
                tokens[here] = tokens[here] * moments.choice([2, 3, 1000])
            case _:
                name = tokens[here]
                cut = moments.randrange(len(name) + 1)
                tokens[here] = (
                    name[:cut]
                    + moments.choice(["", "s", "_", ".", "0", "-", chr(moments.randrange(1, 0x3000))])
                    + name[cut:][1:]
                )
    return "".join(tokens)[:LONGEST]


def as_bytes(moments: Moments, text: str) -> bytes:
    """Return the bytes of a text, sometimes with some of them changed, or cut off."""
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(moments.choice([0, 0, 0, 1, 4]) if data else 0):
        data[moments.randrange(len(data))] ^= 1 << moments.randrange(8)
    return bytes(data[: moments.randrange(len(data) + 1)] if moments.random() < 0.05 else data)


def leaves_of(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values of nested tables and lists, tables and lists included."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    found = [] if not path else [path]
    return found + [inner for key, value in items for inner in leaves_of(value, (*path, key))]


def at(tree: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path."""
    for step in path:
        tree = tree[step]
    return tree


def changed_tree(moments: Moments, tree: dict[str, Any], other: dict[str, Any], weight: float = 0.5) -> dict[str, Any]:
    """Return a parsed scenario with values replaced, moved or removed, and keys renamed; values may be of another.

    Args:
        moments: random numbers.
        tree: the scenario.
        other: another one.
        weight: share of changes in ``[config]``.
    """
    tree = json.loads(json.dumps(tree))
    for _ in range(moments.choice([1, 1, 1, 2, 3])):
        if not (paths := leaves_of(tree)):
            break
        settings = [path for path in paths if path[0] == "config"]
        path, theirs = moments.choice(settings if settings and moments.random() < weight else paths), leaves_of(other)
        parent, key = at(tree, path[:-1]), path[-1]
        match moments.randrange(10):
            case 0 | 1 if isinstance(parent[key], int | float) and not abs(parent[key]) > 2**63:
                parent[key] *= moments.choice([0, -1, 1000, 10**6, 10**9, 1e-9, 1e300])
            case 0 | 1 | 2:
                parent[key] = json.loads(json.dumps(moments.choice(VALUES)))
            case 3:
                parent[key] = json.loads(json.dumps(at(tree, moments.choice(paths))))
            case 4:
                parent[key] = json.loads(json.dumps(at(other, moments.choice(theirs))))
            case 5 if isinstance(parent, dict):
                name = moments.choice([key + "s", key[:-1] or "a", key.upper(), moments.choice(theirs)[-1], "é", ""])
                parent[str(name)] = parent.pop(key)
            case 6:
                del parent[key]
            case _:
                part = moments.choice(list(other))
                tree[part] = json.loads(json.dumps(other[part]))
    return tree


def to_toml(value: Any, top: bool = True) -> str:
    """Return a value as TOML; the whole scenario as keys and inline tables."""
    if isinstance(value, dict):
        entries = [f"{json.dumps(key)} = {to_toml(entry, False)}" for key, entry in value.items()]
        return "\n".join(entries) + "\n" if top else "{" + ", ".join(entries) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(to_toml(entry, False) for entry in value) + "]"
    return str(value).lower() if isinstance(value, bool | float) else json.dumps(value)
