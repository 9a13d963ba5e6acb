"""Scenario files: reading, and search by name and path."""

import dataclasses
import os
import stat
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from simkit.core.paths import below
from simkit.errors import Mistakes, UserError, likeliest, nearest
from simkit.scenario import checks
from simkit.scenario import overrides as inlined
from simkit.scenario.checks import Table, parse_toml, show
from simkit.scenario.drawing import UNKNOWN, render_settings
from simkit.scenario.overrides import RUN_KEYS, nearest_multiples
from simkit.scenario.registry import SIMULATIONS
from simkit.scenario.scenario import (
    KEYS,
    TABLES,
    ObjectiveSettings,
    ParameterSettings,
    QuantitySettings,
    RenderSettings,
    RunSettings,
    Scenario,
    Validation,
    file_label,
)

__all__ = [
    "ObjectiveSettings",
    "RenderSettings",
    "RunSettings",
    "Scenario",
    "Validation",
    "parse_scenario",
    "read_scenario",
]
MAX_BYTES = 2**20
PARAMETER_KEYS = ("default", "bounds", "unit", "doc")
OBJECTIVE_KEYS = ("doc", "quantity", "reduce", "square", "goal", "expression")
QUANTITY_KEYS = ("expression", "unit", "doc")
VALIDATION_KEYS = (
    "quantity",
    "expected",
    "tolerance",
    "source",
    "set",
    "derivative",
    "objective",
    "reduce",
    "expression",
)
REDUCTIONS = ("final", "mean", "root_mean_square", "maximum", "minimum", "sum")
GOALS = ("minimize", "maximize")


def read_scenario(path: Path | str, mistakes: Mistakes | None = None) -> Scenario:
    """Read a scenario file.

    Args:
        path: the TOML file.
        mistakes: collects mistakes, as for `parse_scenario`.

    Raises:
        UserError: if it cannot be read, is over 1 MiB (without the files in it), or has a mistake.
    """
    path = Path(path)
    label = checks.show(str(path))
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            what = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise UserError(f"scenario {label} is {what}; give a .toml file")
        with path.open("rb") as file:
            # Escapes may double the text of a file.
            content = file.read(MAX_BYTES + 2 * inlined.MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise UserError(f"scenario {label} does not exist; check the path") from error
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or "its path is malformed"
        raise UserError(f"scenario {label} cannot be read: {reason}; check the path and its permissions") from error
    if len(inlined.own_part(content)) > MAX_BYTES or len(content) > MAX_BYTES + 2 * inlined.MAX_BYTES:
        raise UserError(
            f"{file_label(path)}: the file is over 1 MiB; a scenario is a page of text, keep data elsewhere"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{file_label(path)}: byte {error.start} is not UTF-8 text; save the file as UTF-8") from error
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
    top = Table(parse_toml(text, file), file, "", KEYS + TABLES, mistakes)
    name = top.read("name", checks.identifier, example='name = "my_scenario"')
    config, stored = top.table("config", None), top.table("files", None)
    files = inlined.Files(stored.entries, source.parent, file)

    def setting(value: Any, where: str) -> Any:
        return checks.plain(files.resolve(value, where), where)

    settings = {}
    for key in config.entries:
        with config.kept(key):
            settings[checks.name(key, config.where(key))] = config.read(key, setting, None)

    scenario = Scenario(
        name=name,
        title=top.read("title", checks.title, example='title = "A few words"'),
        summary=top.read("summary", checks.string, example='summary = "One sentence."'),
        simulation=top.read("simulation", checks.dotted, example='simulation = "flow.domain"'),
        tags=top.read("tags", checks.strings, ()),
        references=top.read("references", checks.strings, ()),
        config=settings,
        parameter_settings=_parameter_settings(top.table("params", None)),
        run=_run(top.table("run", RUN_KEYS, "steps and every")),
        objectives={key: _objective(key, table) for key, table in top.tables("objectives", OBJECTIVE_KEYS).items()},
        render=_render(top.table("render", None, "view and quantity")),
        validations=(),
        source=source,
        text=text,
        quantities={key: _quantity(key, table) for key, table in top.tables("quantities", QUANTITY_KEYS).items()},
    )
    tables = top.list_of_tables("validation", VALIDATION_KEYS)
    validations = tuple(_validation(scenario, table, files) for table in tables)
    if mistakes is None:
        top.mistakes.raise_if_any()
    return dataclasses.replace(scenario, validations=validations, text=files.kept_in(text))


def _parameter_settings(params: Table, branch: str = "") -> dict[str, ParameterSettings]:
    """Return the settings of ``[params]`` by path: ``name = value``, or a table of value, bounds, unit and doc.

    A table without any of these keys is a branch, such as ``[params.closure]``.
    """
    settings: dict[str, ParameterSettings] = {}
    for key, value in params.entries.items():
        with params.kept(key):
            settings |= _entry_settings(params, key, value, checks.path(below(branch, key), params.where(key)))
    return settings


def _entry_settings(params: Table, key: str, value: Any, name: str) -> dict[str, ParameterSettings]:
    """Return the settings of one key of ``[params]``, by path."""
    if not isinstance(value, dict):
        return {name: ParameterSettings(checks.numbers(value, params.where(key)))}
    if _is_branch(value):
        return _parameter_settings(params.table(key, None), name)
    table = params.table(key, PARAMETER_KEYS)
    settings = ParameterSettings(
        default=table.read("default", checks.numbers, None),
        bounds=table.read("bounds", checks.bounds, None),
        unit=table.read("unit", checks.label, None),
        doc=table.read("doc", checks.string, None),
    )
    if settings.default is not None and settings.bounds is not None:
        checks.inside(settings.default, table.where("default"), settings.bounds)
    return {name: settings}


def _is_branch(table: Mapping[str, Any]) -> bool:
    """Return whether a table is a branch of parameters: none of its keys is a key of one parameter, or a typo of it."""
    values = {key: value for key, value in table.items() if key in PARAMETER_KEYS}
    if any(not isinstance(value, dict) for value in values.values()):
        return False
    if any(isinstance(value, dict) for value in table.values()):
        return True
    return bool(table) and not any("did you mean" in nearest(key, PARAMETER_KEYS) for key in table)


def _run(table: Table) -> RunSettings:
    examples = {"steps": "steps = 1000", "every": "every = 10"}
    steps, every = (table.read(key, partial(checks.run_setting, key), example=line) for key, line in examples.items())
    if [steps, every] != [table.entries.get(key) for key in examples]:
        # An example in place of a refused value need not be a divisor of the other.
        steps = max(nearest_multiples(steps, every))
    with table.kept("steps"):
        if steps % every:
            below, above = nearest_multiples(steps, every)
            choices = f"{below} or {above}" if below else f"{above}"
            checks.refuse(steps, table.where("steps"), f"is not a multiple of run.every = {every}; choose {choices}")
    return RunSettings(
        steps=steps,
        every=every,
        precision=table.read("precision", partial(checks.run_setting, "precision"), "float32"),
        seed=table.read("seed", partial(checks.run_setting, "seed"), 0),
        stop=table.read("stop", partial(checks.run_setting, "stop"), ""),
    )


def _quantity(name: str, table: Table) -> QuantitySettings:
    return QuantitySettings(
        name=name,
        expression=table.read("expression", checks.expression, example='expression = "mean(u**2)"'),
        unit=table.read("unit", checks.label, "1"),
        doc=table.read("doc", checks.string, example='doc = "what it means"'),
    )


def _objective(name: str, table: Table) -> ObjectiveSettings:
    expression = table.read("expression", checks.expression, "")
    for key in ("quantity", "reduce", "square"):
        with table.kept(key):
            if expression and key in table.entries:
                raise UserError(f"{table.where(key)} has no meaning beside an expression; write it into the expression")
    return ObjectiveSettings(
        name=name,
        doc=table.read("doc", checks.string, example='doc = "what it means"'),
        # A wrong expression, or a text in place of the table, is no quantity of the objective's name.
        quantity=table.read("quantity", checks.measured, name)
        if table.entries and "expression" not in table.entries
        else "",
        reduce=table.read("reduce", partial(checks.choice, allowed=REDUCTIONS), "final"),
        square=table.read("square", checks.boolean, False),
        goal=table.read("goal", partial(checks.choice, allowed=GOALS), "minimize"),
        expression=expression,
    )


def _render(table: Table) -> RenderSettings:
    with table.mistakes.kept("render"):
        if table.entries:
            try:
                return render_settings(table.entries)
            except UserError as error:
                raise error.within("", f"{table.file}: ") from error
    return UNKNOWN


def _validation(scenario: Scenario, table: Table, files: inlined.Files) -> Validation:
    derivative = table.read("derivative", checks.label, None)
    objective = table.read("objective", partial(_known, names=tuple(scenario.objectives)), None)
    with table.mistakes.kept():
        if (derivative is None) != (objective is None):
            given, other = ("derivative", "objective") if objective is None else ("objective", "derivative")
            needs = f"{table.where(given)} needs {other} beside it; add {other}, or remove {given}"
            raise UserError(needs, key=f"{table.path}.{given}")
    quantity = scenario.objectives[objective].quantity if objective else None
    default = [] if quantity is None else [quantity]
    expression = table.read("expression", checks.expression, "")
    default = [""] if "expression" in table.entries else default
    compared = table.read("quantity", checks.measured, *default, example='quantity = "energy"')
    for key in ("quantity", "reduce", "derivative", "objective"):
        with table.kept(key):
            if expression and key in table.entries:
                raise UserError(f"{table.where(key)} has no meaning beside an expression; write it into the expression")
    with table.kept("quantity"):
        _check_compared(table, objective, quantity, compared)
    changes = table.table("set", None)
    overrides = {}
    for key, value in changes.entries.items():
        with changes.kept(key):
            overrides[key] = files.resolve(value, changes.where(key))
    return Validation(
        quantity=compared,
        expected=table.read("expected", checks.number, example="expected = 1.5"),
        tolerance=table.read("tolerance", checks.positive, example="tolerance = 1e-3"),
        source=table.read("source", checks.string, example='source = "doi:..."'),
        overrides=overrides,
        derivative=derivative,
        objective=objective,
        reduce=table.read("reduce", partial(checks.choice, allowed=REDUCTIONS), "final"),
        expression=expression,
    )


def _check_compared(table: Table, objective: str | None, quantity: str | None, compared: str) -> None:
    """Refuse keys of a validation that its objective has."""
    if quantity is not None and compared != quantity:
        problem = f"is not the quantity {quantity!r}" if quantity else "has no meaning beside the expression"
        checks.refuse(compared, table.where("quantity"), f"{problem} of objective {objective!r}; remove it")
    if objective and "reduce" in table.entries:
        belongs = f"{table.where('reduce')} belongs to objectives.{objective}; write it there, or remove it"
        raise UserError(belongs, key=f"{table.path}.reduce")


def _known(value: str, where: str, names: tuple[str, ...]) -> str:
    if checks.string(value, where) not in names:
        checks.refuse(value, where, f"is not defined in this file{nearest(value, names)}")
    return value


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
