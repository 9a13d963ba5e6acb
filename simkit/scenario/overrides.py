"""Values set from the command line or from Python: --set and --over."""

import dataclasses
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from simkit.core import paths
from simkit.core.arguments import check_distinct
from simkit.core.files import read_texts
from simkit.core.parameter import Numbers, Parameter
from simkit.core.settings import unwrapped
from simkit.core.settings.kinds import shape_of
from simkit.errors import Hint, Remedy, UserError, about, closest, nearest, one_line, within
from simkit.scenario import checks
from simkit.scenario.catalog import FILE
from simkit.scenario.checks import parse_value
from simkit.scenario.files import Files
from simkit.scenario.registry import SIMULATIONS, arguments_of, needed_arguments, takes_any
from simkit.scenario.scenario import Scenario
from simkit.scenario.sections import RUN_KEYS, ParameterSettings, indivisible

# Digits of an index in a list; Python refuses to read a number of thousands.
MOST_DIGITS = 9
# An index as Python writes it: bodies[0].mass is bodies.0.mass.
_INDEX = re.compile(r"\[(\d+)\]")


def apply_overrides(scenario: Scenario, settings: Sequence[str]) -> Scenario:
    """Return the scenario with ``key=value`` settings applied.

    A key is a parameter, a key of ``[config]`` or one of ``[run]``, written ``params.KEY``, ``config.KEY`` or
    ``run.KEY`` if the bare name is ambiguous; the bare name of a required argument of the factory is allowed too. A
    value is written as in TOML; a bare word is a string, and ``@path`` is the text of a file. ``config.KEY`` and
    ``params.KEY`` may also be arguments and parameters of the factory that the file does not mention, and keys inside
    such an argument; they are checked when the simulation is built.

    Args:
        scenario: to be changed.
        settings: such as ``["reynolds=800", "cells=[64, 32]", "steps=2000"]``.

    Raises:
        UserError: if a key is unknown, ambiguous or given twice, or a value is out of bounds or of the wrong kind.
    """
    return with_values(scenario, parse_settings(settings), lambda key: f"--set {one_line(key, 80)}")


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Return the values of ``key=value`` settings by key, as plain data, of ``@path`` as a ``Path``.

    Args:
        settings: as for `apply_overrides`.

    Raises:
        UserError: if a setting has no value, a key is given twice, or a value is not TOML.
    """
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        key, text = _INDEX.sub(r".\1", key.strip()), text.strip()
        label = f"--set {one_line(key, 80)}"
        if not equals or key in values:
            problem = "is given twice; keep one of them" if equals else f"has no value; write {label}=value"
            raise UserError(f"{label} {problem}", key=key)
        if text.startswith("@"):
            values[key] = Path(os.path.expanduser(text[1:]))
        else:
            # A condition is text with or without quotes.
            is_bare = key.removeprefix("run.") == "stop" and text[:1] not in ("'", '"')
            values[key] = text if is_bare else parse_value(text, label)
    return with_files(values, "--set {}".format)


def with_files(values: Mapping[str, Any], where: Callable[[str], str] = "{}".format) -> dict[str, Any]:
    """Return values of a user with the texts of the files that their tables name, anywhere.

    Args:
        values: by key.
        where: ``key -> name`` of the key in errors.

    Raises:
        UserError: if a file cannot be read.
    """
    files = Files({}, None)
    return {key: files.resolve(each, where(key)) if isinstance(each, dict) else each for key, each in values.items()}


def place_of(scenario: Scenario, key: str) -> str:
    """Return a key with its section, ``params.KEY``, ``config.KEY`` or ``run.KEY``.

    Args:
        scenario: with the values.
        key: as for `apply_overrides`; one that is allowed.
    """
    prefix, dot, _ = key.partition(".")
    if (dot and prefix in ("config", "params", "run")) or key in RUN_KEYS:
        return key if dot else f"run.{key}"
    is_setting = key in scenario.config or (dot and prefix in scenario.config)
    return f"{'config' if is_setting and not _is_the_parameter(scenario, key) else 'params'}.{key}"


def _is_the_parameter(scenario: Scenario, key: str) -> bool:
    """Return whether an entry of ``[config]`` is the parameter of its name, such as ``gravity = "gravity"``."""
    return scenario.config.get(key) == key and key in scenario.parameter_settings


def with_values(scenario: Scenario, values: Mapping[str, Any], where: Callable[[str], str] = "{}".format) -> Scenario:
    """Return the scenario with values replaced, each checked as in the file.

    Args:
        scenario: to be changed.
        values: plain data by key; keys as for ``apply_overrides``. A ``Path`` is replaced by the text of that file, or
            of all files whose names match it.
        where: ``key -> name`` of the key in errors.

    Raises:
        UserError: as ``apply_overrides``.
    """
    values = {key: _unwrapped(value, where(key)) for key, value in values.items()}
    config = dict(scenario.config)
    for key, value in values.items():
        label, name = where(key), key.removeprefix("config.")
        step, dot, inner = name.partition(".")
        if key == name and name in scenario.config and name in scenario.parameter_settings:
            continue  # ambiguous
        if name in scenario.config:
            # Declared settings are checked against their declaration; others must be like the value in the file.
            is_declared = name in getattr(_factory(scenario), "settings", {})
            config[name] = (
                checks.plain(value, label) if is_declared else checks.like(scenario.config[name]).check(value, label)
            )
        elif dot and step in config and (key != name or not _is_parameter(scenario, name)):
            config[step] = _inside(config[step], inner, value, label)
        elif dot and key != name and inner:
            config[step] = _begun(scenario, step, inner, value, label)
        elif key != name or (name not in RUN_KEYS and name in _needed(scenario)):
            config[checks.path(name, label)] = checks.plain(value, label)
    original = scenario.original or scenario
    # The configuration determines which parameters exist.
    if config != scenario.config:
        scenario = dataclasses.replace(scenario, config=config, known_parameters=None, original=original)
    run, changes = {}, dict(scenario.parameter_settings)
    seen: set[tuple[str, str]] = set()
    for key, value in values.items():
        label = where(key)
        section, located = _locate(scenario, key, label)
        for name, entry in _entries(scenario, section, located, value, label).items():
            if other := next((one for where_seen, one in seen if where_seen == section and _overlap(name, one)), None):
                raise UserError(f"{label} names {section}.{max(name, other, key=len)} twice; keep one of them")
            seen.add((section, name))
            if section == "run":
                run[name] = RUN_KEYS[name].check(entry, label)
            elif section == "params":
                checked, old = parameter_value(scenario, name, entry, label), changes.get(name, ParameterSettings())
                if checked != (scenario.declared[name].default if old.default is None else old.default):
                    changes[name] = dataclasses.replace(old, default=checked)
    settings = dataclasses.replace(scenario.run, **run)
    if problem := indivisible(settings.steps, settings.every, where):
        raise UserError(f"{where('steps' if 'steps' in run else 'every')}: {problem}")
    parameters = scenario.declared if changes != scenario.parameter_settings else scenario.known_parameters
    return dataclasses.replace(
        scenario,
        parameter_settings=changes,
        original=original,
        run=settings,
        known_parameters=parameters if settings.precision == scenario.run.precision else None,
    )


def _is_parameter(scenario: Scenario, name: str) -> bool:
    """Return whether a parameter has this path; none has if the simulation lacks values that are yet to be given."""
    try:
        return name in scenario.declared
    except UserError:
        return False


def _overlap(name: str, other: str) -> bool:
    """Return whether two paths are equal, or one is a branch that contains the other."""
    return f"{name}.".startswith(f"{other}.") or f"{other}.".startswith(f"{name}.")


def _needed(scenario: Scenario) -> list[str]:
    """Return the required arguments of the factory that the configuration lacks."""
    factory = _factory(scenario)
    return [name for name in needed_arguments(factory) if name not in scenario.config] if factory else []


def _factory(scenario: Scenario) -> Callable[..., Any] | None:
    """Return the factory of the simulation; ``None`` if it is not installed, or the simulation was made in Python."""
    is_known = scenario.made is None and scenario.simulation in SIMULATIONS.names()
    return SIMULATIONS.resolve(scenario.simulation) if is_known else None


def _begun(scenario: Scenario, name: str, path: str, value: Any, label: str) -> Any:
    """Return an argument of the factory that the file does not mention, with one value inside it given.

    Args:
        scenario: without the argument.
        name: of the argument.
        path: names and indices inside it, separated by dots.
        value: the new value.
        label: name of the key in errors.
    """
    factory = _factory(scenario)
    defaults = arguments_of(factory) if factory else {}
    arguments = [*defaults, *(needed_arguments(factory) if factory else ())]
    if factory and not takes_any(factory) and name not in arguments:
        meant = closest(name, arguments)
        other = f"config.{meant}.{one_line(path, 40)}"
        hint = Hint(f"; did you mean '{other}'?", other) if meant else nearest(name, arguments)
        problem = f"{label}: '{one_line(name, 40)}' is not an argument of {scenario.simulation}"
        raise UserError(problem, _elsewhere(scenario, name) or hint)
    declared = getattr(factory, "settings", {}).get(name)
    form = declared.form if declared else "value"
    default = {"list": (), "table": {}, "names": {}}.get(form, checks.plain(defaults.get(name) or {}, label))
    steps = path.split(".") if isinstance(default, dict) and path.partition(".")[0] not in default else [path]
    for step in reversed(steps[1:]):
        value = {step: value}
    return _inside(default, steps[0], value, label)


def _elsewhere(scenario: Scenario, part: str) -> str:
    """Return where a part of a scenario file is changed that cannot be set for a run; empty for any other name."""
    place = f"change {part} in {scenario.file}, or in a copy that `simkit new` makes"
    return f"; only values of [params], [config] and [run] are set for a run: {place}" if part in FILE else ""


def _inside(setting: Any, path: str, value: Any, label: str) -> Any:
    """Return a nested setting with one value replaced, or added to a table.

    Args:
        setting: a table or a list.
        path: names and indices, separated by dots.
        value: the new value.
        label: name of the key in errors.
    """
    step, dot, rest = path.partition(".")
    shown = f"'{one_line(step, 40)}'"
    if isinstance(setting, dict):
        if dot and step not in setting:
            raise UserError(f"{label}: there is no {shown}", nearest(step, tuple(setting)))
        problem = ""
    elif isinstance(setting, tuple):
        is_index = step.isdecimal() and len(step) <= MOST_DIGITS and int(step) < len(setting)
        problem = "" if is_index else f"{shown} is none of its {len(setting)} entries; count from 0"
    else:
        problem = f"{checks.show(setting)} has no {shown}; end the key before it, and give all of the value"
    if problem:
        raise UserError(f"{label}: {problem}")
    place: Any = int(step) if isinstance(setting, tuple) else checks.path(step, label)
    new = _inside(setting[place], rest, value, label) if dot else checks.plain(value, label)
    return (*setting[:place], new, *setting[place + 1 :]) if isinstance(setting, tuple) else {**setting, place: new}


def _entries(scenario: Scenario, section: str, name: str, value: Any, label: str) -> dict[str, Any]:
    """Return ``{name: value}``; for a branch of parameters the values of its leaves by path."""
    if section != "params" or not paths.is_branch(name, scenario.declared):
        return {name: value}
    with within(f"{label}: "):
        entries = paths.by_leaf({name: value}, scenario.declared)
    return {path: unwrapped(entry, path) for path, entry in entries.items()}


def _unwrapped(value: Any, label: str) -> Any:
    """Return plain data: lists in place of arrays, the text of the file in place of a path."""
    value = unwrapped(value, label)
    return read_texts(value, label) if isinstance(value, Path) else value


def parameter_value(scenario: Scenario, name: str, value: Any, where: str) -> Numbers:
    """Return a value for a parameter, with the shape of its default and inside its bounds.

    Args:
        scenario: with the parameter.
        name: of the parameter.
        value: a number or nested lists of numbers.
        where: name of the value in errors.

    Raises:
        UserError: if there is no such parameter, the shape differs or an entry is out of bounds.
    """
    if name not in scenario.declared:
        raise UserError(f"{where} is not a parameter of {scenario.simulation}", paths.hint(name, scenario.declared))
    parameter, settings = scenario.declared[name], scenario.parameter_settings.get(name, ParameterSettings())
    bounds = settings.bounds or parameter.bounds
    array, shape = checks.numbers(value, where), shape_of(parameter.default)
    if shape_of(array) != shape:
        is_given = settings.default is not None and shape_of(settings.default) == shape
        example = settings.default if is_given else parameter.default
        checks.refuse(value, where, f"does not have the default's shape; write it like {checks.show(example)}")
    return checks.inside(array, where, bounds)


def _locate(scenario: Scenario, key: str, label: str) -> tuple[str, str]:
    """Return the section and the name of a key."""
    prefix, dot, rest = key.partition(".")
    if dot and prefix in ("config", "params", "run") and (prefix != "run" or rest in RUN_KEYS):
        return prefix, rest
    sections = {"config": tuple(scenario.config), "params": tuple(scenario.declared), "run": tuple(RUN_KEYS)}
    places = [section for section, names in sections.items() if key in names]
    if _is_the_parameter(scenario, key):
        places.remove("config")
    if not places and paths.is_branch(key, scenario.declared):
        return "params", key
    if not places and dot and prefix in scenario.config:
        return "config", key
    if len(places) != 1:
        ways = " or ".join(f"{section}.{key}" for section in places)
        known = [name for names in sections.values() for name in names]
        problem = f"is ambiguous; write {ways}" if places else f"is not a key of {scenario.name}"
        meant = closest(rest if prefix == "run" else key, known)
        remedy = Remedy("rename", meant) if meant and not places else None
        hint = "" if places else _hint(scenario, key, known)
        raise UserError(f"{label} {problem}", hint, key=key, allowed=known, remedy=remedy)
    return places[0], key


def _hint(scenario: Scenario, key: str, known: list[str]) -> str:
    """Return what may have been meant by an unknown key, as the end of a message."""
    prefix, dot, rest = key.partition(".")
    if dot and prefix == "run":
        return nearest(rest, tuple(RUN_KEYS))
    if dot and (elsewhere := _elsewhere(scenario, prefix)):
        return elsewhere
    if inner := [f"config.{path}" for path in paths.leaves(scenario.config) if path.endswith(f".{key}")]:
        return Hint(f"; did you mean {' or '.join(map(repr, inner[:4]))}?", inner[0])
    if closest(key, known):
        return nearest(key, known)
    factory = _factory(scenario)
    if argument := closest(prefix, arguments_of(factory) if factory else ()):
        return Hint(f"; did you mean 'config.{argument}{dot}{rest}'?", f"config.{argument}{dot}{rest}")
    other = f"an argument of {scenario.simulation} that {scenario.file} does not mention"
    return nearest(key, known) + f"; {other} is written config.{one_line(key, 80)}"


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
    label, name = f"--over {one_line(key, 80)}", key.removeprefix("params.")
    parts = [part.strip() for part in spec.split(":")]
    is_range = len(parts) > 1 and not key.startswith(CONFIG)
    counts = (2, 3) if sampled else (3, 4)
    if not spec or ((is_range or sampled) and (len(parts) not in counts or parts[counts[0] :] not in ([], ["log"]))):
        usual = "low:high or low:high:log" if sampled else "low:high:count or low:high:count:log, or a list a,b,c"
        raise UserError(f"{label}{equals}{one_line(spec, 60)} is not a range; write {label}={usual}")
    if key.startswith(CONFIG):
        values = tuple(parse_value(part, label) for part in _listed(spec))
        _check_count(values, label)
        return key, values
    parameter = _swept(scenario, name, label)
    if sampled:
        return name, (_number(parts[0], label), _number(parts[1], label), *parts[2:])
    values = _range(parts, label) if is_range else [_number(part, label) for part in spec.split(",")]
    if not zipped:
        check_distinct(label, values)
    _check_count(values, label)
    for value in values:
        checks.inside(value, label, parameter.bounds)
    return name, tuple(values)


def _swept(scenario: Scenario, name: str, label: str) -> Parameter:
    """Return the parameter of that name, which must be a single number."""
    hint = None
    if name in scenario.config:
        hint = Hint(f"; write --over config.{name}=a,b for values of the configuration, one compilation each")
    elif name in RUN_KEYS or name.startswith("run."):
        hint = Hint("; only parameters and config can be swept")
    with about(name):
        return single_parameter(scenario, name, label, hint)


def single_parameter(scenario: Scenario, name: str, where: str, hint: Hint | None = None) -> Parameter:
    """Return a parameter that is a single number.

    Args:
        scenario: with the parameter.
        name: of the parameter.
        where: what names it, for messages.
        hint: what to write in place of a name that is none; by default the nearest.

    Raises:
        UserError: if there is no such parameter, or it is an array.
    """
    known_names = scenario.parameters
    if name not in known_names:
        hint = hint or paths.hint(str(name), known_names)
        raise UserError(f"{where} is not a parameter of {scenario.name}", hint)
    if isinstance(known_names[name].default, tuple):
        raise UserError(f"{where} is an array; name a parameter that is a single number")
    return known_names[name]


def _check_count(values: Sequence[Any], label: str) -> None:
    if not 2 <= len(values) <= MAX_COUNT:
        plural = "s" * (len(values) != 1)
        raise UserError(f"{label} gives {len(values)} value{plural}; give 2 to {MAX_COUNT}, or use --set for one")


def _listed(spec: str) -> list[str]:
    """Return the parts of a list that are separated by commas outside brackets and quotes."""
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
    return parts


def _range(parts: list[str], label: str) -> list[float]:
    """Return the values of ``low:high:count`` or ``low:high:count:log``."""
    low, high = _number(parts[0], label), _number(parts[1], label)
    count = checks.integer(parse_value(parts[2], f"{label} count"), f"{label} count", 2, MAX_COUNT)
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
