"""List of all mistakes of a scenario file, found without running it.

A mistake in the configuration hides others. They are found by removing it as its remedy says, and making the simulation
again.
"""

import dataclasses
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from simkit.core.precision import precision
from simkit.errors import Mistakes, UserError
from simkit.scenario.build import build, check_validation
from simkit.scenario.catalog import read_scenario
from simkit.scenario.registry import SIMULATIONS, takes_parameters
from simkit.scenario.scenario import Scenario

# Maximum number of times that a simulation is made to find mistakes behind others.
MOST_ROUNDS = 8
# Parts of a scenario without which its simulation cannot be made.
_DECIDING = ("", "simulation", "config", "files")
_STEP = re.compile(r"[^.\[\]]+|\[\d+\]")


def part_of(error: UserError) -> str:
    """Return the part of a scenario file that a mistake is about: its first table or key; empty for the file itself.

    Args:
        error: the mistake.
    """
    return re.split(r"[.\[]", error.key)[0]


def mistakes_in(
    path: Path | str, changed: Callable[[Scenario], Scenario] = lambda scenario: scenario
) -> tuple[list[UserError], Scenario | None]:
    """Return all mistakes of a scenario file, and the scenario if it can be read.

    Args:
        path: the TOML file. Its simulation is made and traced, but not run.
        changed: ``scenario -> `` the scenario with values of a user in place of those of the file.
    """
    read = Mistakes()
    scenario = None
    with read.kept():
        scenario = read_scenario(path, read)
        scenario = changed(scenario)
    mistakes = read.found
    if scenario is None or any(part_of(each) in _DECIDING for each in mistakes):
        return mistakes, scenario
    if _lost_parameters(scenario, mistakes) and takes_parameters(SIMULATIONS.resolve(scenario.simulation)):
        return mistakes, scenario
    keys = {each.key for each in mistakes}
    built = _mistakes_of_building(scenario, keys)
    for index in range(len(scenario.validations)):
        with built.kept():
            try:
                check_validation(scenario, index)
            except UserError as error:
                # A value of [run] with a mistake does not fit those of a validation either.
                overridden = {f"validation[{index}].set.{key}" for key in scenario.validations[index].overrides}
                follows = "run" in map(part_of, mistakes) and error.key not in overridden
                if not follows and str(error) not in map(str, built.found):
                    raise
    # Mistakes of a key with an example in place of a wrong value are dropped.
    return mistakes + [each for each in built.found if not each.key or each.key not in keys], scenario


def _lost_parameters(scenario: Scenario, found: Collection[UserError]) -> bool:
    """Return whether a parameter has a mistake by which it is not declared, so that no formula knows it."""
    names = [each.key.removeprefix("params.") for each in found if part_of(each) == "params"]
    settings = scenario.file_parameter_settings
    declared = [name for name, one in settings.items() if one.default is not None]
    return any(not any(name == one or name.startswith(f"{one}.") for one in declared) for name in names)


def _mistakes_of_building(scenario: Scenario, known: Collection[str]) -> Mistakes:
    """Return the mistakes that are found when a simulation is made, also those that others hide.

    Args:
        scenario: the scenario.
        known: keys with a mistake in the file itself.
    """
    collected, replaced, keys, wrong = Mistakes(), False, set(known), set()
    for _ in range(MOST_ROUNDS):
        built = Mistakes()
        with built.kept(), precision(scenario.run.precision):
            build(scenario, find_all=True)
        messages = set(map(str, collected.found))
        new = [each for each in built.found if not each.key or each.key not in keys]
        # Values of a changed formula mean nothing: unknown names in other formulas and parts of the file do.
        new = [each for each in new if not replaced or _is_sure(each)]
        new = [each for each in new if str(each) not in messages and not _follows_from(wrong, each)]
        collected.found += new
        keys |= {each.key for each in new if each.key}
        config: Any = scenario.config
        hiding = [each for each in built.found if part_of(each) == "config"]
        wrong |= {step for each in hiding for step in each.key.split(".")[1:]}
        for each in hiding:
            replaced = replaced or (each.remedy is not None and each.remedy.of_formula)
            config = None if config is None else repaired(config, each)
        if config is None or config == scenario.config:
            break
        # Parameters of a replaced formula have no effect, which is no mistake of a changed configuration.
        original = scenario.original or scenario
        scenario = dataclasses.replace(scenario, config=config, known_parameters=None, original=original)
    return collected


def _is_sure(error: UserError) -> bool:
    """Return whether a mistake is one whatever the values of formulas are."""
    is_formula = error.remedy is not None and error.remedy.of_formula
    return part_of(error) not in ("", "params", "config") or (error.key != "" and is_formula)


def _follows_from(wrong: Collection[str], error: UserError) -> bool:
    """Return whether a mistake is a name such as ``dye.flux_y_lower``, where the configuration of ``dye`` is wrong."""
    first, dot, _ = (error.remedy.unknown if error.remedy else "").partition(".")
    return dot != "" and part_of(error) != "config" and first in wrong


def repaired(config: Mapping[str, Any], error: UserError) -> dict[str, Any] | None:
    """Return a configuration without one of its mistakes; ``None`` if there is no remedy that can be applied.

    Args:
        config: the configuration.
        error: the mistake; its key begins with ``config``.
    """
    first, *steps = _STEP.findall(error.key)
    remedy = error.remedy
    if first != "config" or not steps or remedy is None:
        return None

    def change(table: dict[Any, Any], step: Any) -> dict[Any, Any]:
        if remedy.action == "replace":
            return {**table, step: remedy.value}
        others = {key: value for key, value in table.items() if key != step}
        return {remedy.value: table[step], **others} if remedy.action == "rename" else others

    return _changed(config, steps, change)


def _changed(value: Any, steps: list[str], change: Callable[[dict[Any, Any], Any], dict[Any, Any]]) -> Any:
    """Return nested tables and lists with the entry at a path changed; ``None`` if there is none."""
    is_list = isinstance(value, tuple)
    table = dict(enumerate(value)) if is_list else value
    step: Any = int(steps[0][1:-1]) if steps[0].startswith("[") else steps[0]
    if not isinstance(table, Mapping) or step not in table:
        return None
    if len(steps) > 1:
        inner = _changed(table[step], steps[1:], change)
        changed = None if inner is None else {**table, step: inner}
    else:
        changed = change(dict(table), step)
    return tuple(changed.values()) if is_list and changed is not None else changed
