"""Printed tables, numbers, JSON and messages of all verbs."""

import itertools
import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from simkit.cli.progress import DEVICES, SPENT
from simkit.core.parameter import MOST_SHOWN, count
from simkit.errors import LONGEST_ERROR, one_line

# Options that are not spelled like the argument.
_OPTIONS = {("final_frames", "False"): "--no-frames", ("KEY", 'Path("...")'): "--set KEY=@path"}


def option(name: str, value: str) -> str:
    """Return the option of the command line for a Python argument, for `simkit.errors.spelled`.

    Args:
        name: such as ``"overwrite"``.
        value: such as ``"True"``; empty if the user chooses it.
    """
    flag = f"--{name.replace('_', '-')}"
    told = "" if value in ("", "True") else " " + value.strip('"')
    return _OPTIONS.get((name, value), flag + told)


def as_line(message: str) -> str:
    """Return a message on one line of bounded length, with control characters escaped.

    Args:
        message: of an error or a warning.
    """
    line = " ".join(message.split())
    return one_line("".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line), LONGEST_ERROR)


# Minimum width of a wrapped column of words.
NARROWEST = 12


def print_json(value: Any) -> None:
    """Print a value as JSON; NaN and infinity, which JSON lacks, become null."""
    if SPENT and "error" not in value:
        value |= {"seconds": {phase: round(seconds, 3) for phase, seconds in SPENT.items()}, "devices": DEVICES}
    print(json.dumps(_plain(value), indent=2, allow_nan=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows under a header, numbers aligned right and words left.

    On a terminal, columns of words are wrapped to its width. Elsewhere each row is one line, for ``grep``.
    """
    cells = [[show(cell) for cell in row] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) if cells else len(name) for i, name in enumerate(header)]
    right = [bool(rows) and all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(header))]

    if sys.stdout.isatty():
        widths = _fitting(widths, right, shutil.get_terminal_size().columns)

    def lines(words: Sequence[str]) -> Iterator[str]:
        wrapped = [
            textwrap.wrap(word, width, break_on_hyphens=False) or [""]
            for word, width in zip(words, widths, strict=True)
        ]
        for parts in itertools.zip_longest(*wrapped, fillvalue=""):
            padded = (p.rjust(n) if r else p.ljust(n) for p, n, r in zip(parts, widths, right, strict=True))
            yield "  ".join(padded).rstrip()

    for words in (header, ["-" * width for width in widths], *cells):
        print("\n".join(lines(words)))


def _fitting(widths: list[int], right: list[bool], room: int) -> list[int]:
    """Return column widths that fit into ``room``, narrowing the widest columns of words."""
    widths = list(widths)
    words = [index for index, is_right in enumerate(right) if not is_right]
    while words and sum(widths) + 2 * (len(widths) - 1) > room:
        widest = max(words, key=lambda index: widths[index])
        if widths[widest] <= NARROWEST:
            break
        widths[widest] -= 1
    return widths


def more(count: int, noun: str) -> str:
    """Return how many more there are in words, such as ``"1 more point"`` or ``"2 more points"``.

    Args:
        count: their number.
        noun: the singular.
    """
    return f"{count} more {noun}{'s' * (count != 1)}"


def show(value: Any) -> str:
    """Return a short text of a value."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {show(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        if (numbers := count(value)) > MOST_SHOWN:
            return f"[{numbers} values]"
        return "[" + ", ".join(show(item) for item in value) + "]"
    if isinstance(value, str) and "\n" in value:
        return f"a text of {len(value.splitlines())} lines, {len(value.encode())} bytes"
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
