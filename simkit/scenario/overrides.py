"""Overrides of the values of a scenario, from the command line (``--set``) or from Python."""

import dataclasses
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from simkit.core import paths
from simkit.core.parameter import Numbers
from simkit.errors import UserError, closest, nearest, one_line
from simkit.scenario import checks, inlined
from simkit.scenario.factories import arguments_of, needed_arguments, takes_any
from simkit.scenario.registry import REPLACED_ARGUMENTS, SIMULATIONS
from simkit.scenario.scenario import Scenario
from simkit.scenario.sections import KEYS, TABLES, ParameterSettings, RunSettings
from simkit.scenario.toml import parse_value

# Digits of an index in a list; Python refuses to read a number of thousands.
MOST_DIGITS = 9
RUN_KEYS = ("steps", "every", "precision", "seed", "stop")


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
        key, label = key.strip(), f"--set {one_line(key, 80)}"
        if not equals:
            raise UserError(f"{label} has no value; write --set {one_line(key, 80) or 'key'}=value")
        if key in values:
            raise UserError(f"{label} is given twice; keep one of them")
        text = text.strip()
        if text.startswith("@"):
            values[key] = Path(os.path.expanduser(text[1:]))
        else:
            # A condition is text with or without quotes.
            is_bare = key.removeprefix("run.") == "stop" and text[:1] not in ("'", '"')
            values[key] = text if is_bare else parse_value(text, label)
    return values


def place_of(scenario: Scenario, key: str) -> str:
    """Return a key with its section, ``params.KEY``, ``config.KEY`` or ``run.KEY``.

    Args:
        scenario: with the values.
        key: as for `apply_overrides`; one that is allowed.
    """
    prefix, dot, _ = key.partition(".")
    if (dot and prefix in ("config", "params", "run")) or key in RUN_KEYS:
        return key if dot else f"run.{key}"
    return f"{'config' if key in scenario.config or (dot and prefix in scenario.config) else 'params'}.{key}"


def with_values(
    scenario: Scenario, values: Mapping[str, Any], where: Callable[[str], str] = "value of {}".format
) -> Scenario:
    """Return the scenario with values replaced, each checked as in the file.

    Args:
        scenario: to be changed.
        values: plain data by key; keys as for ``apply_overrides``. A ``Path`` is replaced by the text of that file.
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
            raise UserError(f"{label} is ambiguous; write config.{name} or params.{name}")
        if name in scenario.config:
            # Declared settings are checked against their declaration; others must be like the value in the file.
            is_declared = name in getattr(_factory(scenario), "settings", {})
            config[name] = (
                checks.plain(value, label) if is_declared else checks.like(value, label, scenario.config[name])
            )
        elif dot and step in config and (key != name or not _is_parameter(scenario, name)):
            config[step] = _inside(config[step], inner, value, label)
        elif dot and key != name and inner:
            config[step] = _begun(scenario, step, inner, value, label)
        elif key != name or (name not in RUN_KEYS and name in _needed(scenario)):
            config[checks.name(name, label)] = checks.plain(value, label)
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
                run[name] = checks.run_setting(name, entry, label)
            elif section == "params":
                checked, old = parameter_value(scenario, name, entry, label), changes.get(name, ParameterSettings())
                if checked != (scenario.declared[name].default if old.default is None else old.default):
                    changes[name] = dataclasses.replace(old, default=checked)
    settings = dataclasses.replace(scenario.run, **run)
    if settings.steps % settings.every:
        raise UserError(_indivisible(settings, "steps" if "steps" in run else "every", where))
    known = scenario.declared if changes != scenario.parameter_settings else scenario.known_parameters
    return dataclasses.replace(
        scenario,
        parameter_settings=changes,
        original=original,
        run=settings,
        known_parameters=known if settings.precision == scenario.run.precision else None,
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
    known = [*defaults, *(needed_arguments(factory) if factory else ())]
    if factory and not takes_any(factory) and name not in known:
        if name in KEYS + TABLES:
            raise UserError(f"{label}: {_not_in_config(scenario, name)}")
        shown, argument = one_line(name, 40), closest(name, known)
        hint = f"; did you mean 'config.{argument}.{one_line(path, 40)}'?" if argument else nearest(name, known)
        raise UserError(f"{label}: '{shown}' is not an argument of {scenario.simulation}{hint}")
    declared = getattr(factory, "settings", {}).get(name)
    form = declared.form if declared else "value"
    default = {"list": (), "table": {}, "names": {}}.get(form, checks.plain(defaults.get(name) or {}, label))
    steps = path.split(".") if isinstance(default, dict) and path.partition(".")[0] not in default else [path]
    for step in reversed(steps[1:]):
        value = {step: value}
    return _inside(default, steps[0], value, label)


def _not_in_config(scenario: Scenario, table: str) -> str:
    """Return the reason why a part of a scenario file cannot be set for a run, and the remedy."""
    return (
        f"only values of [params], [config] and [run] are set for a run; change {table} in {scenario.file}, "
        "or in a copy that `simkit new` makes"
    )


def _inside(setting: Any, path: str, value: Any, label: str) -> Any:
    """Return a nested setting with one value replaced, or added to a table.

    Args:
        setting: a table or a list.
        path: names and indices, separated by dots.
        value: the new value.
        label: name of the key in errors.
    """
    step, dot, rest = path.partition(".")
    if isinstance(setting, dict):
        if dot and step not in setting:
            raise UserError(f"{label}: there is no '{one_line(step, 40)}'{nearest(step, tuple(setting))}")
        new = _inside(setting[step], rest, value, label) if dot else checks.plain(value, label)
        return {**setting, checks.name(step, label): new}
    if not isinstance(setting, tuple):
        raise UserError(f"{label}: {checks.show(setting)} has no '{one_line(step, 40)}'; end the key before it")
    if not step.isdecimal() or len(step) > MOST_DIGITS or int(step) >= len(setting):
        raise UserError(f"{label}: '{one_line(step, 40)}' is none of its {len(setting)} entries; count from 0")
    index = int(step)
    new = _inside(setting[index], rest, value, label) if dot else checks.plain(value, label)
    return (*setting[:index], new, *setting[index + 1 :])


def _entries(scenario: Scenario, section: str, name: str, value: Any, label: str) -> dict[str, Any]:
    """Return ``{name: value}``; for a branch of parameters the values of its leaves by path."""
    if section != "params" or not paths.is_branch(name, scenario.declared):
        return {name: value}
    try:
        entries = paths.given({name: value}, scenario.declared)
    except UserError as error:
        raise UserError(f"{label}: {error}") from None
    return {path: checks.unwrapped(entry) for path, entry in entries.items()}


def _unwrapped(value: Any, label: str) -> Any:
    """Return plain data: lists in place of arrays, the text of the file in place of a path."""
    value = checks.unwrapped(value)
    return inlined.read_text(value, label) if isinstance(value, Path) else value


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
        hint = paths.hint(name, scenario.declared)
        raise UserError(f"{where} is not a parameter of {scenario.simulation}{hint}")
    parameter, settings = scenario.declared[name], scenario.parameter_settings.get(name, ParameterSettings())
    bounds = settings.bounds or parameter.bounds
    array, shape = checks.numbers(value, where), checks.shape(parameter.default)
    if checks.shape(array) != shape:
        is_given = settings.default is not None and checks.shape(settings.default) == shape
        example = settings.default if is_given else parameter.default
        checks.refuse(value, where, f"does not have the default's shape; write it like {checks.show(example)}")
    return checks.inside(array, where, bounds)


def _locate(scenario: Scenario, key: str, label: str) -> tuple[str, str]:
    """Return the section and the name of a key."""
    prefix, dot, rest = key.partition(".")
    if dot and prefix == "run" and rest not in RUN_KEYS:
        raise UserError(f"{label} is not a key of {scenario.name}{nearest(rest, RUN_KEYS)}")
    if dot and prefix in ("config", "params", "run"):
        return prefix, rest
    sections = {"params": tuple(scenario.declared), "config": tuple(scenario.config), "run": RUN_KEYS}
    found = [section for section, names in sections.items() if key in names]
    if not found and paths.is_branch(key, scenario.declared):
        return "params", key
    if not found and dot and prefix in scenario.config:
        return "config", key
    if len(found) > 1:
        raise UserError(f"{label} is ambiguous; write {' or '.join(f'{section}.{key}' for section in found)}")
    if not found:
        if dot and prefix in KEYS + TABLES:
            raise UserError(f"{label}: {_not_in_config(scenario, prefix)}")
        if inner := [f"'config.{path}'" for path in paths.leaves(scenario.config) if path.endswith(f".{key}")]:
            raise UserError(f"{label} is not a key of {scenario.name}; did you mean {' or '.join(inner[:4])}?")
        if key in (replaced := REPLACED_ARGUMENTS.get(scenario.simulation, {})):
            raise UserError(f"{label} is not a key of {scenario.name}; use {replaced[key]}")
        known = [name for names in sections.values() for name in names]
        factory = _factory(scenario)
        hint, name = nearest(key, known), one_line(key, 80)
        if closest(key, known) is None:
            argument = closest(prefix, arguments_of(factory) if factory else ())
            other = f"an argument of {scenario.simulation} that {scenario.file} does not mention"
            remedy = f"{other} is written config.{name}"
            hint = f"; did you mean 'config.{argument}{dot}{rest}'?" if argument else f"{hint}; {remedy}"
        raise UserError(f"{label} is not a key of {scenario.name}{hint}")
    return found[0], key


def _indivisible(run: RunSettings, changed: str, where: Callable[[str], str]) -> str:
    """Return the message for ``steps`` that are not a multiple of ``every``."""
    steps, every = run.steps, run.every
    below, above = nearest_multiples(steps, every)
    pairs = ((divisor, steps // divisor) for divisor in range(1, math.isqrt(steps) + 1) if steps % divisor == 0)
    closest = min((divisor for pair in pairs for divisor in pair), key=lambda divisor: (abs(divisor - every), divisor))
    flags = {key: where(key).rpartition(": ")[2] for key in ("steps", "every")}
    return (
        f"{where(changed)}: steps = {steps} is not a multiple of every = {every}; "
        f"use {flags['steps']}={f'{below} or {above}' if below else above}, or {flags['every']}={closest}"
    )


def nearest_multiples(steps: int, every: int) -> tuple[int, int]:
    """Return the multiples of ``every`` just below and just above ``steps``."""
    below = steps - steps % every
    return below, below + every
