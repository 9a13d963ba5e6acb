"""Runs of a scenario from its first step to its last."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.jobs.entrance import enter
from simkit.jobs.job import Prepared, Warn, begin, prepared_of, run_to_dataset
from simkit.jobs.outcome import DrivenJob, Outcome
from simkit.jobs.size_checks import check_declared_sizes, check_frames, fewer_frames
from simkit.scenario.build import build
from simkit.scenario.loading import Source, load

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import xarray

    from simkit.core.simulation import Simulation
    from simkit.engine.driver import Program
    from simkit.engine.loop import Segment
    from simkit.engine.processes import ProcessGroup
    from simkit.storage.store import Store


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
        UserError: if an argument is wrong.
        RunFailedError: if the run turns non-finite. A run that does not converge returns with a warning.
    """
    enter("run", scenario, values, overwrite=overwrite)
    job = Run(load(scenario, values))
    return run_to_dataset(job, partial(begin, job, output, overwrite))


@dataclasses.dataclass(frozen=True)
class Run(DrivenJob[Outcome]):
    """A run of a scenario.

    Attributes:
        group: group of the processes that run it together, including this one; ``None`` for a single process.
    """

    kind = "run"
    noun = "a run"
    has_frames = True

    group: "ProcessGroup | None" = None

    @property
    def progress(self) -> dict[str, Any]:
        """Number of steps."""
        return {"steps": self.scenario.run.steps}

    def simulation(self, *, new: bool) -> "Simulation":
        """Return the scenario's simulation."""
        if not new:
            return build(self.scenario)
        plan = self.plan
        return build(
            self.scenario, examine=lambda made: check_declared_sizes(made, plan.frames + 1, fewer_frames(plan))
        )

    def program(self, simulation: "Simulation") -> "Program":
        """Return the program of the simulation, sharded over the processes of a group if there is one."""
        return self.group.program(simulation, self.plan) if self.group else super().program(simulation)

    def fitted(self, prepared: Prepared, output: Path | None) -> "Run":
        """Return the job itself, if its frames fit."""
        check_frames(*prepared.shapes, self.plan, output)
        return self

    def drive(
        self, prepared: Prepared, store: "Store | None", warn: Warn, report: "Callable[[Segment], None]"
    ) -> "tuple[list[dict[str, np.ndarray]], Segment]":
        """Run the simulation, with the other processes of a group if there is one."""
        if self.group is None:
            return super().drive(prepared, store, warn, report)
        import jax

        from simkit.engine.loop import run_all
        from simkit.engine.processes import SharedDrive, SharedStore

        key = jax.random.key(self.scenario.run.seed)
        work = SharedDrive.of(self.group, prepared.program, prepared.simulation.params, key, self.plan)
        return run_all(work, SharedStore(self.group, store), warn, report)

    def follow(self) -> None:
        """Compute this process's part of the run, until the first process of the group ends or stops."""
        from simkit.core.precision import precision

        with precision(self.scenario.run.precision):
            self.drive(prepared_of(self, new=False), None, lambda message: None, lambda segment: None)
