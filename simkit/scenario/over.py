"""Values of a sweep from the command line: ``--over``."""

import math
from typing import Any

from simkit.core import paths
from simkit.errors import UserError, one_line
from simkit.scenario import checks
from simkit.scenario.overrides import RUN_KEYS
from simkit.scenario.scenario import Scenario
from simkit.scenario.toml import parse_value

MAX_COUNT = 100_000
CONFIG = "config."


def parse_over(
    scenario: Scenario, text: str, *, zipped: bool = False, sampled: bool = False
) -> tuple[str, tuple[Any, ...]]:
    """Return the name and the values of one ``--over``.

    ``name=low:high:count`` is linear and ``name=low:high:count:log`` geometric, both ends included; ``name=a,b,c`` is a
    list. To be sampled, ``name=low:high`` or ``name=low:high:log`` is the range alone. ``config.name=a,b,c`` lists
    values of the configuration.

    Args:
        scenario: with the parameter.
        text: the argument of ``--over``.
        zipped: whether values of several parameters are paired one by one, so that a value may repeat.
        sampled: whether a range is to be sampled.

    Returns:
        For a parameter, its name and numbers; to be sampled, ``(low, high)`` or ``(low, high, "log")``; for the
        configuration, ``config.name`` and values as in TOML.

    Raises:
        UserError: if the parameter is unknown or not a single number, the text is malformed, the count is not in
            [2, 100000], or a value is out of bounds.
    """
    key, equals, spec = (part.strip() for part in text.partition("="))
    label = f"--over {one_line(key, 80)}"
    if not equals or not spec:
        usual = (
            "name=low:high, with :log for logarithmic" if sampled else "name=low:high:count, with :log for geometric"
        )
        raise UserError(f"{label} has no values; write --over {usual}{'' if sampled else ', or name=a,b,c'}")
    if key.startswith(CONFIG):
        return key, _listed(spec, label)
    name = key.removeprefix("params.")
    if name not in scenario.parameters:
        if name in scenario.config:
            raise UserError(
                f"{label} is not a parameter of {scenario.name}; write --over config.{name}=a,b for values of the "
                "configuration, one compilation each"
            )
        if name in RUN_KEYS or key.startswith("run."):
            raise UserError(f"{label} is not a parameter of {scenario.name}; only parameters and config can be swept")
        raise UserError(f"{label} is not a parameter of {scenario.name}{paths.hint(name, scenario.parameters)}")
    parameter = scenario.parameters[name]
    if isinstance(parameter.default, tuple):
        raise UserError(
            f"{label} is an array of shape {checks.shape(parameter.default)}; only single numbers are swept"
        )
    parts = [part.strip() for part in spec.split(":" if ":" in spec else ",")]
    if sampled:
        return name, _ends(parts, label)
    if ":" in spec:
        values = _range(parts, label)
    else:
        values = [_number(part, label) for part in parts]
        if len(set(values)) < len(values) and not zipped:
            repeated = next(value for index, value in enumerate(values) if value in values[:index])
            raise UserError(f"{label} lists {checks.show(repeated)} twice; keep one of them")
    if len(values) == 1:
        raise UserError(
            f"{label} gives one value, {checks.show(values[0])}; write a list 3,6 or a range 3:6:4, or use --set"
        )
    if len(values) > MAX_COUNT:
        raise UserError(f"{label} gives {len(values)} values; give {MAX_COUNT} at most")
    for value in values:
        checks.inside(value, label, parameter.bounds)
    return name, tuple(values)


def _listed(spec: str, label: str) -> tuple[Any, ...]:
    """Return the values of a list: separated by commas, each as in TOML or a bare word."""
    if ":" in spec and not any(mark in spec for mark in "\"'["):
        raise UserError(f"{label}={one_line(spec, 60)} is a range; list the values of the configuration, as a,b,c")
    parts, depth, quote = [""], 0, ""
    for character in spec:
        if quote or character in "\"'":
            quote = "" if character == quote else quote or character
        elif character == "," and depth == 0:
            parts.append("")
            continue
        else:
            depth += (character in "[{") - (character in "]}")
        parts[-1] += character
    if depth or quote:
        raise UserError(f"{label}={one_line(spec, 60)} has a quote or bracket without its other end; write both")
    if not 2 <= len(parts) <= MAX_COUNT:
        raise UserError(
            f"{label} gives {len(parts)} value{'s' * (len(parts) > 1)}; give 2 to {MAX_COUNT}, or use --set for one"
        )
    return tuple(parse_value(part, label) for part in parts)


def _ends(parts: list[str], label: str) -> tuple[Any, ...]:
    """Return ``(low, high)`` or ``(low, high, "log")`` of ``low:high`` or ``low:high:log``."""
    if len(parts) not in (2, 3) or (len(parts) == 3 and parts[2] != "log"):
        raise UserError(
            f"{label}={one_line(':'.join(parts), 60)} is not a range to sample; write low:high or low:high:log, "
            "and how many points as --members"
        )
    return (_number(parts[0], label), _number(parts[1], label), *parts[2:])


def _range(parts: list[str], label: str) -> list[float]:
    """Return the values of ``low:high:count`` or ``low:high:count:log``."""
    if len(parts) not in (3, 4) or (len(parts) == 4 and parts[3] != "log"):
        raise UserError(
            f"{label}={one_line(':'.join(parts), 60)} is not a range; write low:high:count or low:high:count:log"
        )
    low, high = _number(parts[0], label), _number(parts[1], label)
    count = checks.integer(parse_value(parts[2], f"{label} count"), f"{label} count", 2, MAX_COUNT)
    if low == high:
        raise UserError(f"{label} has equal ends {checks.show(low)}; choose different ends, or use --set for one value")
    inside = range(1, count - 1)
    if len(parts) == 3:
        inner = [low + (high - low) * index / (count - 1) for index in inside]
    elif low > 0.0 and high > 0.0:
        # By common logarithms, of which those of powers of ten are exact.
        first, last = math.log10(low), math.log10(high)
        inner = [10 ** (first + (last - first) * index / (count - 1)) for index in inside]
    else:
        raise UserError(f"{label} has an end that is not positive; a geometric range needs both ends above 0")
    # Rounding must not move a value past the ends, which may be the bounds.
    return [low, *(min(max(value, min(low, high)), max(low, high)) for value in inner), high]


def _number(text: str, label: str) -> float:
    return checks.number(parse_value(text, label), label)
