"""Runs of one simulation: their outcome, in memory and in a run directory, and `simkit.run`."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import jax
import numpy as np

from simkit.core.devices import computing_on
from simkit.core.parameter import MOST_SHOWN, count
from simkit.core.precision import precision
from simkit.core.settings import unwrapped
from simkit.core.simulation import Simulation
from simkit.core.status import BROKEN, CAUTIONS, MESSAGES, ONLY_DERIVATIVES, TELLING, Status, failed
from simkit.engine.driver import Drive, Plan, Program, Segment, final_status, plan_of, run_all
from simkit.engine.processes import ProcessGroup, SharedDrive, SharedStore
from simkit.errors import UserError
from simkit.jobs.job import (
    Job,
    Prepared,
    StoredProgress,
    begin,
    check_declared_sizes,
    check_frames,
    enter,
    fewer_frames,
    prepared_of,
    run_to_dataset,
    write_times,
)
from simkit.jobs.reporting import Report, Warn
from simkit.scenario import checks
from simkit.scenario.build import build
from simkit.scenario.made_in_python import Source, load
from simkit.scenario.scenario import Scenario
from simkit.storage import datasets
from simkit.storage.datasets import annotate, attributes_of
from simkit.storage.files import DamagedFileError, check_regular, read_sealed_json, write_sealed_json
from simkit.storage.run_directory import SUMMARY, RunDirectory, resuming
from simkit.storage.store import Store

if TYPE_CHECKING:
    import xarray


NOT_FINITE = (
    "a time of after, before or at_time is not within the frames, the run failed or did not converge, its state at "
    "rest is a saddle or has parts that move freely, or the formula has no finite value or slope there"
)


class RunFailedError(Exception):
    """A run turned non-finite; the message names the steps and the parameters.

    Example:
        >>> blow_up = simkit.Simulation(
        ...     init=lambda params, key: {"x": params["x"], "time": jnp.zeros_like(params["x"])},
        ...     step=lambda state, params: {"x": state["x"] ** 2, "time": state["time"] + 1},
        ...     observe=lambda state, params: {"x": state["x"]},
        ...     diagnose=lambda state, params: {"time": state["time"]},
        ...     params={"x": 2.0},
        ... )
        >>> try:
        ...     simkit.run(blow_up, steps=100, every=10)
        ... except simkit.RunFailedError as error:
        ...     print(str(error).partition(";")[0])
        simulation turned non-finite
    """

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints: the message without a traceback."""
        return [f"{type(self).__name__}: {self}"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Result of a run.

    Attributes:
        arrays: joined frames and diagnostics, ``{"observed.NAME" | "diagnosed.NAME" | "status": array}``.
        labels: dimensions and coordinates, see `simkit.storage.datasets.labels_of`.
        status: final `simkit.core.status.Status` code, one per member for an ensemble.
        segments: index of the last segment.
        directory: its run directory, or ``None``.
        scenario: the scenario that was run, with overrides applied.
        finished: whether the run is finished; an interrupted run may be read before it is resumed.
        version: version of simkit that began the run; empty for the current one.
    """

    arrays: dict[str, np.ndarray]
    labels: dict[str, Any]
    status: np.ndarray
    segments: int
    directory: Path | None
    scenario: Scenario
    finished: bool = True
    version: str = ""

    @property
    def failed(self) -> bool:
        """Whether any member failed."""
        return bool(failed(self.status).any())

    @property
    def diagnostics(self) -> dict[str, float]:
        """The last value of every diagnostic."""
        return {name: array[-1].item() for name, array in datasets.split(self.arrays)[1].items()}

    @property
    def message(self) -> str:
        """The status in words; of a failed run also the step, the largest values before it, and the parameters."""
        status = Status(int(self.status))
        if not self.finished:
            remedy = f"; finish it with: {resuming(self.directory, self.scenario.simulation)}" if self.directory else ""
            return f"{self.scenario.name} is not finished (stored up to {self._step(-1)}){remedy}"
        if not self.failed:
            limits = self._limits if status is Status.CONVERGED else []
            return "; ".join([f"{self.scenario.name} {MESSAGES[status]}", *limits, *self._numbers, *self.cautions])
        when = self._when() if status in BROKEN else f"after {self._step(-1)}"
        numbers = "".join(f"; {words}" for words in self._numbers)
        return f"{self.scenario.name} {MESSAGES[status]} ({when}{numbers}, with {describe(self.scenario)})"

    @property
    def _numbers(self) -> list[str]:
        """Return the diagnostics that tell of the status, at the end, each with its meaning."""
        quantities, last = self.labels.get("quantities", {}), self.diagnostics
        told = [name for name in TELLING.get(Status(int(self.status)), ()) if name in last]
        return [f"{name} = {last[name]:.3g} ({quantities.get(name, {}).get('doc', name)})" for name in told]

    @property
    def _limits(self) -> list[str]:
        """Which diagnostics are within which limits, by which the run has converged."""
        quantities, last = self.labels.get("quantities", {}), self.diagnostics
        told = {name: each["limit"] for name, each in quantities.items() if each.get("limit") and name in last}
        return [f"{name} = {last[name]:.3g} is within {limit}" for name, limit in told.items()]

    @property
    def cautions(self) -> list[str]:
        """What diagnostics say that should be zero at the end, see `simkit.core.simulation.Quantity`."""
        quantities, last = self.labels.get("quantities", {}), self.diagnostics
        told = {name: each["caution"] for name, each in quantities.items() if each.get("caution")}
        return [f"{name} = {last[name]:g}: {caution}" for name, caution in told.items() if last.get(name, 0) > 0]

    def _step(self, frame: int) -> str:
        """Return the step of a stored frame, in words."""
        return f"step {self.scenario.run.every * range(len(self.arrays['status']))[frame]}"

    def summary(self) -> dict[str, Any]:
        """Return the content of the summary file."""
        code = int(self.status)
        ending = {"status": Status(code).name, "status_code": code, "segments": self.segments}
        return ending | {"diagnostics": self.diagnostics}

    def _when(self) -> str:
        """Return the steps between which the run failed, and what tells of it at the first of them."""
        if len(self.arrays["status"]) < 2:
            return "at the start"
        diagnostics = datasets.split(self.arrays)[1].items()
        telling = ("largest_", "courant_number")
        largest = [f"{name} = {values[-2]:.3g}" for name, values in diagnostics if name.startswith(telling)]
        where = f", where {', '.join(largest)}," if largest else ""
        return f"between {self._step(-2)}{where} and {self._step(-1)}"

    def dataset(self) -> "xarray.Dataset":
        """Return frames and diagnostics as a labeled data set."""
        attributes = attributes_of(self.scenario, version=self.version)
        ending = {
            "status": Status(int(self.status)).name.lower() if self.finished else "unfinished",
            # A number, since file formats of data sets have no booleans.
            "failed": int(self.failed),
            "message": self.message,
        }
        dataset = datasets.to_dataset(self.arrays, self.labels, attributes | ending)
        annotate(dataset, self.labels.get("quantities", {}), self.scenario)
        return dataset

    def __repr__(self) -> str:
        """Return one line; the arrays are in `dataset`."""
        return f"<Outcome: {self.message}; {len(self.arrays['status'])} frames>"


def describe(scenario: Scenario, values: Mapping[str, float] | None = None) -> str:
    """Return the parameters of a scenario in one line, some with other values."""
    changed = values or {}

    def shown(value: Any) -> Any:
        return value if count(value) <= MOST_SHOWN else f"[{count(value)} values]"

    parameters = ((name, changed.get(name, parameter.default)) for name, parameter in scenario.parameters.items())
    return ", ".join(f"{name} = {shown(value)}" for name, value in parameters)


@dataclasses.dataclass(frozen=True)
class DrivenJob[Result: Outcome](Job[Result]):
    """A job that runs one simulation from its start, or from its last checkpoint, to its end."""

    result: ClassVar[type[Outcome]] = Outcome
    report = "run"

    @property
    def plan(self) -> "Plan":
        """Steps and frames."""
        return plan_of(self.scenario)

    def program(self, simulation: "Simulation") -> "Program":
        """Return the program of the simulation."""
        return Program.of(simulation, self.plan)

    def execute(self, prepared: Prepared, directory: RunDirectory | None, report: Report, warn: Warn) -> Result:
        """Run the simulation and write a summary."""
        simulation, plan = prepared.simulation, self.plan

        def on_segment(segment: "Segment") -> None:
            report(segment.index / plan.segments, self.words(segment))

        segments, last = self.drive(prepared, directory.store if directory else None, warn, on_segment)
        outcome = self.result(
            arrays=datasets.join(segments),
            labels=datasets.labels_of(simulation),
            status=final_status(simulation, last.status),
            segments=last.index,
            directory=directory.path if directory else None,
            scenario=self.scenario,
        )
        if directory:
            write_sealed_json(directory.path / SUMMARY, outcome.summary(), directory.identity)
        return cast(Result, outcome)

    def drive(
        self, prepared: Prepared, store: "Store | None", warn: Warn, report: "Callable[[Segment], None]"
    ) -> "tuple[list[dict[str, np.ndarray]], Segment]":
        """Run the simulation; return the arrays of all segments and the last, see `simkit.engine.driver.run_all`."""
        key = jax.random.key(self.scenario.run.seed)
        return run_all(Drive(prepared.program, prepared.simulation.params, key, self.plan), store, warn, report)

    def words(self, segment: "Segment") -> str:
        """Return words about a segment that a progress bar shows."""
        return ""

    def stored_progress(self, directory: RunDirectory) -> StoredProgress:
        """Return the number of stored segments, and the failure of the run if there is one."""
        written, plan, broken = directory.store.written(), self.plan, []
        count = max(len(written) - 1, 0)
        if written:
            try:
                status = directory.store.read_segment(written[-1])["status"][-1]
                # That a run took all its steps without converging is known at its end alone.
                if check_regular(summary := directory.path / SUMMARY):
                    status = np.asarray(read_sealed_json(summary, directory.identity).get("status_code", status))
                broken = [MESSAGES[Status(int(status))]] if failed(status) else []
            except DamagedFileError as error:
                broken = [f"{error}; {self.repair} with: {directory.resuming}"]
        steps = count * plan.frames_per_segment * plan.every
        words = f"{steps} of {plan.steps} {self.progress.get('unit', 'steps')}"
        return StoredProgress(min(count / plan.segments, 1.0), words, broken, write_times(written))

    def check_finished(self, directory: RunDirectory) -> None:
        """Check the checkpoints."""
        directory.store.check()

    @classmethod
    def read(cls, directory: RunDirectory) -> Result:
        """Return the outcome stored so far."""
        segments, summary = directory.store.read(), directory.path / SUMMARY
        if not segments:
            if check_regular(summary):
                raise DamagedFileError(f"{directory.path}: its segments are missing")
            directory.check_finished([SUMMARY], "holds no frames yet")
        arrays, labels = datasets.join(segments), directory.manifest["request"]["labels"]
        status = segments[-1]["status"][-1]
        if check_regular(summary):
            finished = read_sealed_json(summary, directory.identity)
            if finished.get("segments") != len(segments) - 1:
                raise DamagedFileError(f"{directory.path}: segment {len(segments):06d}.npz is missing")
            status = np.asarray(finished.get("status_code"))
        if not np.isin(status, list(Status)).all():
            raise DamagedFileError(f"{directory.path}: it holds an unknown status code")
        outcome = cls.result(
            arrays=arrays,
            labels=labels,
            status=status,
            segments=len(segments) - 1,
            directory=directory.path,
            scenario=directory.scenario(),
            finished=summary.exists(),
            version=directory.manifest["versions"].get("simkit", ""),
        )
        return cast(Result, outcome)

    @staticmethod
    def dataset(result: Result) -> "xarray.Dataset":
        """Return frames and diagnostics."""
        return result.dataset()

    @staticmethod
    def warning(result: Result) -> str:
        """Return the failure of a run, or its caution."""
        if np.isin(result.status, BROKEN).any():
            raise RunFailedError(result.message)
        warned = [code for code in (*CAUTIONS, Status.MAX_STEPS) if code not in ONLY_DERIVATIVES]
        is_told = result.failed or np.isin(result.status, warned).any() or result.cautions
        return result.message if is_told else ""


def run(
    scenario: Source,
    *,
    output: Path | str | None = None,
    overwrite: bool = False,
    device: str = "auto",
    **values: Any,
) -> "xarray.Dataset":
    """Run a scenario and return its frames and diagnostics as one labeled data set.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        output: run directory to write, resumable after a crash; ``None`` keeps the result in memory only.
        overwrite: replace an existing run directory.
        device: ``"cpu"``, ``"gpu"`` or ``"tpu"``; ``"auto"`` takes JAX's default, but the CPU for a small system.
        **values: parameters (``reynolds=800``), config or run settings (``steps=2000``, ``seed=1``).

    Raises:
        UserError: if an argument is wrong.
        RunFailedError: if the run turns non-finite. A run that does not converge returns with a warning.

    Example:
        >>> run = simkit.run("projectile", drag=0.0)
        >>> print(f"{float(run['height'][-1]):.4f} m, by hand {1.5 + 8 * np.sin(np.pi / 3) - 9.81 / 2:.4f} m")
        3.5232 m, by hand 3.5232 m
        >>> run["height"].dims, run["height"].units
        (('time',), 'm')
    """
    enter("run", scenario, values, overwrite=overwrite)
    with computing_on(device):
        job = Run(load(scenario, values))
        return run_to_dataset(job, partial(begin, job, output, overwrite))


@dataclasses.dataclass(frozen=True)
class Run(DrivenJob[Outcome]):
    """A run of a scenario.

    Attributes:
        group: group of the processes that run it together, including this one; ``None`` for a single process.
        first_steps: number of steps with which it began, if it was extended.
    """

    kind = "run"
    noun = "a run"
    has_frames = True

    group: "ProcessGroup | None" = None
    first_steps: int | None = None

    @classmethod
    def of(cls, directory: RunDirectory) -> "Run":
        """Return the run of a run directory."""
        steps = directory.manifest["values"]["run"]["steps"] if directory.extension is not None else None
        return dataclasses.replace(super().of(directory), first_steps=steps)

    @property
    def plan(self) -> "Plan":
        """Steps and frames; an extended run has segments of the same length as before."""
        return dataclasses.replace(plan_of(self.scenario), first_steps=self.first_steps)

    def extended(self, directory: RunDirectory, steps: int) -> "Run":
        """Return a finished run with further steps, of which its directory is told.

        Raises:
            UserError: if it is not finished, or ``steps`` does not fit its segments or memory.
        """
        run, length = self.scenario.run, self.plan.frames_per_segment * self.plan.every
        if steps == run.steps:  # extended already, and interrupted
            return self
        directory.check_finished([SUMMARY])
        steps = checks.integer(unwrapped(steps, "steps"), "steps", 1)
        if steps <= run.steps or steps % length:
            fitting = max(-(-steps // length), run.steps // length + 1) * length
            raise UserError(
                f"steps = {steps} does not continue {directory.path}: it has {run.steps} steps, stored in segments of "
                f"{length}, so give more steps, and a multiple of {length}, such as {fitting}",
                key="steps",
            )
        scenario = dataclasses.replace(self.scenario, run=dataclasses.replace(run, steps=steps))
        job = dataclasses.replace(self, scenario=scenario, first_steps=self.first_steps or run.steps)
        with precision(run.precision):
            try:
                prepared = prepared_of(job, new=False)
            except UserError as error:
                kept = f"cannot continue to step {steps}, since a stored run keeps its settings"
                raise UserError(f"{directory.path} {kept}; run it anew with others: {error}") from None
            check_frames(*prepared.shapes, job.plan, directory.path)
        directory.extend(steps)
        return Run.of(directory)

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

    def bytes_at_once(self, prepared: Prepared) -> float:
        """Return the bytes of the state, endless for a group of processes, which compute on JAX's default devices."""
        return math.inf if self.group else super().bytes_at_once(prepared)

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
        key = jax.random.key(self.scenario.run.seed)
        work = SharedDrive.of(self.group, prepared.program, prepared.simulation.params, key, self.plan)
        return run_all(work, SharedStore(self.group, store), warn, report)

    def follow(self) -> None:
        """Compute this process's part of the run, until the first process of the group ends or stops."""
        with precision(self.scenario.run.precision):
            self.drive(prepared_of(self, new=False), None, lambda message: None, lambda segment: None)
