"""Finish or read back what a run directory holds, whatever kind of job that is."""

import dataclasses
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.core.compilation import use_compilation_cache
from simkit.errors import UserError
from simkit.jobs.job import Job, proceed, returned, stored
from simkit.jobs.outcome import Outcome
from simkit.storage.kinds import kind_of
from simkit.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation


def resume(
    directory: Path | str,
    *,
    simulation: "Simulation | None" = None,
    workers: int | None = None,
    scheduler: str | None = None,
    deadline: float | None = None,
) -> "xarray.Dataset":
    """Finish an interrupted run, sweep or optimization (nothing is computed twice) and return what it returns.

    Args:
        directory: the run directory.
        simulation: the one it began with, if that was made in Python.
        workers: of a sweep, as for `simkit.sweep`, as are the next two; the result has the same bytes with and without.
        scheduler: of a Dask cluster.
        deadline: of a chunk, in seconds.

    Raises:
        UserError: if it is not a run directory, cannot be read back, or is of another simulation.
        RunFailedError: if the run turns non-finite.
    """
    from simkit.core.simulation import Simulation

    if simulation is not None and not isinstance(simulation, Simulation):
        raise UserError(f"simulation is of type {type(simulation).__name__}; give a simkit.Simulation")
    use_compilation_cache()
    opened = RunDirectory.open(directory, simulation)
    job = with_executor(kind_of(opened.kind).of(opened), workers, scheduler, deadline)
    return returned(job, partial(proceed, job, opened, warnings.warn))


def with_executor(
    job: Job[Any], workers: int | None = None, scheduler: str | None = None, deadline: float | None = None
) -> Job[Any]:
    """Return a job whose chunks are computed by workers.

    Args:
        job: what is gone on with.
        workers: as for `resume`, as are the others.
        scheduler: of a Dask cluster.
        deadline: of a chunk, in seconds.

    Raises:
        UserError: if the job is not a sweep, or the arguments do not go together.
    """
    if workers is None and scheduler is None and deadline is None:
        return job
    from simkit.jobs.executors.choice import executor_of
    from simkit.jobs.sweeps import Sweep

    if not isinstance(job, Sweep):
        raise UserError(
            f"workers= and scheduler= share out the members of a sweep; {job.noun} has none: leave them out"
        )
    return dataclasses.replace(job, executor=executor_of(workers, scheduler, deadline)).checked()


def open_run(directory: Path | str) -> "xarray.Dataset":
    """Return what a run, sweep or optimization has stored so far as a labeled data set, without computing anything.

    The chunks of a sweep whose results are larger than `simkit.jobs.chunk_size.ONE_FILE` are read as far as they are
    used, as Dask arrays where Dask is installed.

    Args:
        directory: the run directory.

    Raises:
        UserError: if it is not a run directory or its files are damaged; of chunks that are read later, when they are.
    """
    opened = RunDirectory.open(directory)
    return kind_of(opened.kind).dataset(stored(opened))


def open_frames(directory: Path | str, lacks: str) -> Outcome:
    """Return what a run has stored so far.

    Args:
        directory: the run directory.
        lacks: what others than runs have not, such as ``"animation"``.

    Raises:
        UserError: if it is not the directory of a run, or its files are damaged.
    """
    opened = RunDirectory.open(directory)
    kind = kind_of(opened.kind)
    if not kind.has_frames:
        raise UserError(f"{opened.path} holds {kind.noun}, which has no {lacks}; give a run's directory")
    return stored(opened)
