"""Configurations with the remedies of their mistakes applied, in which further mistakes are found."""

import re
from typing import Any

# Mark of a wrong column in the message about a formula.
IN_A_FORMULA = re.compile(r": column (\d+) of '")
_UNKNOWN = re.compile(r": '([^']+)' is not known here;")
# In place of an unknown name or a wrong formula: the names of arrays and diagnostics do not depend on its value.
_STAND_IN = "1"
_MEANT = re.compile(r"; did you mean '([^']+)'\?$")
_STEP = re.compile(r"[A-Za-z_][\w-]*|\[\d+\]")


def remedied(config: dict[str, Any], key: str, message: str) -> dict[str, Any] | None:
    """Return a configuration with one mistake removed; ``None`` if its message has no remedy that can be applied.

    Args:
        config: the configuration.
        key: dotted path of the wrong key, beginning with ``config``.
        message: about the key.
    """
    first, *steps = _STEP.findall(key)
    if first != "config" or not steps:
        return None
    meant = _MEANT.search(message)
    if IN_A_FORMULA.search(message):
        return _replaced(config, steps, lambda table, step: {**table, step: _formula(table[step], message)})
    if " is not a known key" in message or " is not an argument of " in message:
        return _replaced(config, steps, lambda table, step: _renamed(table, step, meant[1] if meant else None))
    if "; remove it" in message or "; leave it out" in message:
        return _replaced(config, steps, lambda table, step: _renamed(table, step, None))
    if meant and " is unknown;" in message:
        return _replaced(config, steps, lambda table, step: {**table, step: meant[1]})
    return None


def _formula(written: Any, message: str) -> str:
    """Return a formula with another name in place of an unknown one; a number if the message names none."""
    column, unknown, meant = IN_A_FORMULA.search(message), _UNKNOWN.search(message), _MEANT.search(message)
    if column and unknown and isinstance(written, str):
        begin = int(column[1]) - 1
        if written[begin:].startswith(unknown[1]):
            return f"{written[:begin]}{meant[1] if meant else _STAND_IN}{written[begin + len(unknown[1]) :]}"
    return _STAND_IN


def _renamed(table: dict[Any, Any], step: Any, name: str | None) -> dict[Any, Any]:
    """Return a table with another name of one key, or without it."""
    others = {key: value for key, value in table.items() if key != step}
    return others if name is None else {name: table[step], **others}


def _replaced(value: Any, steps: list[str], change: Any) -> Any:
    """Return nested tables and lists with the entry at a path changed; ``None`` if there is none."""
    is_list = isinstance(value, tuple)
    table = dict(enumerate(value)) if is_list else value
    step: Any = int(steps[0][1:-1]) if steps[0].startswith("[") else steps[0]
    if not isinstance(table, dict) or step not in table:
        return None
    if len(steps) > 1:
        inner = _replaced(table[step], steps[1:], change)
        changed = None if inner is None else {**table, step: inner}
    else:
        changed = change(table, step)
    return tuple(changed.values()) if is_list and changed is not None else changed
