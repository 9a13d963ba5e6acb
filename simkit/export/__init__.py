"""Programs for other runtimes, pictures, and files of other formats."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simkit.export.stablehlo import Exported
    from simkit.scenario.loading import Source


def program(scenario: "Source", folder: Path | str, **values: Any) -> "Exported":
    """Write a run as a portable StableHLO program with its derivative, and compare it with JAX.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        folder: where to write ``NAME.stablehlo`` and ``NAME.json``; made if missing.
        **values: parameters, config or run settings.

    Raises:
        UserError: if anything given is wrong, the run fails, or the written program disagrees with JAX.
    """
    from simkit.export.stablehlo import export_scenario
    from simkit.scenario.loading import load

    return export_scenario(load(scenario, values), Path(folder))
