"""Derivative of a page: the gradient program of an objective, and what its panel shows."""

from collections.abc import Mapping, Sequence
from typing import Any

from simkit.core.simulation import Simulation
from simkit.errors import UserError, argument
from simkit.export.programs.functions import Program, program_of
from simkit.jobs.derivatives import objective_name, objective_settings, selected_parameters
from simkit.scenario.scenario import Scenario


def gradient_program(
    scenario: Scenario, simulation: Simulation, objective: str | None, wrt: str | Sequence[str]
) -> tuple[Program, dict[str, Any]]:
    """Return the program of an objective and its gradient, and its description for a page's script.

    Args:
        scenario: whose run is the horizon of the objective.
        simulation: built from the scenario.
        objective: name or expression; ``None`` takes the scenario's first.
        wrt: paths of the parameters; a branch selects all parameters below it.

    Raises:
        UserError: if a name is unknown, with the nearest one.
    """
    name = objective_name(scenario, objective)
    settings = objective_settings(scenario, name)
    names = selected_parameters(scenario, wrt)
    program = program_of(scenario, simulation, "gradient", objective=name, wrt=names)
    return program, {
        "label": name,
        "doc": settings.doc if name in scenario.objectives else "",
        "goal": settings.goal,
        # A run that converges ends by itself.
        "steps": None if program.converges else program.steps,
        "wrt": names,
    }


def with_labels(derivative: dict[str, Any], sliders: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the description of a derivative with the labels of its sliders.

    Args:
        derivative: from `gradient_program`.
        sliders: of the page.

    Raises:
        UserError: if a parameter has no sliders.
    """
    inputs = {f"params.{name}" for name in derivative["wrt"]}
    if lacking := sorted(inputs - {slider["input"] for slider in sliders}):
        name = lacking[0].removeprefix("params.")
        raise UserError(
            f"parameter '{name}' is an array without sliders, and the gradient of a page is shown beside them; leave "
            f"it out of {argument('wrt')}"
        )
    return derivative | {"labels": [slider["label"] for slider in sliders if slider["input"] in inputs]}


def check_requested(objective: str | None, wrt: str | Sequence[str] | None) -> None:
    """Refuse an objective without parameters.

    Args:
        objective: its name, if one was given.
        wrt: the parameters, if any were given.

    Raises:
        UserError: if only the objective was given.
    """
    if objective is not None and wrt is None:
        raise UserError(
            f"{argument('objective')} is what a page differentiates; name the parameters with {argument('wrt')}"
        )
