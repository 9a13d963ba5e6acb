"""Jobs: work that is requested once, checked, stored in a run directory, and resumed or read back from there."""

import abc
import contextlib
import dataclasses
import functools
import math
import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import jax
import jax.numpy as jnp
from jax.core import Tracer

from simkit.core import paths
from simkit.core.compilation import use_compilation_cache
from simkit.core.devices import computing_as, refuse_no_platform, settle
from simkit.core.precision import precision
from simkit.core.pytrees import size_in_bytes
from simkit.core.settings import flag, unwrapped
from simkit.core.simulation import Arrays, Simulation
from simkit.engine import memory
from simkit.engine.driver import Plan, Program
from simkit.engine.memory import SHARE, frame_bytes, shapes_of
from simkit.errors import UserError, argument
from simkit.jobs.reporting import Report, Warn, progress_of
from simkit.scenario.scenario import Scenario
from simkit.storage import datasets
from simkit.storage.files import DamagedFileError, check_regular
from simkit.storage.kinds import kind_of
from simkit.storage.manifest import Check, describe_frames
from simkit.storage.run_directory import SUMMARY, RunDirectory, check_output, folder_of

if TYPE_CHECKING:
    import xarray


@dataclasses.dataclass(frozen=True)
class StoredProgress:
    """Stored part of a job.

    Attributes:
        fraction: stored fraction of the job, of its maximum length if it may end early.
        words: stored amount, such as ``"120 of 400 steps"``.
        failed: a line for each failed member (the first of many), or for the run.
        times: times at which its files were written, in seconds.
        failures: number of failed members and damaged files; ``None`` if ``failed`` lists them all.
        members: number of members that have ended, of a sweep.
        totals: number of stored members by status, and quantiles of their final diagnostics.
    """

    fraction: float
    words: str
    failed: list[str]
    times: list[float]
    failures: int | None = None
    members: int = 0
    totals: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def write_times(paths: Iterable[Path]) -> list[float]:
    """Return the write times of files, in seconds; files removed meanwhile by another process are omitted."""
    times = []
    for path in paths:
        with contextlib.suppress(OSError):
            times.append(path.stat().st_mtime)
    return times


def enter(name: str, *arguments: Any, **flags: Any) -> None:
    """Check a call, and turn on the compilation cache.

    Args:
        name: of the function, such as ``"run"``.
        *arguments: those that may hold arrays.
        **flags: arguments that must be True or False.

    Raises:
        UserError: if a flag is something else, JAX finds no device, or the call is made under a transformation of JAX.
    """
    for key, value in flags.items():
        flag("").check(unwrapped(value, key), key)
    refuse_no_platform()
    # A simulation made in Python holds its parameters; a new array is traced under a transformation, too.
    leaves = jax.tree.leaves([getattr(argument, "params", argument) for argument in arguments])
    if any(isinstance(leaf, Tracer) for leaf in (*leaves, jnp.zeros(()))):
        raise UserError(
            f"simkit.{name} is called under jax.jit, jax.grad or another transformation of JAX, which cannot trace its "
            "loop on the host; call simkit.trajectory or simkit.Objective there, or simkit.value_and_grad outside"
        )
    use_compilation_cache()


def check_frames(state: Any, frame: "Arrays", plan: "Plan", output: Path | None) -> None:
    """Check that the state and frames of a run, given by their shapes, fit in memory and on the disk of ``output``.

    Raises:
        UserError: if they do not fit.
    """
    frames, limit = (plan.frames + 1) * sum(frame_bytes(frame)), int(SHARE * memory.available_bytes())
    # A segment holds the state at its start and the state at its end.
    need, remedy = 2 * size_in_bytes(state), "make the simulation smaller"
    memory.check_room("the state of this simulation needs", need, limit, remedy)
    memory.check_room(f"the {plan.frames + 1} frames of this run need", frames, limit, fewer_frames(plan))
    # Two checkpoints, and the temporary file of a third.
    check_disk(frames + 3 * size_in_bytes(state), output, fewer_frames(plan))


def check_declared_sizes(simulation: "Simulation", frames: int, remedy: str) -> None:
    """Check the memory of frames by the dimensions that the simulation declares, without tracing it.

    Args:
        simulation: the simulation; arrays with dimensions without coordinates are not counted.
        frames: number of frames kept in memory.
        remedy: remedy named in the error.

    Raises:
        UserError: if they need more than the free memory.
    """
    lengths = {name: len(values) for name, values in simulation.coordinates.items()}
    shapes = [[lengths.get(name, 0) for name in names] for names in simulation.dimensions.values()]
    itemsize = min((value.dtype.itemsize for value in paths.leaves(simulation.params).values()), default=4)
    need = frames * itemsize * sum(math.prod(shape) for shape in shapes if shape)
    words = "1 frame needs" if frames == 1 else f"{frames} frames need"
    memory.check_room(words, need, memory.available_bytes(), remedy, "are free")


def fewer_frames(plan: "Plan") -> str:
    """Return the remedy for too many frames, in words."""
    remedy = "make the simulation smaller"
    return f"store fewer with a larger every (now {plan.every}), or {remedy}" if plan.every < plan.steps else remedy


def check_disk(needed: int, output: Path | None, remedy: str) -> None:
    """Check that files of ``needed`` bytes fit on the disk of a run directory, if there is one.

    Raises:
        UserError: if they do not fit, with the remedy.
    """
    if output is None:
        return
    home = output.resolve()
    free = shutil.disk_usage(next(parent for parent in (home, *home.parents) if parent.exists())).free
    remedy += f", or choose another disk with {argument('output')}"
    memory.check_room(f"{output} would take", needed, free, remedy, "are free on its disk")


@dataclasses.dataclass(frozen=True)
class Prepared:
    """Simulation and program of a job.

    Attributes:
        simulation: simulation of a run, of one member of a sweep, or of an optimization.
        program: program of the simulation, or of a chunk of members.
        costs: memory in bytes and seconds of compilation of the program by number of members, as far as it is compiled.
    """

    simulation: "Simulation"
    program: "Program"
    costs: dict[int, tuple[int, float]] = dataclasses.field(default_factory=dict, compare=False)

    @functools.cached_property
    def shapes(self) -> "tuple[Any, Arrays]":
        """Shapes of the state and of a frame, see `simkit.engine.memory.shapes_of`."""
        return shapes_of(self.simulation)


@dataclasses.dataclass(frozen=True)
class Job[Result](abc.ABC):
    """A job as it was requested; the fields in `request_checks` and `request_added_later` are stored in the manifest.

    Attributes:
        scenario: scenario with overrides applied.
        pictures: options of pictures that were given on the command line, which hold when the job is resumed.
        kind: key of `simkit.storage.kinds.KINDS`, stored in manifests.
        noun: name of the kind in messages, such as ``"a sweep"``.
        request_checks: check of each entry of the manifest's ``request``, see `simkit.storage.manifest`.
        request_added_later: checks of entries that earlier manifests lack; the default of the field is then used.
        files: regular expression of the files that only this kind writes.
        stores: regular expression of the folders that hold segments, besides the run directory itself.
        nested: regular expression of the folders that are themselves run directories, and their kind.
        has_frames: whether the job stores frames, which can be drawn and exported.
        keeps_parts: whether a finished job has all of its parts; one that lacks some is resumed.
        report: name of the report that shows a result, such as ``"run"``.
        repair: effect of resuming a job with a damaged result, in words.
    """

    kind: ClassVar[str]
    noun: ClassVar[str]
    request_checks: ClassVar[Mapping[str, Check]] = {}
    request_added_later: ClassVar[Mapping[str, Check]] = {}
    files: ClassVar[str] = ""
    stores: ClassVar[str] = ""
    nested: ClassVar[tuple[str, str] | None] = None
    has_frames: ClassVar[bool] = False
    keeps_parts: ClassVar[bool] = False
    report: ClassVar[str]
    repair: ClassVar[str] = "repair the run"

    scenario: Scenario
    pictures: Mapping[str, Any] = dataclasses.field(default_factory=dict, kw_only=True, compare=False)

    @classmethod
    def of(cls, directory: RunDirectory) -> Self:
        """Return the job of a run directory."""
        request, names = directory.manifest["request"], (*cls.request_checks, *cls.request_added_later, "pictures")
        return cls(directory.scenario(), **{name: request[name] for name in names if name in request}).checked()

    def checked(self) -> Self:
        """Return the job with its fields checked and converted to their types."""
        return self

    @property
    def results(self) -> tuple[str, ...]:
        """Files of a finished job."""
        return (SUMMARY,)

    @property
    def progress(self) -> dict[str, Any]:
        """Arguments of the progress bar: ``steps``, ``unit`` and ``may_end_early``."""
        return {}

    @abc.abstractmethod
    def simulation(self, *, new: bool) -> "Simulation":
        """Return the simulation to run; for a new job, with checks of its values and size."""

    @abc.abstractmethod
    def program(self, simulation: "Simulation") -> "Program":
        """Return the program of the simulation; each of its functions is compiled when it is first called."""

    def bytes_at_once(self, prepared: Prepared) -> float:
        """Return the bytes of the states that advance together, by which `simkit.core.devices.settle` chooses."""
        return size_in_bytes(prepared.shapes[0])

    def fitted(self, prepared: Prepared, output: Path | None) -> Self:
        """Return the job with a size that fits in memory and on the disk of ``output``, or refuse it."""
        return self

    @abc.abstractmethod
    def execute(self, prepared: Prepared, directory: RunDirectory | None, report: Report, warn: Warn) -> Result:
        """Compute the rest of the job, store the result in the directory if there is one, and return it."""

    @abc.abstractmethod
    def stored_progress(self, directory: RunDirectory) -> StoredProgress:
        """Return the progress of a job from its files; it may be unfinished, or running in another process."""

    @abc.abstractmethod
    def check_finished(self, directory: RunDirectory) -> None:
        """Check the files that `read` does not check.

        Raises:
            DamagedFileError: if a file is damaged or missing, so that the job must be resumed.
        """

    @classmethod
    @abc.abstractmethod
    def read(cls, directory: RunDirectory) -> Result:
        """Return the stored result.

        Raises:
            DamagedFileError: if a file is damaged.
            UserError: if no result is stored yet.
        """

    @staticmethod
    @abc.abstractmethod
    def dataset(result: Result) -> "xarray.Dataset":
        """Return a result as a labeled data set."""

    @staticmethod
    @abc.abstractmethod
    def warning(result: Result) -> str:
        """Return a warning about a result, in one line; empty if there is none.

        Raises:
            RunFailedError: if the whole result is non-finite.
        """


def begin[Result](
    job: Job[Result],
    output: Path | str | None,
    overwrite: bool = False,
    report: Report = lambda fraction, words: None,
    examine: Callable[[Prepared], None] = lambda prepared: None,
) -> Result:
    """Run a new job, unless ``examine`` refuses it."""
    folder, job = folder_of(output) if output else None, job.checked()
    if folder:
        check_output(folder, overwrite=overwrite)
    with precision(job.scenario.run.precision):
        prepared = prepared_of(job, new=True)
        settle(job.scenario.name, lambda: job.bytes_at_once(prepared))
        examine(prepared)
        job = job.fitted(prepared, folder)
        if folder is None:
            return job.execute(prepared, None, report, warnings.warn)
        request = {"labels": datasets.labels_of(prepared.simulation), "arrays": describe_frames(prepared.shapes[1])}
        request |= {name: getattr(job, name) for name in (*job.request_checks, *job.request_added_later)}
        request |= {"pictures": job.pictures} if job.pictures else {}
        with RunDirectory.created(folder, job.kind, job.scenario, request, overwrite=overwrite) as directory:
            return job.execute(prepared, directory, report, warnings.warn)


def proceed[Result](
    job: Job[Result], directory: RunDirectory, warn: Warn = warnings.warn, report: Report = lambda fraction, words: None
) -> Result:
    """Resume an interrupted job, on the kind of device on which it began where that is present.

    Args:
        job: job of the directory.
        directory: its run directory.
        warn: called with one line about damaged files, or software that has changed since the job began.
        report: called with the progress.
    """
    with computing_as(directory.device):
        directory.warn_of_changes(warn)
        if all(check_regular(directory.path / name) for name in job.results):
            # An intact result needs neither the lock nor write permission.
            try:
                job.check_finished(directory)
                return job.read(directory)
            except DamagedFileError:
                pass
        with precision(job.scenario.run.precision), directory.locked():
            return job.execute(prepared_of(job, new=False), directory, report, warn)


def prepared_of(job: Job[Any], *, new: bool) -> Prepared:
    """Return the simulation and program of a job, in the current precision; of a new one, checked."""
    simulation = job.simulation(new=new)
    return Prepared(simulation, job.program(simulation))


def stored(directory: RunDirectory) -> Any:
    """Return the stored result of a job, without computing anything.

    Raises:
        UserError: if nothing is stored yet or a file is damaged.
    """
    job = kind_of(directory.kind)
    try:
        return job.read(directory)
    except DamagedFileError as error:
        raise UserError(f"{error}; {job.repair} with: {directory.resuming}") from None


def run_to_dataset(job: Job[Any], work: Callable[[Report], Any]) -> "xarray.Dataset":
    """Run a job with progress in a notebook, warn about its result, and return it as a labeled data set.

    Args:
        job: the job.
        work: function that runs it, given a progress callback, and returns its result.
    """
    with progress_of(job.scenario.name, **job.progress) as update:
        result = work(update)
    if warning := job.warning(result):
        warnings.warn(warning, stacklevel=3)
    from simkit.jobs.results import Origin, ResultDataset  # xarray takes a second to import

    request = {name: getattr(job, name) for name in ("wrt", "objective") if hasattr(job, name)}
    return ResultDataset.of(job.dataset(result), Origin(job.report, job.scenario, result, **request))
