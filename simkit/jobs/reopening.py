"""Resuming and reading of stored jobs of any kind."""

import dataclasses
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.core.parameter import Numbers
from simkit.core.simulation import Simulation
from simkit.errors import UserError, one_line
from simkit.jobs.entrance import enter
from simkit.jobs.job import Job, proceed, run_to_dataset, stored
from simkit.jobs.outcome import Outcome
from simkit.scenario.declared import declared_in
from simkit.scenario.scenario import Scenario
from simkit.scenario.sections import ParameterSettings
from simkit.storage.kinds import kind_of
from simkit.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    import xarray


def resume(
    directory: Path | str,
    *,
    simulation: "Simulation | None" = None,
    workers: int | None = None,
    scheduler: str | None = None,
    deadline: float | None = None,
) -> "xarray.Dataset":
    """Finish an interrupted run, sweep, optimization or derivative without repeating its work, and return the result.

    Args:
        directory: the run directory.
        simulation: the simulation, if it was made in Python.
        workers: number of worker processes of a sweep, as for `simkit.sweep`; the bytes of the result do not depend on
            it.
        scheduler: scheduler of a Dask cluster, as for `simkit.sweep`.
        deadline: time limit of a chunk in seconds, as for `simkit.sweep`.

    Raises:
        UserError: if it is not a run directory, cannot be read back, or is of another simulation.
        RunFailedError: if the run turns non-finite.
    """
    if simulation is not None and not isinstance(simulation, Simulation):
        raise UserError(f"simulation is of type {type(simulation).__name__}; give a simkit.Simulation")
    enter("resume", simulation)
    opened = RunDirectory.open(directory, simulation)
    job = with_executor(kind_of(opened.kind).of(opened), workers, scheduler, deadline)
    if simulation is not None and (others := _other_values(job.scenario, simulation)):
        warnings.warn(f"{opened.path} continues with the values that it began with: {others}", stacklevel=2)
    return run_to_dataset(job, partial(proceed, job, opened, warnings.warn))


def _other_values(scenario: Scenario, simulation: "Simulation") -> str:
    """Return the values of a run that are neither those of the simulation given to resume it nor given by keyword.

    The values of a run that was given some by keyword differ from the simulation's own, which its file has. Made again
    as it was, the simulation has them still, and there is nothing to say. Empty if there is none.
    """
    given, began = declared_in(simulation), (scenario.original or scenario).parameter_settings
    return ", ".join(
        f"{name} = {one_line(parameter.default, 40)} (given: {one_line(given[name].default, 40)})"
        for name, parameter in scenario.parameters.items()
        if name in given
        and not np.array_equal(given[name].default, parameter.default)
        and not _is_default(given[name].default, began.get(name))
    )


def _is_default(value: Numbers, settings: ParameterSettings | None) -> bool:
    return settings is not None and settings.default is not None and np.array_equal(value, settings.default)


def with_executor(
    job: Job[Any], workers: int | None = None, scheduler: str | None = None, deadline: float | None = None
) -> Job[Any]:
    """Return a job whose chunks are computed by workers.

    Args:
        job: the job to resume.
        workers: as for `resume`.
        scheduler: as for `resume`.
        deadline: as for `resume`.

    Raises:
        UserError: if the job is not a sweep, or the arguments exclude each other.
    """
    if workers is None and scheduler is None and deadline is None:
        return job
    from simkit.jobs.executors.choice import executor_of
    from simkit.jobs.sweeps import SweepJob

    if not isinstance(job, SweepJob):
        raise UserError(
            f"workers= and scheduler= distribute the members of a sweep; {job.noun} has no members; leave them out"
        )
    return dataclasses.replace(job, executor=executor_of(workers, scheduler, deadline)).checked()


def open_run(directory: Path | str) -> "xarray.Dataset":
    """Return the stored result of a run, sweep, optimization or derivative as a data set, without computing anything.

    Arrays of a sweep whose result is larger than `simkit.jobs.chunk_size.ONE_FILE` are read from its chunks when they
    are indexed, as Dask arrays if Dask is installed.

    Args:
        directory: the run directory.

    Raises:
        UserError: if it is not a run directory or its files are damaged; for chunks read later, at that time.
    """
    opened = RunDirectory.open(directory)
    return kind_of(opened.kind).dataset(stored(opened))


def open_frames(directory: Path | str, lacks: str) -> Outcome:
    """Return the stored outcome of a run.

    Args:
        directory: the run directory.
        lacks: noun for the error of other kinds of jobs, such as ``"animation"``.

    Raises:
        UserError: if it is not the directory of a run, or its files are damaged.
    """
    opened = RunDirectory.open(directory)
    kind = kind_of(opened.kind)
    if not kind.has_frames:
        raise UserError(f"{opened.path} holds {kind.noun}, which has no {lacks}; give a run's directory")
    return stored(opened)
