"""A job: work that is asked for once, kept in a run directory, and finished or read back from there.

Each kind is a subclass of `Job` in a file of its own, and a line in `simkit.storage.kinds.KINDS`. The functions here
begin, finish and read back any of them.
"""

import abc
import dataclasses
import functools
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from simkit.core.precision import precision
from simkit.errors import UserError
from simkit.jobs.callbacks import Report, Warn
from simkit.jobs.notebook import progress_of
from simkit.jobs.so_far import SoFar
from simkit.scenario.scenario import Scenario
from simkit.storage import datasets
from simkit.storage.files import DamagedFileError
from simkit.storage.kinds import kind_of
from simkit.storage.manifest import describe_frames
from simkit.storage.manifest_schema import Check
from simkit.storage.regular_files import check_regular
from simkit.storage.run_directory import SUMMARY, RunDirectory, check_output, folder_of

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Arrays, Simulation
    from simkit.engine.driver import Program


@dataclasses.dataclass(frozen=True)
class Prepared:
    """What a job runs.

    Attributes:
        simulation: of a run, of a member of a sweep, or of an optimization.
        program: that runs it, or a chunk of members.
    """

    simulation: "Simulation"
    program: "Program"

    @functools.cached_property
    def shapes(self) -> "tuple[Any, Arrays]":
        """Shapes of a state and of a frame, see `simkit.engine.memory.shapes_of`."""
        from simkit.engine.memory import shapes_of

        return shapes_of(self.simulation)


@dataclasses.dataclass(frozen=True)
class Job[Result](abc.ABC):
    """What was asked for; fields named in `asked` and `asked_later` are kept in the manifest and read back from there.

    Attributes:
        scenario: overrides applied.
        kind: as in manifests, a key of `simkit.storage.kinds.KINDS`.
        noun: as in messages, such as ``"a sweep"``.
        asked: the check of each entry of the manifest's ``request``, see `simkit.storage.manifest_schema`.
        asked_later: entries of the request that manifests of earlier versions lack, where the default stands for them.
        files: regular expression of the names of files that other kinds do not write.
        stores: regular expression of the folders that hold segments, besides the run directory itself.
        nested: regular expression of the folders that are run directories of their own, and their kind.
        has_frames: whether it stores frames, which can be drawn and exported.
        report: module of the layer above whose ``finish`` prints and draws a result on the command line.
        repair: what resuming does to a damaged result, in words.
    """

    kind: ClassVar[str]
    noun: ClassVar[str]
    asked: ClassVar[Mapping[str, Check]] = {}
    asked_later: ClassVar[Mapping[str, Check]] = {}
    files: ClassVar[str] = ""
    stores: ClassVar[str] = ""
    nested: ClassVar[tuple[str, str] | None] = None
    has_frames: ClassVar[bool] = False
    report: ClassVar[str]
    repair: ClassVar[str] = "repair the run"

    scenario: Scenario

    @classmethod
    def of(cls, directory: RunDirectory) -> Self:
        """Return the job that a run directory was made for.

        Raises:
            UserError: if it cannot be read back.
        """
        request = directory.manifest["request"]
        known = {name: request[name] for name in (*cls.asked, *cls.asked_later) if name in request}
        return cls(directory.scenario(), **known).checked()

    def checked(self) -> Self:
        """Return the same job, in the types of its fields.

        Raises:
            UserError: if a name is unknown or a number out of range.
        """
        return self

    @property
    def results(self) -> tuple[str, ...]:
        """Files that it has when it is finished."""
        return (SUMMARY,)

    @property
    def progress(self) -> dict[str, Any]:
        """Arguments of `simkit.cli.progress.Progress`."""
        return {}

    @abc.abstractmethod
    def simulation(self, *, new: bool) -> "Simulation":
        """Return what is run; of a new job, what cannot be run or cannot fit is refused."""

    @abc.abstractmethod
    def program(self, simulation: "Simulation") -> "Program":
        """Return the program that runs it; each of its parts is compiled when it is first called."""

    def fitted(self, prepared: Prepared, output: Path | None) -> Self:
        """Return the job in the size in which it fits in memory and on the disk.

        Args:
            prepared: what it runs.
            output: the run directory to be, or ``None``.

        Raises:
            UserError: if it does not fit.
        """
        return self

    @abc.abstractmethod
    def execute(self, prepared: Prepared, directory: RunDirectory | None, report: Report, warn: Warn) -> Result:
        """Do what is left to do, store what comes of it in the directory if there is one, and return it."""

    @abc.abstractmethod
    def so_far(self, directory: RunDirectory) -> SoFar:
        """Return what the files of a job say that may be unfinished, or under way in another process."""

    @abc.abstractmethod
    def check_finished(self, directory: RunDirectory) -> None:
        """Check what `read` does not.

        Raises:
            DamagedFileError: if a file is damaged or missing, so that the job has to go on.
        """

    @classmethod
    @abc.abstractmethod
    def read(cls, directory: RunDirectory) -> Result:
        """Return what is stored.

        Raises:
            DamagedFileError: if a file is damaged.
            UserError: if there is nothing to read yet.
        """

    @staticmethod
    @abc.abstractmethod
    def dataset(result: Result) -> "xarray.Dataset":
        """Return a result as a labeled data set."""

    @staticmethod
    @abc.abstractmethod
    def warning(result: Result) -> str:
        """Return what must be known of a result before it is used, in one line; empty if that is nothing.

        Raises:
            RunFailedError: if all of it turned non-finite.
        """


def begin[Result](
    job: Job[Result], output: Path | str | None, overwrite: bool = False, report: Report = lambda fraction, words: None
) -> Result:
    """Do a job from the beginning.

    Args:
        job: what is asked for.
        output: run directory to write, or ``None``.
        overwrite: replace an existing run directory.
        report: called with the progress.

    Raises:
        UserError: if the job cannot be done or the output cannot be written; nothing is left half-written.
    """
    folder, job = folder_of(output) if output else None, job.checked()
    if folder:
        check_output(folder, overwrite=overwrite)
    with precision(job.scenario.run.precision):
        prepared = prepared_of(job, new=True)
        job = job.fitted(prepared, folder)
        if folder is None:
            return job.execute(prepared, None, report, warnings.warn)
        request = {"labels": datasets.labels_of(prepared.simulation), "arrays": describe_frames(prepared.shapes[1])}
        request |= {name: getattr(job, name) for name in (*job.asked, *job.asked_later)}
        with RunDirectory.begun(folder, job.kind, job.scenario, request, overwrite=overwrite) as directory:
            return job.execute(prepared, directory, report, warnings.warn)


def proceed[Result](
    job: Job[Result], directory: RunDirectory, warn: Warn = warnings.warn, report: Report = lambda fraction, words: None
) -> Result:
    """Finish an interrupted job.

    Args:
        job: that of the directory.
        directory: where it is kept.
        warn: called with one line that says what was damaged, or which software has changed since the job began.
        report: called with the progress.

    Raises:
        UserError: if the directory cannot be read back.
    """
    directory.warn_of_changes(warn)
    if all(check_regular(directory.path / name) for name in job.results):
        # What is whole needs no lock and no permission to write.
        try:
            job.check_finished(directory)
            return job.read(directory)
        except DamagedFileError:
            pass
    with precision(job.scenario.run.precision), directory.locked():
        return job.execute(prepared_of(job, new=False), directory, report, warn)


def prepared_of(job: Job[Any], *, new: bool) -> Prepared:
    """Return what a job runs, in the precision that is set.

    Args:
        job: what is asked for.
        new: whether what cannot run or does not fit is refused.
    """
    simulation = job.simulation(new=new)
    return Prepared(simulation, job.program(simulation))


def stored(directory: RunDirectory) -> Any:
    """Return what a job has stored so far, without computing anything.

    Args:
        directory: where it is kept.

    Raises:
        UserError: if nothing is stored yet or a file is damaged.
    """
    job = kind_of(directory.kind)
    try:
        return job.read(directory)
    except DamagedFileError as error:
        raise UserError(f"{error}; {job.repair} with: simkit resume {directory.path}") from None


def returned(job: Job[Any], work: Callable[[Report], Any]) -> "xarray.Dataset":
    """Do a job as the functions of `simkit` do: with progress in a notebook and warnings, to a labeled data set.

    Args:
        job: what is asked for.
        work: does it, told where to report; returns its result.

    Raises:
        RunFailedError: if all of the result turned non-finite.
    """
    with progress_of(job.scenario.name, **job.progress) as update:
        result = work(update)
    if warning := job.warning(result):
        warnings.warn(warning, stacklevel=3)
    return job.dataset(result)
