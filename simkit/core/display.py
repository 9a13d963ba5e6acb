"""Display of results in notebooks, by functions that higher layers register."""

from collections.abc import Callable
from typing import Any

DISPLAYS: dict[str, Callable[..., Any]] = {}
"""``"progress"``, the class of progress displays, and by kind of value the function that returns its HTML."""


def html_of(kind: str, value: Any) -> str | None:
    """Return the HTML of a value; ``None``, for which a notebook shows its text, where that cannot be made.

    Args:
        kind: key of `DISPLAYS`.
        value: the value.
    """
    try:
        return DISPLAYS[kind](value)
    except Exception:  # whatever is wrong with the value, its text is still there to be read
        return None
