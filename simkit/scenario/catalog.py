"""Scenario files: their declaration, reading, and search by name and path."""

import dataclasses
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from simkit.core.files import MAX_FILE_BYTES, read_text
from simkit.core.paths import below
from simkit.core.settings import named, read, text
from simkit.core.settings.records import fields_of, keys_of
from simkit.errors import Mistakes, Remedy, UserError, closest, known, likeliest
from simkit.scenario.checks import parse_toml, show
from simkit.scenario.files import Files, own_part
from simkit.scenario.registry import SIMULATIONS
from simkit.scenario.scenario import Scenario, file_label

MAX_BYTES = 2**20
# Keys and tables at the top of a file.
FILE = {**keys_of(Scenario), "files": named("texts of files that values name", text("a text"), ".+")}


def read_scenario(path: Path | str, mistakes: Mistakes | None = None) -> Scenario:
    """Read a scenario file.

    Args:
        path: the TOML file.
        mistakes: collects mistakes, as for `parse_scenario`.

    Raises:
        UserError: if it cannot be read, is over 1 MiB (without the files in it), or has a mistake.
    """
    # Escapes may double the text of a file.
    text = read_text(path, "scenario", MAX_BYTES + 2 * MAX_FILE_BYTES)
    if len(own_part(text.encode())) > MAX_BYTES:
        raise UserError(f"{file_label(Path(path))}: the file is over 1 MiB; a scenario is a page, keep data elsewhere")
    return parse_scenario(text, path, mistakes)


def parse_scenario(text: str, source: Path | str, mistakes: Mistakes | None = None) -> Scenario:
    """Return the scenario of a TOML text.

    Args:
        text: of the file.
        source: path of the file; errors show its last part.
        mistakes: collects mistakes, with defaults and examples in place of wrong values; ``None`` raises them.

    Raises:
        UserError: if the text has a mistake; ``others`` has the further ones.
    """
    source = Path(source)
    file = file_label(source)
    document, wrong = parse_toml(text, file), Mistakes()
    stored = document.get("files", {})
    is_read = isinstance(stored, dict) and all(isinstance(each, str) for each in stored.values())
    files = wrong.result(
        "files", lambda: Files(stored if is_read else {}, source.parent), lambda: Files({}, source.parent)
    )
    for path, table in _with_files(document):
        for key, value in table.items():
            table[key] = wrong.result(below(path, key), partial(files.resolve, value, below(path, key)), lambda: "")
    entries = wrong.result("", lambda: read(document, FILE), dict)
    made = wrong.result("", lambda: _scenario(entries, source, text), lambda: None)
    kept = wrong.result("files", partial(files.kept_in, text), lambda: text)
    collected = Mistakes() if mistakes is None else mistakes
    collected.found += [error.within("", f"{file}: ") for error in wrong.found]
    if mistakes is None or made is None:
        collected.raise_if_any()
    assert made is not None
    return dataclasses.replace(made, text=kept)


def _with_files(document: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the tables whose values may name files, with their paths."""
    listed = document.get("validation")
    places = {"config": document.get("config")} | {
        f"validation[{index}].set": each.get("set") if isinstance(each, dict) else None
        for index, each in enumerate(listed if isinstance(listed, list) else ())
    }
    return [(path, table) for path, table in places.items() if isinstance(table, dict)]


def _scenario(entries: Mapping[str, Any], source: Path, text: str) -> Scenario:
    """Return the scenario of a checked file."""
    objectives = {
        name: dataclasses.replace(each, name=name, quantity="" if each.expression else each.quantity or name)
        for name, each in entries["objectives"].items()
    }
    mistakes = Mistakes()
    quantities = {name: each.quantity for name, each in objectives.items()}
    validations = [
        dataclasses.replace(each, quantity=quantities.get(each.objective, each.quantity))
        for each in entries["validation"]
    ]
    for index, each in enumerate(validations):
        with mistakes.kept():
            if each.objective is not None:
                known(each.objective, objectives, f"validation[{index}].objective")
    values = fields_of(Scenario, entries) | {"objectives": objectives, "validations": tuple(validations)}
    values["title"] = values["title"] or values["name"].replace("_", " ").capitalize()
    scenario = Scenario(**values, source=source, text=text)
    mistakes.raise_if_any(scenario)
    return scenario


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
    matches = [path for path in files if path.stem == text]
    if len(matches) > 1:
        raise UserError(_twice(text, *matches[:2]))
    if not matches:
        _refuse_simulation(text)
        alike = likeliest(text, [path.stem for path in files])
        if Path(f"{text}.toml").is_file():
            alike = [f"{text}.toml"]
        hint = f"; did you mean {' or '.join(map(show, alike))}?" if alike else ";"
        if Path(text or "?").is_dir():
            hint = "; it is a folder, and that of a run is for `simkit resume`, `render` and `export` to files of data;"
        raise UserError(
            f"unknown scenario {show(text)}{hint} `simkit list` shows every name, and a path ends in .toml",
            allowed=[path.stem for path in files],
            remedy=Remedy("replace", alike[0]) if alike else None,
        )
    return matches[0], True


def _refuse_simulation(text: str) -> None:
    """Refuse the name of a simulation, or a similar one, in place of the name of a scenario."""
    simulations = SIMULATIONS.names() if "." in text else []
    if text in simulations:
        users = [path.stem for path in _files() if _read_shipped(path).simulation == text]
        remedy = f"take one of its scenarios ({', '.join(users)}), or write one" if users else "write a scenario of it"
        raise UserError(
            f"{show(text)} is a simulation, not a scenario: {remedy}; `simkit show {text}` lists its parameters"
        )
    if meant := closest(text, simulations):
        remedy = Remedy("replace", meant)
        problem = f"unknown scenario or simulation {show(text)}; did you mean '{meant}'?"
        raise UserError(problem, allowed=simulations, remedy=remedy)


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
