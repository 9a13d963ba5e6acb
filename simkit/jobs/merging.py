"""Merging of finished sweeps: their members are copied chunk by chunk into one sweep."""

import dataclasses
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from simkit.core.precision import precision
from simkit.errors import UserError, one_line
from simkit.jobs.callbacks import Report, Warn
from simkit.jobs.chunk_size import disk_bytes, is_in_one_file, most_members
from simkit.jobs.chunks import Chunks
from simkit.jobs.entrance import enter
from simkit.jobs.job import Prepared, prepared_of, run_to_dataset
from simkit.jobs.joined_sweeps import JoinedSweep, joined_sweeps
from simkit.jobs.lazy_results import ChunkReader
from simkit.jobs.size_checks import check_disk
from simkit.jobs.stored_arrays import member_axis
from simkit.jobs.sweeps import Sweep
from simkit.storage.archives import write_arrays
from simkit.storage.regular_files import check_regular
from simkit.storage.run_directory import RunDirectory, check_output, folder_of

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation


def merge(
    folders: Sequence[Path | str],
    output: Path | str,
    *,
    overwrite: bool = False,
    simulation: "Simulation | None" = None,
) -> "xarray.Dataset":
    """Merge finished sweeps of the same scenario and settings into one, which is opened and resumed like any other.

    Sweeps of equal points must have consecutive seeds; sweeps of different points must have equal seeds and no common
    point. Damaged chunks of the result are computed again by `resume`, and their last digits may then differ.

    Args:
        folders: run directories of sweeps, at least two.
        output: directory to write.
        overwrite: replace an existing run directory.
        simulation: their simulation, if it was made in Python.

    Returns:
        The result that `simkit.sweep` of all points and seeds returns.

    Raises:
        UserError: naming a folder without a finished sweep, a difference in settings, or a damaged chunk.
    """
    enter("merge", simulation, overwrite=overwrite)
    opened = sweeps_in(folders, simulation)
    work = partial(merged, opened, output, overwrite=overwrite, warn=warnings.warn)
    return run_to_dataset(Sweep.of(opened[0]), lambda report: work(report=report))


def sweeps_in(folders: Sequence[Path | str], simulation: "Simulation | None" = None) -> list[RunDirectory]:
    """Open the run directories of finished sweeps.

    Args:
        folders: run directories, at least two.
        simulation: their simulation, if it was made in Python.

    Raises:
        UserError: naming a folder that is not a finished sweep, or is given twice.
    """
    given = list(folders) if isinstance(folders, Iterable) and not isinstance(folders, str | Path) else []
    if len(given) < 2:
        raise UserError(
            f"folders = {one_line(repr(folders), 60)}: merging takes two sweeps or more; give a list of their folders"
        )
    opened = [RunDirectory.open(folder, simulation) for folder in given]
    homes = [directory.path.resolve() for directory in opened]
    for index, directory in enumerate(opened):
        if homes[index] in homes[:index]:
            raise UserError(f"{directory.path} is given twice; keep one of them")
        if directory.kind == "config_sweep":
            raise UserError(
                f"{directory.path} is a sweep over configurations; merge the sweeps in its folders config_0000, ... "
                "with those of another"
            )
        if directory.kind != Sweep.kind:
            raise UserError(f"{directory.path} holds no sweep; give the folder of one")
        if not all(check_regular(directory.path / name) for name in Sweep.of(directory).results):
            raise UserError(f"{directory.path} is not finished; finish it with: {directory.resuming}")
    return opened


def merged(
    opened: Sequence[RunDirectory], output: Path | str, *, overwrite: bool, warn: Warn, report: Report
) -> "xarray.Dataset":
    """Write finished sweeps as one sweep, and return its result.

    Args:
        opened: run directories of the sweeps.
        output: run directory to write.
        overwrite: replace an existing run directory.
        warn: called with one line about software that has changed.
        report: called with the progress.

    Raises:
        UserError: if they cannot be merged.
    """
    folder, sweeps = folder_of(output), [Sweep.of(directory) for directory in opened]
    check_output(folder, overwrite=overwrite)
    if folder.resolve() in [directory.path.resolve() for directory in opened]:
        raise UserError(f"{folder} is one of the sweeps that are merged; choose another with output=")
    whole = joined_sweeps(opened, sweeps)
    for directory in opened:
        directory.warn_of_changes(warn)
    with precision(whole.sweep.scenario.run.precision):
        prepared = prepared_of(whole.sweep, new=False)
        job = _chunked(whole.sweep, prepared)
        check_disk(disk_bytes(job, prepared), folder, "merge fewer sweeps")
        request = opened[0].manifest["request"]
        request = {**request, **{name: getattr(job, name) for name in (*job.request_checks, *job.request_added_later)}}
        with RunDirectory.created(folder, job.kind, job.scenario, request, overwrite=overwrite) as directory:
            chunks = Chunks(job, prepared, directory)
            readers = [
                ChunkReader(source, chunks.plan.frames + 1, sweep.chunk_length(converges=chunks.uses_lanes))
                for source, sweep in zip(opened, sweeps, strict=True)
            ]
            try:
                for index in range(chunks.count):
                    file, members = chunks.file(index), np.asarray(chunks.members(index))
                    assert file is not None  # there is a directory
                    write_arrays(file.path, _gathered(whole, members, readers), file.seal)
                    report((index + 1) / chunks.count, f"{members[-1] + 1} of {job.members} members")
            except UserError:
                # Without archives the folder is removed; `resume` would compute the missing chunks of a partial merge.
                for path in directory.path.glob("chunk_*.npz"):
                    path.unlink()
                raise
            return job.execute(prepared, directory, report, warn)


def _chunked(sweep: Sweep, prepared: Prepared) -> Sweep:
    """Return a joined sweep with chunk size, blocks and storage chosen."""
    job = dataclasses.replace(sweep, in_one_file=is_in_one_file(sweep, prepared))
    most = job.members if job.in_one_file else most_members(job, prepared)
    if not prepared.simulation.converges:
        return dataclasses.replace(job, chunk=min(job.chunk or job.members, most))
    return dataclasses.replace(job, blocks=-(-job.members // most))


def _gathered(whole: JoinedSweep, members: np.ndarray, readers: Sequence[ChunkReader]) -> dict[str, np.ndarray]:
    """Return the arrays of a chunk, gathered from the chunks of the merged sweeps."""
    found: dict[str, np.ndarray] = {}
    for source, here, numbers in whole.locate(members):
        reader = readers[source]
        for index in np.unique(numbers // reader.length).tolist():
            inside = np.flatnonzero(numbers // reader.length == index)
            for name, array in reader.read(index).items():
                axis = member_axis(name)
                part = np.take(array, numbers[inside] - index * reader.length, axis=axis)
                shape = (*array.shape[:axis], len(members), *array.shape[axis + 1 :])
                target = found.setdefault(name, np.zeros(shape, array.dtype))
                target[(slice(None),) * axis + (here[inside],)] = part
    return found
