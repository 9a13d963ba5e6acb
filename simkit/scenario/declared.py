"""Parameters of a scenario: those that its simulation declares, with what its file says differently."""

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
from simkit.scenario.sections import IN_PYTHON, Difference, ScenarioFile

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation


def declared_by(scenario: ScenarioFile) -> dict[str, Parameter]:
    """Return the parameters of a scenario's simulation, which is made for that.

    Args:
        scenario: whose file need not mention them.

    Raises:
        UserError: if the simulation cannot be made.
    """
    if scenario.simulation == IN_PYTHON and scenario.made is None:
        return {name: said.in_full for name, said in scenario.differences.items()}
    with precision(scenario.run.precision):
        return declared_in(make(scenario))


def declared_in(simulation: "Simulation") -> dict[str, Parameter]:
    """Return every parameter of a simulation by its path, with its default as plain numbers.

    Args:
        simulation: any.
    """
    import numpy as np

    found = {}
    for name, value in paths.leaves(simulation.params).items():
        declared = simulation.parameters.get(name, Parameter(0.0))
        exact = np.asarray(value)
        default = plain(declared.default)
        if hasattr(declared.default, "dtype") or not np.array_equal(
            np.asarray(default, exact.dtype), exact, equal_nan=True
        ):
            default = plain(shortest(exact))
        found[name] = dataclasses.replace(declared, default=default)
    return found


def merged(scenario: ScenarioFile, declared: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return the parameters of a scenario: as declared, but for what its file says.

    Args:
        scenario: with its differences.
        declared: by its simulation.

    Raises:
        UserError: if the file names another one, or gives a value of another shape or out of bounds.
    """
    differences = scenario.differences
    if scenario.is_reconfigured:
        # What the file says of parameters that only its own configuration has.
        differences = {name: said for name, said in differences.items() if name in declared}
    has_own = has_own_parameters(scenario)
    mistakes = Mistakes()
    for name, said in differences.items():
        with mistakes.kept():
            if has_own and name not in declared and said.default is None:
                raise UserError(
                    f"{scenario.file}: params.{name} has no default, and {scenario.simulation} declares no '{name}'; "
                    f"give params.{name}.default, or name one of its own: {', '.join(declared)}"
                )
            refuse_unknown(scenario, "params.{}", "not a parameter of {}", [name], declared)
    found = dict(declared)
    for name, difference in differences.items():
        if name in declared:
            with mistakes.kept():
                found[name] = _as_said(scenario, name, declared[name], difference)
    mistakes.raise_if_any()
    return found


def has_own_parameters(scenario: ScenarioFile) -> bool:
    """Return whether the file of a scenario may declare parameters of its own.

    Args:
        scenario: any.
    """
    is_registered = scenario.made is None and scenario.simulation != IN_PYTHON
    return is_registered and takes_parameters(SIMULATIONS.resolve(scenario.simulation))


def _as_said(scenario: ScenarioFile, name: str, known: Parameter, difference: Difference) -> Parameter:
    """Return a parameter with what the file says of it."""
    where = f"{scenario.file}: params.{name}"
    low, high = known.bounds
    if difference.bounds and not low <= difference.bounds[0] < difference.bounds[1] <= high:
        raise UserError(
            f"{where}.bounds = {list(difference.bounds)} reach beyond those of {scenario.simulation}, "
            f"{shown_bounds(known.bounds)}; choose them within"
        )
    said = difference.applied_to(known)
    shape, expected = checks.shape(said.default), checks.shape(known.default)
    if shape != expected:
        raise UserError(f"{where}.default has shape {shape}; {scenario.simulation} expects {expected}")
    if difference.default is not None or difference.bounds:
        checks.inside(said.default, f"{where}.default", said.bounds)
    return said


def shortest(array: Any) -> Any:
    """Return the shortest numbers that become those of an array again: 0.1, not 0.10000000149.

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
