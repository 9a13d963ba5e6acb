"""Loading of a scenario by name, path or simulation, with values replaced."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.errors import UserError
from simkit.scenario.catalog import find_scenario
from simkit.scenario.overrides import with_values
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation

type Source = str | Path | Scenario | Simulation
"""Name of a shipped scenario, path of a TOML file, a scenario, or a simulation made in Python."""


def load(scenario: Source, values: Mapping[str, Any] | None = None) -> Scenario:
    """Return a scenario with values replaced.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a simulation.
        values: parameter, config or run settings by key; for a simulation also ``view`` and others, see
            `simkit.scenario.made_in_python.scenario_of`.

    Raises:
        UserError: if there is no such scenario or a value is not allowed.
    """
    if not isinstance(scenario, str | Path | Scenario):
        from simkit.core.simulation import Simulation
        from simkit.scenario.made_in_python import scenario_of

        if not isinstance(scenario, Simulation):
            kind = type(scenario).__name__
            raise UserError(f"{kind} is no scenario; give a name, the path of a .toml file, or a simkit.Simulation")
        scenario, values = scenario_of(scenario, values or {})
    found = scenario if isinstance(scenario, Scenario) else find_scenario(scenario)
    return with_values(found, values) if values else found
