"""Stored jobs of any kind: progress, resumption and results."""

import dataclasses
import io
import itertools
import statistics
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from simkit.core.arguments import check_type
from simkit.core.parameter import Numbers
from simkit.core.settings import whole
from simkit.core.simulation import Simulation
from simkit.core.status import Status
from simkit.errors import UserError, argument, one_line
from simkit.jobs.job import Job, StoredProgress, enter, proceed, run_to_dataset, stored
from simkit.jobs.runs import Outcome, Run
from simkit.scenario.scenario import ParameterSettings, Scenario, declared_in
from simkit.storage import datasets
from simkit.storage.files import check_regular
from simkit.storage.kinds import kind_of
from simkit.storage.run_directory import RunDirectory, is_locked

if TYPE_CHECKING:
    import xarray


# A gap between two files longer than this many median gaps counts as an interruption.
PAUSE = 10


@dataclasses.dataclass(frozen=True)
class Progress:
    """Progress of the job in a run directory.

    Attributes:
        folder: the run directory.
        kind: kind of job, in words.
        scenario: name of the scenario.
        state: ``"finished"``, or ``"damaged"`` if a finished sweep lacks parts; ``"running"`` if a process has locked
            the directory; otherwise ``"interrupted"``.
        fraction: stored fraction of the job.
        words: stored amount, such as ``"12 of 32 members"``.
        failed: a line for each failed member (the first `MOST_NAMED`), or for the run.
        failures: number of failures.
        totals: ``statuses``, the number of stored members of a sweep by status, and ``quantiles`` of their final
            diagnostics.
        resuming: the command that resumes the job, or the call in Python.
        seconds_left: estimated from the times of the files; ``None`` if the job is not running or has just begun.
    """

    folder: Path
    kind: str
    scenario: str
    state: Literal["finished", "running", "interrupted", "damaged"]
    fraction: float
    words: str
    failed: list[str]
    failures: int
    totals: Mapping[str, Any]
    resuming: str
    seconds_left: float | None


def progress_of(path: Path | str) -> Progress:
    """Return the progress of the job in a run directory; nothing is written or computed."""
    directory = RunDirectory.open(path)
    job: Any = kind_of(directory.kind).of(directory)
    part: StoredProgress = job.stored_progress(directory)
    state = "running" if is_locked(directory.path) else "interrupted"
    if all(check_regular(directory.path / name) for name in job.results):
        state = "finished" if part.fraction == 1 or not job.keeps_parts else "damaged"
    began = (directory.path / "manifest.json").stat().st_mtime
    fraction = 1.0 if state == "finished" else part.fraction
    left = None
    if state == "running":
        left = _seconds_left(fraction, [began, *part.times], (directory.path / ".lock").stat().st_mtime)
    noun = job.noun.removeprefix("a ").removeprefix("an ")
    failures = len(part.failed) if part.failures is None else part.failures
    return Progress(
        folder=directory.path,
        kind=noun,
        scenario=directory.manifest["scenario"],
        state=state,
        fraction=fraction,
        words=part.words,
        failed=part.failed,
        failures=failures,
        totals=part.totals,
        resuming=directory.resuming,
        seconds_left=left,
    )


def _seconds_left(fraction: float, times: Sequence[float], resumed: float) -> float | None:
    """Return the time left at the speed so far, without interruptions, of which the last one ended at ``resumed``."""
    times = sorted(times)
    gaps = [after - before for before, after in itertools.pairwise(times) if not before < resumed < after]
    if not gaps or not 0 < fraction < 1:
        return None
    longest = PAUSE * statistics.median(gaps)
    worked = sum(min(gap, longest) for gap in gaps) if len(gaps) > 2 else sum(gaps)
    return worked * (1 - fraction) / fraction


def resume(
    directory: Path | str,
    *,
    simulation: "Simulation | None" = None,
    workers: int | None = None,
    scheduler: str | None = None,
    deadline: float | None = None,
    steps: int | None = None,
) -> "xarray.Dataset":
    """Finish an interrupted run, sweep, optimization or derivative without repeating its work, and return the result.

    Args:
        directory: the run directory.
        simulation: the simulation, if it was made in Python.
        workers: number of worker processes of a sweep, as for `simkit.sweep`; the bytes of the result do not depend on
            it.
        scheduler: scheduler of a Dask cluster, as for `simkit.sweep`.
        deadline: time limit of a chunk in seconds, as for `simkit.sweep`.
        steps: continue a finished run to this number of steps; its frames are those of one run of as many steps.

    Raises:
        UserError: if it is not a run directory, cannot be read back, or is of another simulation.
        RunFailedError: if the run turns non-finite.

    Example:
        >>> run = simkit.run("projectile", steps=100, output="runs/throw", overwrite=True)
        >>> longer = simkit.resume("runs/throw", steps=160)
        >>> print(f"{float(run['time'][-1]):.1f} s, then {float(longer['time'][-1]):.1f} s")
        1.0 s, then 1.6 s
    """
    check_type("simulation", simulation, "a simkit.Simulation", Simulation, type(None))
    enter("resume", simulation)
    opened = RunDirectory.open(directory, simulation)
    job = extended(with_executor(opened, workers, scheduler, deadline), opened, steps)
    if simulation is not None and (others := _other_values(job.scenario, simulation)):
        warnings.warn(f"{opened.path} continues with the values that it began with: {others}", stacklevel=2)
    return run_to_dataset(job, partial(proceed, job, opened, warnings.warn))


def _other_values(scenario: Scenario, simulation: "Simulation") -> str:
    """Return the values of a run that are neither those of the simulation given to resume it nor given by keyword.

    The values of a run that was given some by keyword differ from the simulation's own, which its file has. Made again
    as it was, the simulation has them still, and there is nothing to say. Empty if there is none.
    """
    declared, began = declared_in(simulation), (scenario.original or scenario).parameter_settings
    return ", ".join(
        f"{name} = {one_line(parameter.default, 40)} (given: {one_line(declared[name].default, 40)})"
        for name, parameter in scenario.parameters.items()
        if name in declared
        and not np.array_equal(declared[name].default, parameter.default)
        and not _is_default(declared[name].default, began.get(name))
    )


def _is_default(value: Numbers, settings: ParameterSettings | None) -> bool:
    return settings is not None and settings.default is not None and np.array_equal(value, settings.default)


def with_executor(
    directory: RunDirectory,
    workers: int | None = None,
    scheduler: str | None = None,
    deadline: float | None = None,
    executor: str | None = None,
) -> Job[Any]:
    """Return a stored job, its chunks computed by workers, see `resume` and, for ``executor``, `simkit.sweep`.

    Raises:
        UserError: if the job is not a sweep, or the arguments exclude each other.
    """
    job: Any = kind_of(directory.kind).of(directory)
    if all(each is None for each in (workers, scheduler, deadline, executor)):
        return job
    options = f"{argument('workers')} and {argument('scheduler')}"
    words = f", and {options} distribute the members of a sweep; leave them out"
    directory.check_kind(hasattr(job, "executor"), words)
    # A run that is resumed loads nothing of sweeps.
    from simkit.jobs.executors.choice import executor_of

    chosen: Any = {"executor": executor_of(workers, scheduler, deadline, executor)}
    return dataclasses.replace(job, **chosen).checked()


def extended(job: Job[Any], directory: RunDirectory, steps: int | None) -> Job[Any]:
    """Return a finished run with further steps, or the job itself if ``steps`` is ``None``.

    Raises:
        UserError: if the job is not a run, or as for `Run.extended`.
    """
    if steps is None:
        return job
    directory.check_kind(isinstance(job, Run), f", and {argument('steps')} continues a run; leave it out")
    return cast(Run, job).extended(directory, steps)


def open_run(directory: Path | str) -> "xarray.Dataset":
    """Return the stored result of a run, sweep, optimization or derivative as a data set, without computing anything.

    Arrays of a sweep whose result is larger than `simkit.jobs.chunk_size.ONE_FILE` are read from its chunks when they
    are indexed, as Dask arrays if Dask is installed.

    Args:
        directory: the run directory.

    Raises:
        UserError: if it is not a run directory or its files are damaged; for chunks read later, at that time.

    Example:
        >>> run = simkit.run("projectile", output="runs/throw", overwrite=True)
        >>> stored = simkit.open_run("runs/throw")
        >>> bool((stored["height"] == run["height"]).all())
        True
    """
    from simkit.jobs.results import Origin, ResultDataset  # xarray takes a second to import

    opened = RunDirectory.open(directory)
    kind, result, request = kind_of(opened.kind), stored(opened), opened.manifest["request"]
    about = Origin(kind.report, opened.scenario(), result, tuple(request.get("wrt", ())), request.get("objective", ""))
    return ResultDataset.of(kind.dataset(result), about)


def open_frames(directory: Path | str, lacks: str) -> Outcome:
    """Return the stored outcome of a run; the error of other kinds of jobs says what they lack, ``"animation"``."""
    opened = RunDirectory.open(directory)
    opened.check_kind(kind_of(opened.kind).has_frames, f", which has no {lacks}; give a run's directory")
    return stored(opened)


def open_ends(directory: Path | str) -> Outcome:
    """Return the stored outcome of a run; of a sweep one with the end of each member in place of a frame.

    Besides the last diagnostics of a member its swept values, its seed and its status are diagnostics.

    Args:
        directory: the run directory.

    Raises:
        UserError: if it is neither a run nor a sweep of one program, or the sweep has kept no last frames.
    """
    opened = RunDirectory.open(directory)
    if opened.kind != "sweep":
        return open_frames(directory, "frames of its own")
    job: Any = kind_of(opened.kind).of(opened)
    result, labels = open_run(directory), opened.manifest["request"]["labels"]
    axes = result["status"].dims
    last = result.isel(frame=-1) if "frame" in result.dims else result
    arrays: dict[str, np.ndarray] = {}
    for name, array in last.data_vars.items():
        plain = str(name).removeprefix("final_")
        kind = "observed" if array.ndim > len(axes) or plain in labels["dimensions"] else "diagnosed"
        values = array.values.reshape(-1, *array.shape[len(axes) :])
        arrays[f"{kind}.{plain if kind == 'observed' else name}"] = values
    values, seeds = job.values_of(np.arange(job.members))
    arrays |= {f"diagnosed.{name.replace('.', '_')}": array for name, array in values.items()}
    arrays["diagnosed.seed"] = seeds
    if not any(name.startswith("observed.") for name in arrays):
        raise UserError(f"{directory} keeps no last frames; sweep again without {argument('final_frames', 'False')}")
    return Outcome(arrays, labels, np.asarray(int(Status.OK)), 0, opened.path, job.scenario)


def frame_archive(directory: Path | str, frame: Any) -> bytes:
    """Return the content of an ``.npz`` file with the arrays that a run observed in one frame, and its places.

    Args:
        directory: the run directory.
        frame: which one, counted from 0, or from -1 backward.

    Raises:
        UserError: if it is not a run, its files are damaged, or it has no such frame.
    """
    outcome = open_frames(directory, "frame")
    observed, _ = datasets.split(outcome.arrays)
    count = len(next(iter(observed.values()), ()))
    chosen = whole("", low=-count, high=count - 1).check(frame, f"{directory}: frame")
    buffer = io.BytesIO()
    places = {axis: np.asarray(outcome.labels["coordinates"].get(axis, ()), float) for axis in ("x", "y", "z")}
    arrays = {name: array[chosen] for name, array in observed.items()}
    np.savez(buffer, allow_pickle=False, **{axis: values for axis, values in places.items() if len(values)}, **arrays)
    return buffer.getvalue()
