"""List of all mistakes of a scenario file, found without running it."""

import dataclasses
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from simkit.core.precision import precision
from simkit.errors import Mistakes, UserError
from simkit.scenario.build import build
from simkit.scenario.factories import takes_parameters
from simkit.scenario.registry import SIMULATIONS
from simkit.scenario.remedies import IN_A_FORMULA, remedied
from simkit.scenario.scenario import Scenario
from simkit.scenario.schema import read_scenario
from simkit.scenario.validations import check_validation

# Beginning of a message about a key: file, table in brackets if a factory or a check refused, path of the key.
_KEY = re.compile(
    r"[^:]+: (?:\[(?P<table>\w+)\]: )?(?:the table )?"
    r"\[?(?P<key>[A-Za-z_][\w-]*(?:\.[\w-]+|\[\d+\])*)(?=\]| =|:| is | has )"
)
# An unknown name with a dot, up to the dot.
_UNKNOWN = re.compile(r": '([^'.]+)\.[^']+' is not known here;")
# Maximum number of times that a simulation is made to find mistakes behind others.
MOST_ROUNDS = 8
# Parts of a scenario without which its simulation cannot be made.
_DECIDING = ("", "simulation", "config", "files")


@dataclasses.dataclass(frozen=True)
class Mistake:
    """One mistake of a scenario file.

    Attributes:
        part: of the file: its first table or key, such as ``"config"``; empty for the file itself.
        key: dotted path of the key; empty if the message has none.
        message: the whole message, in one line.
        remedy: the end of the message: what to do.
    """

    part: str
    key: str
    message: str
    remedy: str


def mistakes_in(path: Path | str) -> tuple[list[Mistake], Scenario | None]:
    """Return all mistakes of a scenario file, and the scenario if it can be read.

    Args:
        path: the TOML file. Its simulation is made and traced, but not run.
    """
    read = Mistakes()
    scenario = None
    with read.kept():
        scenario = read_scenario(path, read)
    found = [mistake(message) for message in read.found]
    if scenario is None or any(each.part in _DECIDING for each in found):
        return found, scenario
    if _lost_parameters(scenario, found) and takes_parameters(SIMULATIONS.resolve(scenario.simulation)):
        return found, scenario
    known = {each.key for each in found}
    built = _mistakes_of_building(scenario, known)
    for index in range(len(scenario.validations)):
        with built.kept():
            try:
                check_validation(scenario, index)
            except UserError as error:
                # A value of [run] with a mistake does not fit those of a validation either.
                overridden = {f"validation[{index}].set.{key}" for key in scenario.validations[index].overrides}
                follows = "run" in {each.part for each in found} and mistake(str(error)).key not in overridden
                if not follows and not any(str(error) == message for message in built.found):
                    raise
    # Mistakes of a key with an example in place of a wrong value are dropped.
    later = [mistake(message) for message in built.found]
    return found + [each for each in later if each.key not in known], scenario


def _lost_parameters(scenario: Scenario, found: Collection[Mistake]) -> bool:
    """Return whether a parameter has a mistake by which it is not declared, so that no formula knows it."""
    names = [each.key.removeprefix("params.") for each in found if each.part == "params"]
    settings = scenario.file_parameter_settings
    declared = [name for name, one in settings.items() if one.default is not None]
    return any(not any(name == one or name.startswith(f"{one}.") for one in declared) for name in names)


def _mistakes_of_building(scenario: Scenario, known: Collection[str]) -> Mistakes:
    """Return the mistakes that are found when a simulation is made.

    A mistake in the configuration hides others. They are found by applying its remedy, or by a number in place of a
    wrong formula, and making the simulation again.

    Args:
        scenario: the scenario.
        known: keys with a mistake in the file itself.
    """
    found, replaced, keys, wrong = Mistakes(), False, set(known), set()
    for _ in range(MOST_ROUNDS):
        built = Mistakes()
        with built.kept(), precision(scenario.run.precision):
            build(scenario, find_all=True)
        listed = [mistake(message) for message in built.found]
        new = [each for each in listed if not each.key or each.key not in keys]
        # Values of a changed formula mean nothing: unknown names in other formulas and parts of the file do.
        if replaced:
            new = [
                each
                for each in new
                if each.part not in ("", "params", "config") or (each.key and IN_A_FORMULA.search(each.message))
            ]
        new = [each for each in new if each.message not in found.found and not _follows_from(wrong, each)]
        found.found += [each.message for each in new]
        keys |= {each.key for each in new if each.key}
        config: dict[str, Any] | None = scenario.config
        hiding = [each for each in listed if each.part == "config"]
        wrong |= {step for each in hiding for step in each.key.split(".")[1:]}
        for each in hiding:
            replaced = replaced or IN_A_FORMULA.search(each.message) is not None
            config = None if config is None else remedied(config, each.key, each.message)
        if config is None or config == scenario.config:
            break
        # Parameters of a replaced formula have no effect, which is no mistake of a changed configuration.
        original = scenario.original or scenario
        scenario = dataclasses.replace(scenario, config=config, known_parameters=None, original=original)
    return found


def _follows_from(wrong: Collection[str], one: Mistake) -> bool:
    """Return whether a mistake is a name such as ``dye.flux_y_lower``, where the configuration of ``dye`` is wrong."""
    unknown = _UNKNOWN.search(one.message)
    return unknown is not None and one.part != "config" and unknown[1] in wrong


def mistake(message: str) -> Mistake:
    """Return a mistake with its key, parsed from the message.

    Args:
        message: one line.
    """
    match = _KEY.match(message)
    table, key = (match["table"] or "", match["key"]) if match else ("", "")
    key = f"{table}.{key}" if table and not key.startswith(table) else key
    _, separator, remedy = message.rpartition("; ")
    return Mistake(re.split(r"[.\[]", key)[0], key, message, remedy if separator else "")
