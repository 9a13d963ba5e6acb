"""A scenario as it is to be run: found, changed, cut into segments."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.scenario.catalog import find_scenario
from simkit.scenario.overrides import with_values
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    from simkit.runtime.driver import Plan


def load(scenario: "str | Path | Scenario", values: Mapping[str, Any] | None = None) -> Scenario:
    """Return a scenario by name, path or as it is, with values replaced.

    Args:
        scenario: shipped name, path of a TOML file, or a scenario.
        values: parameter, config or run settings by key.

    Raises:
        UserError: if there is no such scenario or a value is not allowed.
    """
    found = scenario if isinstance(scenario, Scenario) else find_scenario(scenario)
    return with_values(found, values) if values else found


def plan_of(scenario: Scenario) -> "Plan":
    """Return how a scenario's run is cut into segments."""
    from simkit.runtime.driver import Plan

    return Plan(scenario.run.steps, scenario.run.every)
