"""What comes of driving a simulation to its end, in memory and in a run directory."""

import dataclasses
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from simkit.scenario.scenario import Scenario
from simkit.storage import datasets
from simkit.storage.files import write_sealed_json
from simkit.storage.labels import annotate, attributes_of
from simkit.storage.run_directory import SUMMARY, RunDirectory

if TYPE_CHECKING:
    import jax
    import xarray

    from simkit.core.simulation import Simulation
    from simkit.engine.loop import Piece
    from simkit.engine.plan import Plan
    from simkit.storage.store import Store

type Kind = Literal["run", "optimize"]
type Report = Callable[["Piece", int], None]
"""Told after every segment: the piece, and how many segments there are at most."""


class RunFailedError(Exception):
    """A run that turned non-finite; its message names the segment and the parameters."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints."""
        return [f"{type(self).__name__}: {self}"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a run.

    Attributes:
        arrays: joined frames and diagnostics, ``{"observed.NAME" | "diagnosed.NAME" | "status": array}``.
        labels: dimensions and coordinates, see `simkit.storage.datasets.labels_of`.
        status: final `simkit.core.status.Status` code, one per member for an ensemble.
        segments: index of the last segment.
        directory: where it is stored, or ``None``.
        scenario: what was run, overrides applied.
        kind: ``"run"``, or ``"optimize"``, whose steps are iterations and which may use all of them without failing.
        finished: whether nothing is left to do; a run that was interrupted may be read back before it is resumed.
        version: of the simkit that began it; empty for this one.
    """

    arrays: dict[str, np.ndarray]
    labels: dict[str, Any]
    status: np.ndarray
    segments: int
    directory: Path | None
    scenario: Scenario
    kind: Kind = "run"
    finished: bool = True
    version: str = ""

    @property
    def failed(self) -> bool:
        """Whether any member failed."""
        from simkit.core.status import Status, failed

        if self.kind == "optimize":
            return bool((self.status == Status.NON_FINITE).any())
        return bool(failed(self.status).any())

    @property
    def diagnostics(self) -> dict[str, float]:
        """The last value of every diagnostic."""
        return {name: array[-1].item() for name, array in datasets.split(self.arrays)[1].items()}

    @property
    def message(self) -> str:
        """The status in words; of a run that failed, when, after which largest values, and with which parameters."""
        from simkit.core.status import MESSAGES, Status

        status = Status(int(self.status))
        if not self.finished:
            remedy = f"; finish it with: simkit resume {self.directory}" if self.directory else ""
            return f"{self.scenario.name} is not finished (stored up to {self._step(-1)}){remedy}"
        if self.kind == "optimize" and status in (Status.MAX_STEPS, Status.OK):
            used = len(self.arrays["status"]) - 1
            used_up = f"{self.scenario.name} used its {used} iterations without converging"
            return f"{used_up}; the best values so far are kept, and more iterations may find better ones"
        if not self.failed:
            return f"{self.scenario.name} {MESSAGES[status]}"
        when = self._when() if status is Status.NON_FINITE else f"after {self._step(-1)}"
        return f"{self.scenario.name} {MESSAGES[status]} ({when}, with {describe(self.scenario)})"

    def _step(self, frame: int) -> str:
        """Return the step or the iteration at which a stored frame was taken, in words."""
        number = range(len(self.arrays["status"]))[frame]
        return f"iteration {number}" if self.kind == "optimize" else f"step {self.scenario.run.every * number}"

    def _when(self) -> str:
        """Return the steps between which the run failed, and the diagnostics named ``largest_...`` at the first one."""
        if len(self.arrays["status"]) < 2:
            return "at the start"
        diagnostics = datasets.split(self.arrays)[1].items()
        largest = [f"{name} = {values[-2]:.3g}" for name, values in diagnostics if name.startswith("largest_")]
        return f"between {self._step(-2)}{', where ' * bool(largest)}{', '.join(largest)}, and {self._step(-1)}"

    def dataset(self) -> "xarray.Dataset":
        """Return frames and diagnostics as a labeled data set."""
        from simkit.core.status import Status
        from simkit.jobs.notebook import RunDataset

        attributes = attributes_of(self.scenario, version=self.version)
        stands = {
            "status": Status(int(self.status)).name.lower() if self.finished else "unfinished",
            # As a number, since files of data sets know no booleans.
            "failed": int(self.failed),
            "message": self.message,
        }
        dataset = datasets.to_dataset(self.arrays, self.labels, attributes | stands)
        annotate(dataset, self.labels.get("quantities", {}), self.scenario)
        return RunDataset.of(dataset, self) if self.kind == "run" else dataset

    def __repr__(self) -> str:
        """Return one line; the arrays are in `dataset`."""
        return f"<Outcome: {self.message}; {len(self.arrays['status'])} frames>"


def checked(outcome: Outcome) -> Outcome:
    """Return an outcome, raising if it is not finite and warning if it failed otherwise or calls for caution."""
    from simkit.core.status import CAUTIONS, ONLY_DERIVATIVES, Status

    if (outcome.status == Status.NON_FINITE).any():
        raise RunFailedError(outcome.message)
    warned = [code for code in (*CAUTIONS, Status.MAX_STEPS) if code not in ONLY_DERIVATIVES]
    if outcome.failed or np.isin(outcome.status, warned).any():
        warnings.warn(outcome.message, stacklevel=3)
    return outcome


def describe(scenario: Scenario) -> str:
    """Return the parameters of a scenario in one line."""
    return ", ".join(f"{name} = {parameter.default}" for name, parameter in scenario.parameters.items())


def execute(
    scenario: Scenario,
    simulation: "Simulation",
    plan: "Plan",
    directory: RunDirectory | None,
    report: Report,
    warn: Callable[[str], None] = lambda message: None,
    summarize: Callable[[Outcome], Mapping[str, Any]] = lambda outcome: {},
    kind: Kind = "run",
) -> Outcome:
    """Drive a simulation to its end, from wherever its directory left off.

    Args:
        scenario: what is run, overrides applied.
        simulation: the scenario's simulation, or one derived from it.
        plan: steps and frames.
        directory: where it is kept, or ``None``.
        report: told after every segment.
        warn: told in one line of damaged files.
        summarize: what else goes into the summary file.
        kind: what the outcome is called.
    """
    import jax

    from simkit.core.status import Status
    from simkit.engine.driver import final_status

    key = jax.random.key(scenario.run.seed)
    arrays, last = record(simulation, key, plan, directory.store if directory else None, report, warn)
    outcome = Outcome(
        arrays=arrays,
        labels=datasets.labels_of(simulation),
        status=final_status(simulation, last.status),
        segments=last.index,
        directory=directory.path if directory else None,
        scenario=scenario,
        kind=kind,
    )
    if directory:
        summary = {
            "status": Status(int(outcome.status)).name,
            "status_code": int(outcome.status),
            "segments": outcome.segments,
            "diagnostics": outcome.diagnostics,
            **summarize(outcome),
        }
        write_sealed_json(directory.path / SUMMARY, summary, directory.identity)
    return outcome


def record(
    simulation: "Simulation",
    key: "jax.Array",
    plan: "Plan",
    store: "Store | None",
    report: Report,
    warn: Callable[[str], None],
    **options: Any,
) -> "tuple[dict[str, np.ndarray], Piece]":
    """Drive a simulation to its end and return all its arrays (with those stored earlier) and its last piece.

    Args:
        simulation: what to run, with its own ``params``; ``options`` may name other ``params``.
        key: random key.
        plan: steps and frames.
        store: where it is kept, or ``None``.
        report: told after every segment.
        warn: told of damaged files.
        **options: passed on to `simkit.engine.driver.drive`.
    """
    from simkit.engine.driver import drive

    params = options.pop("params", simulation.params)
    pieces = []
    for piece in drive(simulation, params, key, plan, store=store, warn=warn, **options):
        report(piece, plan.segments)
        pieces.append(piece)
    arrays = store.read() if store else [piece.arrays for piece in pieces]
    return datasets.join(arrays), pieces[-1]
