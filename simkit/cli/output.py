"""Tables, numbers and JSON, as every verb prints them."""

import json
import math
from collections.abc import Sequence
from typing import Any


def print_json(value: Any) -> None:
    """Print a value as JSON; numbers that JSON does not know (NaN, infinity) become null."""
    print(json.dumps(_plain(value), indent=2, allow_nan=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows under a header, numbers aligned right and words left."""
    cells = [[show(cell) for cell in row] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) if cells else len(name) for i, name in enumerate(header)]
    right = [bool(rows) and all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(header))]

    def line(words: Sequence[str]) -> str:
        padded = (w.rjust(n) if r else w.ljust(n) for w, n, r in zip(words, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    print(line(header))
    print("  ".join("-" * width for width in widths))
    for row in cells:
        print(line(row))


def show(value: Any) -> str:
    """Return a value in a few characters."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
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
