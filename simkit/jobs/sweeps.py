"""Sweeps: many members of one scenario as one vmapped program, in chunks that fit in memory."""

import abc
import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from simkit.errors import UserError
from simkit.jobs.assembly import in_memory, on_disk
from simkit.jobs.callbacks import Report, Warn
from simkit.jobs.chunk_size import Sizes
from simkit.jobs.chunks import Chunks, program_of_chunk
from simkit.jobs.executors.executor import Executor
from simkit.jobs.executors.in_this_process import IN_THIS_PROCESS
from simkit.jobs.job import Job, Prepared
from simkit.jobs.members import Members
from simkit.jobs.outcome import RunFailedError
from simkit.jobs.points import check_axes, check_counts, check_extremes
from simkit.jobs.size_checks import check_declared_sizes
from simkit.jobs.stored_objectives import OBJECTIVES, store_objectives
from simkit.jobs.stored_progress import StoredProgress
from simkit.jobs.sweep_objectives import objectives_to_compute
from simkit.jobs.sweep_progress import chunk_progress
from simkit.jobs.sweep_results import (
    RESULT,
    failures,
    read_result,
    read_summary,
    store_result,
    undefined_objectives,
)
from simkit.scenario.build import build
from simkit.storage import manifest_schema
from simkit.storage.chunk_files import check_chunks, check_chunks_exist
from simkit.storage.regular_files import check_regular
from simkit.storage.run_directory import SUMMARY, RunDirectory

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation
    from simkit.engine.driver import Program

BLOCKS_PER_WORKER = 4


@dataclasses.dataclass(frozen=True)
class SweepJob(Members, Job["xarray.Dataset"]):
    """A job of many members, see `Members`: a sweep in chunks, or the sweeps of several configurations.

    Attributes:
        executor: executor of the chunks.
    """

    keeps_parts = True
    request_checks: ClassVar = {
        "over": manifest_schema.each(manifest_schema.NUMBERS),
        "seeds": manifest_schema.COUNT,
        "chunk": manifest_schema.COUNT,
        "final_frames": manifest_schema.FLAG,
    }
    request_added_later: ClassVar = {
        "zip": manifest_schema.FLAG,
        "origin": manifest_schema.WORD,
        "blocks": manifest_schema.COUNT,
        "in_one_file": manifest_schema.FLAG,
    }
    report = "sweep"
    repair = "make it again"

    executor: Executor = IN_THIS_PROCESS

    @property
    @abc.abstractmethod
    def parts(self) -> "list[Sweep]":
        """The sweeps of which it consists: itself, or one for each configuration."""

    @abc.abstractmethod
    def opened(self, directory: RunDirectory) -> "xarray.Dataset":
        """Return the finished result that stays in its chunks.

        Raises:
            DamagedFileError: naming a missing chunk or a damaged summary.
        """

    @property
    def results(self) -> tuple[str, ...]:
        """Files of a finished sweep, besides its chunks."""
        return (RESULT, SUMMARY) if self.in_one_file else (SUMMARY,)

    def check_folder(self, output: Path | None) -> None:
        """Refuse a sweep in other processes without a run directory.

        Args:
            output: run directory to write, or ``None``.

        Raises:
            UserError: if there is none and chunks are not computed in this process.
        """
        if output is None and not self.executor.in_this_process:
            raise UserError("workers write their results into a run directory; give output=, or leave workers out")

    @classmethod
    def read(cls, directory: RunDirectory) -> "xarray.Dataset":
        """Return the result of a finished sweep."""
        job = cls.of(directory)
        if not all(check_regular(directory.path / name) for name in job.results):
            raise UserError(f"{directory.path} is not finished; finish it with: {directory.resuming}")
        return read_result(directory) if job.in_one_file else job.opened(directory)

    @staticmethod
    def dataset(result: "xarray.Dataset") -> "xarray.Dataset":
        """Return the result itself."""
        return result

    @staticmethod
    def warning(result: "xarray.Dataset") -> str:
        """Return the members that failed."""
        messages = failures(result)
        if messages and bool((result["status"] == "non_finite").all()):
            raise RunFailedError(f"{messages[0]}, and so did every other member")
        return "; ".join([*messages, *undefined_objectives(result)])


@dataclasses.dataclass(frozen=True)
class Sweep(SweepJob):
    """A sweep over members of one configuration, in chunks."""

    kind = "sweep"
    noun = "a sweep"
    files = r"sweep\.(nc|png)|objectives\.npz|chunk_\d{4,}\.npz"
    stores = r"chunk_\d{4,}"

    def checked(self) -> "Sweep":
        """Return the job with its values as tuples of numbers.

        Raises:
            UserError: if a value, or a number of seeds or members, is invalid.
        """
        check_counts(self.scenario, self.seeds, self.chunk, self.memory)
        if self.scenario.made is not None and not self.executor.in_this_process:
            raise UserError(
                f"{self.scenario.name} was made in Python, in this process, and cannot be made in others; leave out "
                "workers= and scheduler=, or register it (docs/extending.md)"
            )
        return dataclasses.replace(self, over=self.points.checked(self.scenario).over)

    def simulation(self, *, new: bool) -> "Simulation":
        """Return the simulation of one member."""
        if not new:
            return build(self.scenario)
        kept = self.members if self.final_frames else 0
        remedy = "pass final_frames=False or sweep fewer values"

        def examine(made: "Simulation") -> None:
            check_declared_sizes(made, kept, remedy)
            check_axes(made, self.over)

        simulation = build(self.scenario, examine=examine)
        first = self.scenario.run.seed
        check_extremes(simulation, self.points, range(first, first + self.seeds))
        return simulation

    def program(self, simulation: "Simulation") -> "Program":
        """Return the program of a chunk, used by all chunks."""
        return program_of_chunk(simulation, self)

    @property
    def results(self) -> tuple[str, ...]:
        """Files of a finished sweep, besides its chunks."""
        has_file = not self.in_one_file and objectives_to_compute(self.objectives)
        return (OBJECTIVES, *super().results) if has_file else super().results

    @property
    def parts(self) -> "list[Sweep]":
        """The sweep itself."""
        return [self]

    def fitted(self, prepared: Prepared, output: Path | None, *, compiled: bool = True) -> "Sweep":
        """Return the sweep with chunks that fit in memory; see `Sizes.fitting_chunk` for ``compiled``."""
        self.check_folder(output)
        is_small, workers = self.in_one_file and Sizes(self, prepared).is_in_one_file, self.executor.concurrency
        job = dataclasses.replace(self, in_one_file=output is None or is_small)
        chunk = Sizes(job, prepared).fitting_chunk(output, self.executor, compiled=compiled)
        job = dataclasses.replace(job, chunk=chunk)
        if not prepared.simulation.converges:
            return job
        # Several blocks per worker, since some end early; each large enough to fill its lanes.
        blocks = 1 if workers == 1 else max(min(self.members // chunk, BLOCKS_PER_WORKER * workers), workers)
        if not job.in_one_file:
            blocks = max(blocks, 2, -(-self.members // Sizes(self, prepared).most_members))
        return dataclasses.replace(job, blocks=min(blocks, self.members))

    def execute(
        self, prepared: Prepared, directory: RunDirectory | None, report: Report, warn: Warn
    ) -> "xarray.Dataset":
        """Compute every chunk that is not stored yet, and return the result."""
        chunks, found = Chunks(self, prepared, directory), dict[int, dict[str, np.ndarray]]()

        def keep(index: int, arrays: dict[str, np.ndarray] | None) -> bool:
            # If the result is larger than memory, a chunk is checked and dropped.
            if arrays is not None and self.in_one_file:
                found[index] = arrays
            return arrays is not None

        missing = [index for index in range(chunks.count) if not keep(index, chunks.stored(index, warn))]
        if missing:
            # Closed also when interrupted here: no chunk is written after the lock of the directory is released.
            with contextlib.closing(self.executor.run(chunks, missing, report, warn)) as computed:
                for index, arrays in computed:
                    keep(index, arrays)
        if directory is None or self.in_one_file:
            result = in_memory(prepared.simulation, self, [found[index] for index in range(chunks.count)])
        else:
            store_objectives(self, prepared.simulation, directory, map(chunks.read, range(chunks.count)))
            result = on_disk(self, directory)
        return store_result(directory, result, in_one_file=self.in_one_file) if directory else result

    def stored_progress(self, directory: RunDirectory) -> StoredProgress:
        """Return the number of stored members, and their failures."""
        return chunk_progress(self, directory, self.repair)

    def check_finished(self, directory: RunDirectory) -> None:
        """Check the files of all chunks."""
        check_chunks(directory, self.members, self.plan.frames + 1)

    def opened(self, directory: RunDirectory) -> "xarray.Dataset":
        """Return the result that stays in its chunks.

        Raises:
            DamagedFileError: naming a missing chunk or a damaged summary.
        """
        summary, length = read_summary(directory), self.chunk_length(converges=self.blocks > 1)
        check_chunks_exist(directory, -(-self.members // length))
        return on_disk(self, directory).assign_attrs(failed=summary["failures"])
