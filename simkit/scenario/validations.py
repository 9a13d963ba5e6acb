"""Checks of the ``[[validation]]`` entries of a scenario against its simulation."""

from simkit.errors import about, nearest
from simkit.scenario import checks
from simkit.scenario.overrides import with_values
from simkit.scenario.scenario import Scenario


def check_validations(scenario: Scenario) -> None:
    """Refuse overrides, and parameters of derivatives, that do not exist in the scenario.

    Args:
        scenario: with its validations.

    Raises:
        UserError: for the first of them.
    """
    for index in range(len(scenario.validations)):
        check_validation(scenario, index)


def check_validation(scenario: Scenario, index: int) -> None:
    """Refuse overrides, and the parameter of a derivative, that do not exist in the scenario.

    Args:
        scenario: with its validations.
        index: of the validation.

    Raises:
        UserError: for the first of them.
    """
    validation, where = scenario.validations[index], f"{scenario.file}: validation[{index}]"
    with about(f"validation[{index}].set"):
        changed = with_values(scenario, validation.overrides, lambda key: f"{where}.set.{key}")
    if (name := validation.derivative) is None:
        return
    with about(f"validation[{index}].derivative"):
        if name not in changed.parameters:
            known = nearest(name, list(changed.parameters))
            checks.refuse(name, f"{where}.derivative", f"is not a parameter of {scenario.simulation}{known}")
        if isinstance(changed.parameters[name].default, tuple):
            checks.refuse(name, f"{where}.derivative", "is an array; name a parameter that is a single number")
