"""Catalog of scenarios: shipped files by name, other files by path."""

import dataclasses
import os
from pathlib import Path

from simkit.errors import UserError, likeliest, nearest
from simkit.scenario.checks import show
from simkit.scenario.registry import SIMULATIONS
from simkit.scenario.scenario import Scenario
from simkit.scenario.schema import read_scenario

_STARTERS = Path(__file__).parent / "starters"


@dataclasses.dataclass(frozen=True)
class Problem:
    """A scenario file that cannot be used.

    Attributes:
        path: the file.
        message: the reason, in one line.
    """

    path: Path
    message: str


def list_scenarios() -> tuple[list[Scenario], list[Problem]]:
    """Return every shipped scenario, sorted by domain and name, and the files that could not be read.

    Raises:
        UserError: if the folder of shipped scenarios is missing.
    """
    scenarios: dict[str, Scenario] = {}
    problems = []
    for path in _files():
        try:
            scenario = _read_shipped(path)
        except UserError as error:
            problems.append(Problem(path, str(error)))
            continue
        if scenario.name in scenarios:
            problems.append(Problem(path, _twice(scenario.name, scenarios[scenario.name].source, path)))
        else:
            scenarios[scenario.name] = scenario
    return sorted(scenarios.values(), key=lambda scenario: (scenario.domain, scenario.name)), problems


def scenarios_of(simulation: str) -> list[Scenario]:
    """Return the shipped scenarios that use a simulation.

    Args:
        simulation: its registered name.
    """
    return [scenario for scenario in list_scenarios()[0] if scenario.simulation == simulation]


def starter_of(simulation: str) -> Scenario | None:
    """Return the minimal scenario of a simulation whose factory needs arguments; ``None`` if there is none.

    Shipped simulations have a file; for those of packages a scenario that uses the simulation stands in.

    Args:
        simulation: its registered name.
    """
    file = _STARTERS / f"{simulation}.toml"
    if file.is_file():
        return read_scenario(file)
    return next(iter(scenarios_of(simulation)), None)


def find_scenario(name_or_path: str | Path) -> Scenario:
    """Return the shipped scenario of that name, or the one in that file.

    Args:
        name_or_path: a name; or a path, which ends in ``.toml`` or contains a slash.

    Raises:
        UserError: if there is no such scenario, or its file has a mistake.
    """
    path, is_shipped = path_of(name_or_path)
    return _read_shipped(path) if is_shipped else read_scenario(path)


def path_of(name_or_path: str | Path) -> tuple[Path, bool]:
    """Return the file of a scenario, and whether it is a shipped one given by name.

    Args:
        name_or_path: as for `find_scenario`.

    Raises:
        UserError: if no shipped scenario has the name.
    """
    text = str(name_or_path)
    separators = tuple(separator for separator in (os.sep, os.altsep) if separator)
    if isinstance(name_or_path, Path) or text.endswith(".toml") or any(mark in text for mark in separators):
        return Path(name_or_path), False
    files = _files()
    found = [path for path in files if path.stem == text]
    if len(found) > 1:
        raise UserError(_twice(text, *found[:2]))
    if not found:
        _refuse_simulation(text)
        alike = likeliest(text, [path.stem for path in files])
        if Path(f"{text}.toml").is_file():
            alike = [f"{text}.toml"]
        hint = f"; did you mean {' or '.join(map(show, alike))}?" if alike else ";"
        raise UserError(f"unknown scenario {show(text)}{hint} `simkit list` shows every name, and a path ends in .toml")
    return found[0], True


def _refuse_simulation(text: str) -> None:
    """Refuse the name of a simulation, or a similar one, in place of the name of a scenario."""
    simulations = SIMULATIONS.names() if "." in text else []
    if text in simulations:
        users = [path.stem for path in _files() if _read_shipped(path).simulation == text]
        remedy = f"take one of its scenarios ({', '.join(users)}), or write one" if users else "write a scenario of it"
        raise UserError(
            f"{show(text)} is a simulation, not a scenario: {remedy}; `simkit show {text}` lists its parameters"
        )
    SIMULATIONS.refuse_replaced(text)
    hint = nearest(text, simulations)
    if "did you mean" in hint:
        raise UserError(f"unknown scenario or simulation {show(text)}{hint}")


def shipped_folder() -> Path:
    """Return the folder of shipped scenarios: inside an installed package, or beside it in a source tree.

    Raises:
        UserError: if there is none.
    """
    package = Path(__file__).parents[1]
    for folder in (package / "_scenarios", package.parent / "scenarios"):
        if folder.is_dir():
            return folder
    raise UserError(f"the shipped scenarios are missing from {show(str(package))}; install simkit again")


def _files() -> list[Path]:
    """Return the shipped files, one folder per domain, in a fixed order."""
    return sorted(shipped_folder().glob("*/*.toml"))


def _read_shipped(path: Path) -> Scenario:
    """Return a shipped scenario, refusing one with another name than its file: the catalog searches by file name."""
    scenario = read_scenario(path)
    if scenario.name != path.stem:
        raise UserError(f"{scenario.file}: name = {scenario.name!r} is not the file's name; rename one of them")
    return scenario


def _twice(name: str, first: Path, second: Path) -> str:
    paths = " and ".join(show("/".join(path.parts[-2:])) for path in (first, second))
    return f"scenario {show(name)} exists twice: {paths}; rename one of them"
