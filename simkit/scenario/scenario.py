"""Scenario: the sections of its file, the call of its factory, and its parameters."""

# Fields of dataclasses are declared by calls.
# ruff: noqa: RUF009

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.core import paths
from simkit.core.arguments import check_type
from simkit.core.display import html_of
from simkit.core.parameter import Numbers, Parameter, count, shown_bounds
from simkit.core.precision import precision
from simkit.core.settings import declared, line, named, several
from simkit.core.settings.kinds import shape_of
from simkit.errors import LONGEST_ERROR, Mistakes, Remedy, UserError, nearest, one_line, within
from simkit.scenario import checks
from simkit.scenario.checks import DOTTED, IDENTIFIED, IDENTIFIER, LONGEST_LABEL, NAME, NO_DOTS, PATH, anything
from simkit.scenario.drawing import RENDER
from simkit.scenario.files import refuse_unread
from simkit.scenario.registry import (
    PARAMETERS,
    SIMULATIONS,
    arguments_of,
    needed_arguments,
    takes_any,
    takes_parameters,
)
from simkit.scenario.sections import (
    OBJECTIVE,
    PARAMETERS_OF_FILE,
    QUANTITY,
    RUN,
    VALIDATION,
    ObjectiveSettings,
    ParameterSettings,
    QuantitySettings,
    RenderSettings,
    RunSettings,
    Validation,
)

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation
    from simkit.core.tracing import Programs


# In place of a registered name, for a simulation made in Python.
IN_PYTHON = "python.simulation"
# Columns of `Scenario.parameter_rows`.
PARAMETER_HEAD = ("parameter", "value", "unit", "bounds", "meaning")


@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class Scenario:
    """Content of a scenario file, after all checks that need no simulation, and the parameters of its simulation.

    Attributes:
        source: path of the file.
        text: of that file.
        made: the simulation, if it was made in Python and not by a registered factory.
        known_parameters: declared parameters of the simulation, if known without making it: those of a stored run at
            its beginning, or of a scenario with the same configuration; otherwise ``None``.
        original: the content of the file itself, if values or configuration were changed since; otherwise ``None``.
    """

    name: str = declared(line("name of the scenario", pattern=IDENTIFIER, form=IDENTIFIED), example="my_scenario")
    title: str = declared(line("a few words", "", 120))
    summary: str = declared(line("one sentence", ""))
    simulation: str = declared(line("name of the simulation", pattern=DOTTED, form=NO_DOTS), example="flow.domain")
    tags: tuple[str, ...] = declared(several(line("a word", longest=LONGEST_LABEL), "words for searches", default=()))
    references: tuple[str, ...] = declared(several(line("a source", longest=LONGEST_LABEL), "sources", default=()))
    config: dict[str, Any] = declared(named("arguments of the simulation", anything("an argument"), NAME))
    parameter_settings: dict[str, ParameterSettings] = declared(PARAMETERS_OF_FILE, key="params")
    run: RunSettings = declared(RUN)
    quantities: dict[str, QuantitySettings] = declared(named("further quantities", QUANTITY, PATH))
    objectives: dict[str, ObjectiveSettings] = declared(named("what is differentiated and optimized", OBJECTIVE, PATH))
    render: RenderSettings = declared(RENDER)
    validations: tuple[Validation, ...] = declared(
        several(VALIDATION, "numbers that it reproduces, written [[validation]]", default=()), key="validation"
    )
    source: Path
    text: str
    made: "Simulation | None" = dataclasses.field(default=None, compare=False)
    known_parameters: dict[str, Parameter] | None = dataclasses.field(default=None, compare=False)
    original: "Scenario | None" = dataclasses.field(default=None, compare=False)

    def __repr__(self) -> str:
        """Return one line: name, simulation and parameters."""
        values = {name: one.default for name, one in self.parameter_settings.items() if one.default is not None}
        shown = "".join(f", {name} = {_shown(value)}" for name, value in values.items())
        return f"<Scenario {self.name}: {self.simulation}{shown}>"

    def _repr_html_(self) -> str | None:
        return html_of("scenario", self)

    @property
    def parameter_rows(self) -> list[tuple[str, str, str, str, str]]:
        """Name, value, unit, bounds and meaning of every parameter, as text."""
        parameters = self.parameters.items()
        return [(name, _shown(p.default), p.unit, shown_bounds(p.bounds), p.doc) for name, p in parameters]

    @functools.cached_property
    def declared(self) -> dict[str, Parameter]:
        """The declared parameters of the simulation, by name; it is made for that if they are not known.

        Raises:
            UserError: if the simulation cannot be made.
        """
        return declared_by(self) if self.known_parameters is None else self.known_parameters

    @functools.cached_property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters by name: as declared by the simulation, with the settings of the file applied.

        Raises:
            UserError: if the simulation cannot be made, or does not allow a setting of the file.
        """
        return merged(self, self.declared)

    @property
    def file_parameter_settings(self) -> dict[str, ParameterSettings]:
        """The ``parameter_settings`` of the file itself."""
        return (self.original or self).parameter_settings

    @property
    def is_reconfigured(self) -> bool:
        """Whether ``config`` differs from that of the file."""
        return self.original is not None and self.original.config != self.config

    @property
    def domain(self) -> str:
        """The part of ``simulation`` before its first dot: molecular, flow, rigid, or that of a plugin."""
        return self.simulation.partition(".")[0]

    @property
    def file(self) -> str:
        """Name of the file in error messages."""
        return file_label(self.source)


def file_label(path: Path) -> str:
    """Return the name of a file, quoted if it has unprintable characters such as line breaks."""
    name = path.name or str(path)
    return name if name.isprintable() else repr(name)


# Simulations of scenarios that a process keeps, with their programs.
MOST_SIMULATIONS = 4


def make(scenario: Scenario) -> "Simulation":
    """Return the simulation with its declared defaults: the one made in Python, or the result of the factory.

    Args:
        scenario: with its ``[config]``; the values of its parameters are not applied.

    Raises:
        UserError: if the factory is unknown, or refuses the configuration.
    """
    if scenario.made is not None:
        return scenario.made
    if scenario.simulation == IN_PYTHON:
        raise UserError(
            f"{scenario.file}: its simulation was made in Python and is not in the file; hand it over with "
            "simkit.resume(folder, simulation=...)"
        )
    with within(f"{scenario.file}: simulation: ", "simulation"):
        factory = SIMULATIONS.resolve(scenario.simulation)
    key = _key_of(scenario, factory)
    return _call(scenario, factory) if key is None else made_before().cached(key, lambda: _call(scenario, factory))


@functools.cache
def made_before() -> "Programs":
    """Return the simulations made last in this process, which are found again with what was compiled for them."""
    from simkit.core.tracing import Programs

    return Programs(MOST_SIMULATIONS)


def _key_of(scenario: Scenario, factory: Callable[..., Any]) -> Hashable:
    """Return all that the result of a factory depends on besides the precision; ``None`` if that is not known.

    Factories of other packages may read files or draw random numbers.
    """
    settings = scenario.file_parameter_settings if takes_parameters(factory) else {}
    if scenario.simulation not in SIMULATIONS.own or not _is_data(scenario.config):
        return None
    return factory, repr((scenario.file, scenario.config, settings))


def _is_data(value: Any) -> bool:
    """Return whether a value consists of numbers, words, lists and tables, whose text is the whole value."""
    if isinstance(value, dict):
        return all(_is_data(part) for part in (*value, *value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_data, value))
    return value is None or type(value) in (bool, int, float, str)


def _call(scenario: Scenario, factory: Callable[..., Any]) -> "Simulation":
    """Return the result of the factory for the configuration."""
    needed, config, mistakes = needed_arguments(factory), scenario.config, Mistakes()
    refuse_unread(config, f"{scenario.file}: config")
    if not takes_any(factory):
        allowed = [*needed, *arguments_of(factory)]
        with mistakes.kept():
            refuse_unknown(scenario, "config.{}", "not an argument of {}", config, allowed)
        config = {name: value for name, value in config.items() if name in allowed}
    for name in needed:
        if name not in config:
            with mistakes.kept(f"config.{name}"):
                raise UserError(
                    f"{scenario.file}: config.{name} is missing; {scenario.simulation} has no default for it: set "
                    f"{name} (@PATH takes the text of a file)"
                )
            mistakes.raise_if_any()
    declared = {}
    if takes_parameters(factory):
        # A file may declare its own parameters by giving them a value. Always the values of the file: numbers that a
        # factory draws at these values (random positions) must be the same in a run and in all members of a sweep.
        settings = scenario.file_parameter_settings.items()
        declared[PARAMETERS] = {name: one.as_declaration for name, one in settings if one.default is not None}
    if mistakes.found:
        # Collect the further mistakes that the factory finds.
        with mistakes.kept():
            _made(scenario, factory, config | declared)
        mistakes.raise_if_any()
    return _made(scenario, factory, config | declared)


def _made(scenario: Scenario, factory: Callable[..., Any], arguments: dict[str, Any]) -> "Simulation":
    """Return the result of the factory, refusals as errors of one line."""
    from simkit.core.simulation import Simulation

    try:
        simulation = factory(**arguments)
    except UserError as error:
        raise error.within("config", f"{scenario.file}: [config]: ", LONGEST_ERROR) from error
    except ImportError as error:
        raise UserError(
            f"{scenario.file}: {scenario.simulation} needs a package that cannot be imported: {one_line(error)}; "
            "install it, `simkit doctor` examines all of them"
        ) from error
    except (TypeError, ValueError, ArithmeticError, LookupError, MemoryError) as error:
        raise refused(scenario, error) from error
    check_type(f"{scenario.file}: {scenario.simulation}", simulation, "a factory that returns a Simulation", Simulation)
    return simulation


def refused(scenario: Scenario, error: Exception) -> UserError:
    """Return the error for a configuration that the factory refuses.

    Args:
        scenario: with the configuration.
        error: the reason.
    """
    reason = one_line(error) or type(error).__name__
    values = one_line(", ".join(f"{key} = {checks.show(value)}" for key, value in scenario.config.items()))
    return UserError(
        f"{scenario.file}: [config] ({values}) is refused by {scenario.simulation}: {reason}; "
        f"`simkit show {scenario.simulation}` lists its settings",
        key="config",
    )


def refuse_unknown(scenario: Scenario, label: str, problem: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse names that do not exist in a simulation.

    Args:
        scenario: with the names.
        label: the key in its file, with braces for the name.
        problem: the problem, with braces for the name of the simulation.
        names: to be checked.
        known: those that exist.

    Raises:
        UserError: for the first that is not among ``known``; ``others`` has the rest.
    """
    known, mistakes = list(known), Mistakes()
    key, _, is_value = label.partition(" = ")
    for name in names:
        with mistakes.kept(key.format(name)):
            if name not in known:
                what = f"{scenario.file}: {label.format(one_line(name, 80))} is {problem.format(scenario.simulation)}"
                hint = nearest(name, known)
                remedy = Remedy("replace" if is_value else "rename", hint.meant) if hint.meant else Remedy("remove")
                raise UserError(what, hint, allowed=known, remedy=remedy)
    mistakes.raise_if_any()


def declared_by(scenario: Scenario) -> dict[str, Parameter]:
    """Return the declared parameters of a scenario; its simulation is made for that.

    Args:
        scenario: the settings of its file are not applied.

    Raises:
        UserError: if the simulation cannot be made.
    """
    if scenario.simulation == IN_PYTHON and scenario.made is None:
        return {name: settings.as_declaration for name, settings in scenario.parameter_settings.items()}
    with precision(scenario.run.precision):
        return declared_in(make(scenario))


def declared_in(simulation: "Simulation") -> dict[str, Parameter]:
    """Return every parameter of a simulation by its path, with its default as plain numbers.

    Args:
        simulation: any.
    """
    import numpy as np

    parameters = {}
    for name, value in paths.leaves(simulation.params).items():
        declared = simulation.parameters.get(name, Parameter(0.0))
        exact = np.asarray(value)
        default = plain(declared.default)
        if hasattr(declared.default, "dtype") or not np.array_equal(
            np.asarray(default, exact.dtype), exact, equal_nan=True
        ):
            default = plain(shortest(exact))
        parameters[name] = dataclasses.replace(declared, default=default)
    return parameters


def merged(scenario: Scenario, declared: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return the parameters of a scenario: as declared, with the settings of its file applied.

    Args:
        scenario: with the settings.
        declared: parameters of its simulation.

    Raises:
        UserError: if the file names another one, or has a value of another shape or out of bounds.
    """
    changes = scenario.parameter_settings
    if scenario.is_reconfigured:
        # Parameters that exist with the configuration of the file only are dropped.
        changes = {name: settings for name, settings in changes.items() if name in declared}
    has_own = has_own_parameters(scenario)
    mistakes = Mistakes()
    for name, settings in changes.items():
        with mistakes.kept(f"params.{name}"):
            if has_own and name not in declared and settings.default is None:
                raise UserError(
                    f"{scenario.file}: params.{name} has no default, and {scenario.simulation} declares no '{name}'; "
                    f"give params.{name}.default, or name one of its own: {', '.join(declared)}"
                )
            refuse_unknown(scenario, "params.{}", "not a parameter of {}", [name], declared)
    parameters = dict(declared)
    for name, settings in changes.items():
        if name in declared:
            with mistakes.kept(f"params.{name}"):
                parameters[name] = _changed(scenario, name, declared[name], settings)
    mistakes.raise_if_any()
    return parameters


def has_own_parameters(scenario: Scenario) -> bool:
    """Return whether the file of a scenario may declare its own parameters.

    Args:
        scenario: any.
    """
    is_registered = scenario.made is None and scenario.simulation != IN_PYTHON
    return is_registered and takes_parameters(SIMULATIONS.resolve(scenario.simulation))


def _changed(scenario: Scenario, name: str, declared: Parameter, settings: ParameterSettings) -> Parameter:
    """Return a declared parameter with the settings of the file applied."""
    where, problem = f"{scenario.file}: params.{name}", ""
    low, high = declared.bounds
    parameter = settings.applied_to(declared)
    shape, expected = shape_of(parameter.default), shape_of(declared.default)
    if settings.bounds and not low <= settings.bounds[0] < settings.bounds[1] <= high:
        allowed = f"those of {scenario.simulation}, {shown_bounds(declared.bounds)}"
        problem = f"bounds = {list(settings.bounds)} reach beyond {allowed}; choose them within"
    if shape != expected:
        problem = f"default has shape {shape}; {scenario.simulation} expects {expected}"
    if problem:
        raise UserError(f"{where}.{problem}")
    if settings.default is not None or settings.bounds:
        checks.inside(parameter.default, f"{where}.default", parameter.bounds)
    return parameter


def shortest(array: Any) -> Any:
    """Return the shortest decimal numbers that round to the entries of an array: 0.1, not 0.10000000149.

    Args:
        array: of floats.
    """
    import numpy as np

    exact = np.asarray(array)
    return np.vectorize(lambda number: float(str(exact.dtype.type(number))), otypes=[float])(exact).tolist()


def plain(value: Any) -> Numbers:
    """Return a number, or nested tuples of numbers.

    Args:
        value: a number, nested lists or tuples, or an array.
    """
    value = value.tolist() if hasattr(value, "tolist") else value
    return tuple(plain(entry) for entry in value) if isinstance(value, list | tuple) else float(value)


def _shown(value: Numbers) -> str:
    """Return a number as text, or the number of entries of an array."""
    return f"{value:g}" if not isinstance(value, tuple) else f"[{count(value)} values]"
