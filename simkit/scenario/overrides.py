"""Changing a scenario's values from the command line or from Python: ``--set``."""

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
from simkit.scenario.factories import arguments_of, needed_arguments
from simkit.scenario.registry import SIMULATIONS
from simkit.scenario.scenario import Scenario
from simkit.scenario.sections import Difference, RunSettings
from simkit.scenario.toml import parse_value

RUN_KEYS = ("steps", "every", "precision", "seed", "stop")


def apply_overrides(scenario: Scenario, settings: Sequence[str]) -> Scenario:
    """Return the scenario with ``key=value`` settings applied.

    A key is a parameter, a key of ``[config]`` or one of ``[run]``, written ``params.KEY``, ``config.KEY`` or
    ``run.KEY`` where the bare name is ambiguous; an argument that the factory needs goes by its bare name too. A value
    is written as in TOML; a bare word is a string, and ``@path`` is the text of a file. ``config.KEY`` and
    ``params.KEY`` may also name what the factory has and the file does not mention; whether the factory has it is found
    when the simulation is built.

    Args:
        scenario: what to change.
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
    """Return where the value of a key is, ``params.KEY``, ``config.KEY`` or ``run.KEY``.

    Args:
        scenario: with the values.
        key: as for `apply_overrides`, and allowed.
    """
    prefix, dot, _ = key.partition(".")
    if (dot and prefix in ("config", "params", "run")) or key in RUN_KEYS:
        return key if dot else f"run.{key}"
    return f"{'config' if key in scenario.config or (dot and prefix in scenario.config) else 'params'}.{key}"


def with_values(
    scenario: Scenario, values: Mapping[str, Any], where: Callable[[str], str] = "value of {}".format
) -> Scenario:
    """Return the scenario with values replaced by key, each checked as in the file.

    Args:
        scenario: what to change.
        values: plain data by key; keys as for ``apply_overrides``. A ``Path`` stands for the text of that file.
        where: gives the words that name a key in an error.

    Raises:
        UserError: as ``apply_overrides``.
    """
    values = {key: _unwrapped(value, where(key)) for key, value in values.items()}
    config = dict(scenario.config)
    for key, value in values.items():
        label, name = where(key), key.removeprefix("config.")
        step, dot, inner = name.partition(".")
        if key == name and name in scenario.config and name in scenario.differences:
            raise UserError(f"{label} is ambiguous; write config.{name} or params.{name}")
        if name in scenario.config:
            config[name] = checks.like(value, label, scenario.config[name])
        elif dot and step in config and (key != name or name not in scenario.declared):
            config[step] = _inside(config[step], inner, value, label)
        elif key != name or (name not in RUN_KEYS and name in _needed(scenario)):
            config[checks.name(name, label)] = checks.plain(value, label)
    original = scenario.original or scenario
    # On the configuration depends what parameters there are.
    if config != scenario.config:
        scenario = dataclasses.replace(scenario, config=config, known_parameters=None, original=original)
    run, differences = {}, dict(scenario.differences)
    seen: set[tuple[str, str]] = set()
    for key, value in values.items():
        label = where(key)
        section, located = _locate(scenario, key, label)
        for name, entry in _entries(scenario, section, located, value, label).items():
            if other := next((one for place, one in seen if place == section and _overlap(name, one)), None):
                raise UserError(f"{label} names {section}.{max(name, other, key=len)} twice; keep one of them")
            seen.add((section, name))
            if section == "run":
                run[name] = checks.run_setting(name, entry, label)
            elif section == "params":
                checked, said = parameter_value(scenario, name, entry, label), differences.get(name, Difference())
                if checked != (scenario.declared[name].default if said.default is None else said.default):
                    differences[name] = dataclasses.replace(said, default=checked)
    settings = dataclasses.replace(scenario.run, **run)
    if settings.steps % settings.every:
        raise UserError(_indivisible(settings, "steps" if "steps" in run else "every", where))
    known = scenario.declared if differences != scenario.differences else scenario.known_parameters
    return dataclasses.replace(
        scenario,
        differences=differences,
        original=original,
        run=settings,
        known_parameters=known if settings.precision == scenario.run.precision else None,
    )


def _overlap(name: str, other: str) -> bool:
    """Tell whether two paths are the same, or one lies inside the other."""
    return f"{name}.".startswith(f"{other}.") or f"{other}.".startswith(f"{name}.")


def _needed(scenario: Scenario) -> list[str]:
    """Return the arguments without which there is no simulation to look for parameters of, and which are missing."""
    factory = _factory(scenario)
    return [name for name in needed_arguments(factory) if name not in scenario.config] if factory else []


def _factory(scenario: Scenario) -> Callable[..., Any] | None:
    """Return what makes the scenario's simulation, if that is installed and not one made in Python."""
    is_known = scenario.made is None and scenario.simulation in SIMULATIONS.names()
    return SIMULATIONS.resolve(scenario.simulation) if is_known else None


def _inside(setting: Any, path: str, value: Any, label: str) -> Any:
    """Return a nested setting with one value in it replaced, or added to a table.

    Args:
        setting: a table or a list.
        path: names and indices with dots between.
        value: the new one.
        label: the words that name the key in an error.
    """
    step, dot, rest = path.partition(".")
    if isinstance(setting, dict):
        if dot and step not in setting:
            raise UserError(f"{label}: there is no '{one_line(step, 40)}'{nearest(step[:64], tuple(setting))}")
        new = _inside(setting[step], rest, value, label) if dot else checks.plain(value, label)
        return {**setting, checks.name(step, label): new}
    if not isinstance(setting, tuple):
        raise UserError(f"{label}: {checks.show(setting)} has no '{one_line(step, 40)}'; end the key before it")
    if not step.isdecimal() or int(step) >= len(setting):
        raise UserError(f"{label}: '{one_line(step, 40)}' is none of its {len(setting)} entries; count from 0")
    place = int(step)
    new = _inside(setting[place], rest, value, label) if dot else checks.plain(value, label)
    return (*setting[:place], new, *setting[place + 1 :])


def _entries(scenario: Scenario, section: str, name: str, value: Any, label: str) -> dict[str, Any]:
    """Return a value by its name; of a branch of parameters, which is given as a tree, those of its leaves."""
    if section != "params" or not paths.is_branch(name, scenario.declared):
        return {name: value}
    try:
        found = paths.given({name: value}, scenario.declared)
    except UserError as error:
        raise UserError(f"{label}: {error}") from None
    return {path: checks.unwrapped(entry) for path, entry in found.items()}


def _unwrapped(value: Any, label: str) -> Any:
    """Return plain data: of arrays their numbers, of a path the text of its file."""
    value = checks.unwrapped(value)
    return inlined.read_text(value, label) if isinstance(value, Path) else value


def parameter_value(scenario: Scenario, name: str, value: Any, where: str) -> Numbers:
    """Return a value for a parameter, of its default's shape and inside its bounds.

    Args:
        scenario: whose parameter it is.
        name: which parameter.
        value: a number or nested lists of them.
        where: the words that name it in an error.

    Raises:
        UserError: if there is no such parameter, the shape does not fit or an entry is out of bounds.
    """
    if name not in scenario.declared:
        hint = paths.hint(name, scenario.declared)
        raise UserError(f"{where} is not a parameter of {scenario.simulation}{hint}")
    parameter, said = scenario.declared[name], scenario.differences.get(name, Difference())
    bounds = said.bounds or parameter.bounds
    array, shape = checks.numbers(value, where), checks.shape(parameter.default)
    if checks.shape(array) != shape:
        known = said.default if said.default is not None and checks.shape(said.default) == shape else parameter.default
        checks.refuse(value, where, f"does not have the default's shape; write it like {checks.show(known)}")
    return checks.inside(array, where, bounds)


def _locate(scenario: Scenario, key: str, label: str) -> tuple[str, str]:
    """Return the section and name that a key refers to."""
    prefix, dot, rest = key.partition(".")
    if dot and prefix == "run" and rest not in RUN_KEYS:
        raise UserError(f"{label} is not a key of {scenario.name}{nearest(rest[:64], RUN_KEYS)}")
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
        known = [name for names in sections.values() for name in names]
        factory = _factory(scenario)
        hint, name = nearest(key[:64], known), one_line(key, 80)
        if closest(key[:64], known) is None:
            unsaid = closest(key[:64], arguments_of(factory) if factory else ())
            unnamed = f"an argument of {scenario.simulation} that {scenario.file} does not mention"
            remedy = f"{unnamed} is written config.{name}"
            hint = f"; did you mean 'config.{unsaid}'?" if unsaid else f"{hint}; {remedy}"
        raise UserError(f"{label} is not a key of {scenario.name}{hint}")
    return found[0], key


def _indivisible(run: RunSettings, changed: str, where: Callable[[str], str]) -> str:
    """Return the message for steps that are not a multiple of every."""
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
