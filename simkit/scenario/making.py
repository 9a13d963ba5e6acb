"""Call of a simulation's factory with a scenario's configuration; refusals become errors of one line."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from simkit.errors import Mistakes, UserError, nearest, one_line
from simkit.scenario import checks
from simkit.scenario.factories import PARAMETERS, arguments_of, needed_arguments, takes_any, takes_parameters
from simkit.scenario.registry import SIMULATIONS
from simkit.scenario.sections import IN_PYTHON, ScenarioFile

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation


def make(scenario: ScenarioFile) -> "Simulation":
    """Return the simulation with its own defaults: the one that was handed over, or what the factory makes.

    Args:
        scenario: whose ``[config]`` counts; its parameters do not.

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
    return _call(scenario, SIMULATIONS.resolve(scenario.simulation))


def _call(scenario: ScenarioFile, factory: Callable[..., Any]) -> "Simulation":
    """Return what the factory makes of the configuration."""
    needed, config, mistakes = needed_arguments(factory), scenario.config, Mistakes()
    if not takes_any(factory):
        known = [*needed, *arguments_of(factory)]
        with mistakes.kept():
            refuse_unknown(scenario, "config.{}", "not an argument of {}", config, known)
        config = {name: value for name, value in config.items() if name in known}
    for name in needed:
        if name not in config:
            mistakes.found.append(
                f"{scenario.file}: config.{name} is missing; {scenario.simulation} has no default for it: set {name} "
                "(@PATH takes the text of a file)"
            )
            mistakes.raise_if_any()
    own = {}
    if takes_parameters(factory):
        # A file may declare parameters of its own, those to which it gives a value. What a factory draws at these
        # values (random places) must not change with those of a run, or a member of a sweep would not be that run.
        said = scenario.file_differences.items()
        own[PARAMETERS] = {name: one.in_full for name, one in said if one.default is not None}
    if mistakes.found:
        # What else is wrong is told with it.
        with mistakes.kept():
            _made(scenario, factory, config | own)
        mistakes.raise_if_any()
    return _made(scenario, factory, config | own)


def _made(scenario: ScenarioFile, factory: Callable[..., Any], arguments: dict[str, Any]) -> "Simulation":
    """Return what the factory makes of arguments."""
    from simkit.core.simulation import Simulation

    try:
        simulation = factory(**arguments)
    except UserError as error:
        first, *others = (f"{scenario.file}: [config]: {one_line(each)}" for each in (error, *error.others))
        raise UserError(first, others=others) from error
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
    """Return the error of a configuration that cannot be made.

    Args:
        scenario: with the configuration.
        error: the reason.
    """
    reason = one_line(error) or type(error).__name__
    given = one_line(", ".join(f"{key} = {checks.show(value)}" for key, value in scenario.config.items()))
    return UserError(f"{scenario.file}: [config] ({given}) is refused by {scenario.simulation}: {reason}")


def refuse_unknown(
    scenario: ScenarioFile, label: str, problem: str, names: Iterable[str], known: Iterable[str]
) -> None:
    """Refuse names that a simulation does not have.

    Args:
        scenario: that gives them.
        label: the key in its file, with braces for the name.
        problem: what is wrong, with braces for the simulation's name.
        names: given.
        known: to the simulation.

    Raises:
        UserError: for the first that is not among ``known``; ``others`` tells of the rest.
    """
    known, mistakes = list(known), Mistakes()
    for name in names:
        with mistakes.kept():
            if name not in known:
                what = f"{scenario.file}: {label.format(one_line(name, 80))}"
                raise UserError(f"{what} is {problem.format(scenario.simulation)}{nearest(name[:64], known)}")
    mistakes.raise_if_any()
