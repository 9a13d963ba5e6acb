"""Call of the factory of a simulation with the configuration of a scenario; refusals become errors of one line."""

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

from simkit.errors import LONGEST_ERROR, Mistakes, Remedy, UserError, closest, nearest, one_line
from simkit.scenario import checks
from simkit.scenario.factories import PARAMETERS, arguments_of, needed_arguments, takes_any, takes_parameters
from simkit.scenario.registry import REPLACED_ARGUMENTS, SIMULATIONS
from simkit.scenario.sections import IN_PYTHON, ScenarioFile

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation
    from simkit.core.tracing import Programs

# Simulations of scenarios that a process keeps, with their programs.
MOST_SIMULATIONS = 4


def make(scenario: ScenarioFile) -> "Simulation":
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
    try:
        factory = SIMULATIONS.resolve(scenario.simulation)
    except UserError as error:
        raise UserError(f"{scenario.file}: simulation: {error}", key="simulation") from error
    key = _key_of(scenario, factory)
    return _call(scenario, factory) if key is None else made_before().found(key, lambda: _call(scenario, factory))


@functools.cache
def made_before() -> "Programs":
    """Return the simulations made last in this process, which are found again with what was compiled for them."""
    from simkit.core.tracing import Programs

    return Programs(MOST_SIMULATIONS)


def _key_of(scenario: ScenarioFile, factory: Callable[..., Any]) -> Hashable:
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


def _call(scenario: ScenarioFile, factory: Callable[..., Any]) -> "Simulation":
    """Return the result of the factory for the configuration."""
    needed, config, mistakes = needed_arguments(factory), scenario.config, Mistakes()
    if not takes_any(factory):
        known = [*needed, *arguments_of(factory)]
        with mistakes.kept():
            refuse_unknown(scenario, "config.{}", "not an argument of {}", config, known)
        config = {name: value for name, value in config.items() if name in known}
    for name in needed:
        if name not in config:
            with mistakes.kept(f"config.{name}"):
                raise UserError(
                    f"{scenario.file}: config.{name} is missing; {scenario.simulation} has no default for it: set "
                    f"{name} (@PATH takes the text of a file)"
                )
            mistakes.raise_if_any()
    own = {}
    if takes_parameters(factory):
        # A file may declare its own parameters by giving them a value. Always the values of the file: numbers that a
        # factory draws at these values (random positions) must be the same in a run and in all members of a sweep.
        settings = scenario.file_parameter_settings.items()
        own[PARAMETERS] = {name: one.as_declaration for name, one in settings if one.default is not None}
    if mistakes.found:
        # Collect the further mistakes that the factory finds.
        with mistakes.kept():
            _made(scenario, factory, config | own)
        mistakes.raise_if_any()
    return _made(scenario, factory, config | own)


def _made(scenario: ScenarioFile, factory: Callable[..., Any], arguments: dict[str, Any]) -> "Simulation":
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
    if not isinstance(simulation, Simulation):
        raise UserError(
            f"{scenario.file}: simulation = '{scenario.simulation}' made {type(simulation).__name__}; "
            "its factory must return a Simulation"
        )
    return simulation


def refused(scenario: ScenarioFile, error: Exception) -> UserError:
    """Return the error for a configuration that the factory refuses.

    Args:
        scenario: with the configuration.
        error: the reason.
    """
    reason = one_line(error) or type(error).__name__
    given = one_line(", ".join(f"{key} = {checks.show(value)}" for key, value in scenario.config.items()))
    return UserError(
        f"{scenario.file}: [config] ({given}) is refused by {scenario.simulation}: {reason}; "
        f"`simkit show {scenario.simulation}` lists its settings",
        key="config",
    )


def refuse_unknown(
    scenario: ScenarioFile, label: str, problem: str, names: Iterable[str], known: Iterable[str]
) -> None:
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
                what = f"{scenario.file}: {label.format(one_line(name, 80))}"
                replaced = REPLACED_ARGUMENTS.get(scenario.simulation, {}).get(name)
                hint, meant = f"; use {replaced}" if replaced else nearest(name, known), closest(name, known)
                remedy = Remedy("replace" if is_value else "rename", meant) if meant else Remedy("remove")
                raise UserError(f"{what} is {problem.format(scenario.simulation)}{hint}", allowed=known, remedy=remedy)
    mistakes.raise_if_any()
