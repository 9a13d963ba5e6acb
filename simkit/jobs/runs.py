"""Run a scenario from its first step to its last."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.core.compilation import use_compilation_cache
from simkit.jobs.fitting import check_declared, check_frames, fewer
from simkit.jobs.job import Prepared, begin, returned
from simkit.jobs.outcome import DrivenJob, Outcome
from simkit.scenario.build import build
from simkit.scenario.loading import Source, load

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation


def run(
    scenario: Source, *, output: Path | str | None = None, overwrite: bool = False, **values: Any
) -> "xarray.Dataset":
    """Run a scenario and return its frames and diagnostics as one labeled data set.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        output: run directory to write, resumable after a crash; ``None`` keeps the result in memory only.
        overwrite: replace an existing run directory.
        **values: parameters (``reynolds=800``), config or run settings (``steps=2000``, ``seed=1``).

    Raises:
        UserError: if anything given is wrong.
        RunFailedError: if the run turns non-finite. A run that does not converge returns, with a warning.
    """
    use_compilation_cache()
    job = Run(load(scenario, values))
    return returned(job, partial(begin, job, output, overwrite))


@dataclasses.dataclass(frozen=True)
class Run(DrivenJob[Outcome]):
    """A run of a scenario."""

    kind = "run"
    noun = "a run"
    has_frames = True

    @property
    def progress(self) -> dict[str, Any]:
        """Its steps."""
        return {"steps": self.scenario.run.steps}

    def simulation(self, *, new: bool) -> "Simulation":
        """Return the scenario's simulation."""
        if not new:
            return build(self.scenario)
        plan = self.plan
        return build(self.scenario, examine=lambda made: check_declared(made, plan.frames + 1, fewer(plan)))

    def fitted(self, prepared: Prepared, output: Path | None) -> "Run":
        """Return itself if its frames fit."""
        check_frames(*prepared.shapes, self.plan, output)
        return self
