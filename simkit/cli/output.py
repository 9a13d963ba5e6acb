"""Printed tables, numbers, JSON and messages of all verbs."""

import itertools
import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from simkit.cli.progress import DEVICES, SPENT
from simkit.core.parameter import MOST_SHOWN, count
from simkit.errors import LONGEST_ERROR, one_line

# Options that are not spelled like the argument.
_OPTIONS = {
    ("final_frames", "False"): "--no-frames",
    ("KEY", 'Path("...")'): "--set KEY=@path",
    ("KEY", '{"run": "..."}'): "--set KEY='{ run = \"...\" }'",
}


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


WRITTEN: dict[str, Any] = {}
"""Files that this command wrote besides its result, such as ``report``, by name."""
# Version of what `print_json` prints; raised where a key is renamed, removed or means something else.
VERSION = 1


def print_json(value: Any, kind: str = "") -> None:
    """Print a value as JSON; NaN and infinity, which JSON lacks, become null.

    Args:
        value: plain data, arrays and paths.
        kind: of the result, see `simkit.cli.schemas.RESULTS`; empty for one that follows no schema of simkit.
    """
    if SPENT and "error" not in value:
        value |= {"seconds": {phase: round(seconds, 3) for phase, seconds in SPENT.items()}, "devices": DEVICES}
    schema = {"schema": f"simkit.{kind}/{VERSION}"} if kind else {}
    print(json.dumps(_plain(schema | value | WRITTEN), indent=2, allow_nan=False))


_STYLES = {"bold": "1", "red": "1;31", "yellow": "33"}


def styled(text: str, style: str, stream: Any = None) -> str:
    """Return a text with a color or in bold, if it goes to a terminal and ``NO_COLOR`` is not set.

    Args:
        text: of one line.
        style: ``"bold"``, ``"red"`` or ``"yellow"``.
        stream: where it is printed; standard output by default.
    """
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if is_plain or not (stream or sys.stdout).isatty():
        return text
    return f"\033[{_STYLES[style]}m{text}\033[0m"


def width() -> int | None:
    """Return the width of the terminal in characters; ``None`` where output goes elsewhere, for other programs."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def wrapped(text: str) -> str:
    """Return a paragraph wrapped to the terminal, on one line elsewhere.

    Args:
        text: words.
    """
    columns = width()
    return text if columns is None else textwrap.fill(text, columns, break_on_hyphens=False, break_long_words=False)


def shortened(text: str, room: int) -> str:
    """Return a text cut at a word to at most some characters.

    Args:
        text: words.
        room: number of characters.
    """
    return textwrap.shorten(text, max(room, 5), placeholder=" ...", break_on_hyphens=False)


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows under a header, numbers aligned right and words left.

    On a terminal, columns of words are wrapped to its width. Elsewhere each row is one line, for ``grep``.
    """
    cells = [[show(cell) for cell in row] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) if cells else len(name) for i, name in enumerate(header)]
    right = [bool(rows) and all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(header))]

    if (columns := width()) is not None:
        widths = _fitting(widths, right, columns)

    def lines(words: Sequence[str]) -> Iterator[str]:
        wrapped = [
            textwrap.wrap(word, room, break_on_hyphens=False) or [""] for word, room in zip(words, widths, strict=True)
        ]
        for parts in itertools.zip_longest(*wrapped, fillvalue=""):
            padded = (p.rjust(n) if r else p.ljust(n) for p, n, r in zip(parts, widths, right, strict=True))
            yield "  ".join(padded).rstrip()

    print("\n".join(styled(line, "bold") for line in lines(header)))
    for words in (["-" * room for room in widths], *cells):
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


def print_totals(totals: Mapping[str, Any]) -> None:
    """Print the number of members by status, and quantiles of their final diagnostics.

    Args:
        totals: ``statuses`` and ``quantiles`` of `simkit.jobs.sweep_results.totals`; empty if no member is stored.
    """
    if not totals:
        return
    ended = ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in totals["statuses"].items())
    print(f"ended:      {ended}")
    if quantiles := totals["quantiles"]:
        header = ("at the end", *next(iter(quantiles.values())))
        print()
        print_table(header, [(name, *values.values()) for name, values in quantiles.items()])
        print()
