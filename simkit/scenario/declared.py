"""Parameters of a scenario: declarations of its simulation merged with the settings of its file."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simkit.core import paths
from simkit.core.parameter import Numbers, Parameter, shown_bounds
from simkit.core.precision import precision
from simkit.errors import Mistakes, UserError
from simkit.scenario import checks
from simkit.scenario.factories import takes_parameters
from simkit.scenario.making import make, refuse_unknown
from simkit.scenario.registry import SIMULATIONS
from simkit.scenario.sections import IN_PYTHON, ParameterSettings, ScenarioFile

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation


def declared_by(scenario: ScenarioFile) -> dict[str, Parameter]:
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


def merged(scenario: ScenarioFile, declared: Mapping[str, Parameter]) -> dict[str, Parameter]:
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


def has_own_parameters(scenario: ScenarioFile) -> bool:
    """Return whether the file of a scenario may declare its own parameters.

    Args:
        scenario: any.
    """
    is_registered = scenario.made is None and scenario.simulation != IN_PYTHON
    return is_registered and takes_parameters(SIMULATIONS.resolve(scenario.simulation))


def _changed(scenario: ScenarioFile, name: str, declared: Parameter, settings: ParameterSettings) -> Parameter:
    """Return a declared parameter with the settings of the file applied."""
    where = f"{scenario.file}: params.{name}"
    low, high = declared.bounds
    if settings.bounds and not low <= settings.bounds[0] < settings.bounds[1] <= high:
        raise UserError(
            f"{where}.bounds = {list(settings.bounds)} reach beyond those of {scenario.simulation}, "
            f"{shown_bounds(declared.bounds)}; choose them within"
        )
    parameter = settings.applied_to(declared)
    shape, expected = checks.shape(parameter.default), checks.shape(declared.default)
    if shape != expected:
        raise UserError(f"{where}.default has shape {shape}; {scenario.simulation} expects {expected}")
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
