"""Sweeps: many members of one scenario as one vmapped program, in chunks that fit in memory."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from simkit.engine.plan import plan_of
from simkit.errors import UserError
from simkit.jobs.assembly import assembled
from simkit.jobs.callbacks import Report, Warn
from simkit.jobs.chunk_size import fitting_chunk
from simkit.jobs.chunks import Chunks, program_of_chunk
from simkit.jobs.executors.executor import IN_THIS_PROCESS, Executor
from simkit.jobs.fitting import check_declared
from simkit.jobs.job import Job, Prepared
from simkit.jobs.members import Members
from simkit.jobs.outcome import RunFailedError
from simkit.jobs.points import check_axes, check_counts, check_extremes
from simkit.jobs.so_far import SoFar
from simkit.jobs.sweep_progress import chunks_so_far
from simkit.jobs.sweep_results import RESULT, failures, read_result, store_result
from simkit.scenario.build import build
from simkit.storage import manifest_schema
from simkit.storage.chunk_files import check_chunks
from simkit.storage.regular_files import check_regular
from simkit.storage.run_directory import SUMMARY, RunDirectory

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation
    from simkit.engine.driver import Program

BLOCKS_PER_PLACE = 4


@dataclasses.dataclass(frozen=True)
class Sweep(Members, Job["xarray.Dataset"]):
    """What to sweep, see `Members`, and where its chunks are computed.

    Attributes:
        executor: computes the chunks.
    """

    kind = "sweep"
    noun = "a sweep"
    files = r"sweep\.(nc|png)|chunk_\d{4,}\.npz"
    stores = r"chunk_\d{4,}"
    asked: ClassVar = {
        "over": manifest_schema.each(manifest_schema.NUMBERS),
        "seeds": manifest_schema.COUNT,
        "chunk": manifest_schema.COUNT,
        "final_frames": manifest_schema.FLAG,
    }
    asked_later: ClassVar = {
        "zip": manifest_schema.FLAG,
        "origin": manifest_schema.WORD,
        "blocks": manifest_schema.COUNT,
    }
    results = (RESULT, SUMMARY)
    report = "simkit.cli.reports.sweep"
    repair = "make it again"

    executor: Executor = IN_THIS_PROCESS

    def checked(self) -> "Sweep":
        """Return the same, its values as tuples of numbers.

        Raises:
            UserError: if a value, or a number of seeds or members, cannot be.
        """
        check_counts(self.scenario, self.seeds, self.chunk, self.memory)
        if self.scenario.made is not None and not self.executor.in_this_process:
            raise UserError(
                f"{self.scenario.name} was made in Python, in this process, and cannot be made in others; leave out "
                "workers= and scheduler=, or register it (docs/extending.md)"
            )
        return dataclasses.replace(self, over=self.points.checked(self.scenario).over)

    def simulation(self, *, new: bool) -> "Simulation":
        """Return the member."""
        if not new:
            return build(self.scenario)
        kept = self.members if self.final_frames else 0
        remedy = "pass final_frames=False or sweep fewer values"

        def examine(made: "Simulation") -> None:
            check_declared(made, kept, remedy)
            check_axes(made, self.over)

        simulation = build(self.scenario, examine=examine)
        first = self.scenario.run.seed
        check_extremes(simulation, self.points, range(first, first + self.seeds))
        return simulation

    def program(self, simulation: "Simulation") -> "Program":
        """Return the program of a chunk, by which every chunk runs."""
        return program_of_chunk(simulation, self)

    def fitted(self, prepared: Prepared, output: Path | None) -> "Sweep":
        """Return the sweep in chunks that fit."""
        self.check_folder(output)
        chunk, places = fitting_chunk(self, prepared, output, self.executor), self.executor.places
        if places == 1 or not prepared.simulation.converges:
            return dataclasses.replace(self, chunk=chunk)
        # Several blocks for each place, since some end early; and none that leaves lanes empty from the beginning.
        blocks = max(min(self.members // chunk, BLOCKS_PER_PLACE * places), places)
        return dataclasses.replace(self, chunk=chunk, blocks=min(blocks, self.members))

    def check_folder(self, output: Path | None) -> None:
        """Refuse a sweep whose workers have nowhere to write to.

        Args:
            output: the run directory to be, or ``None``.

        Raises:
            UserError: if there is none and chunks are not computed in this process.
        """
        if output is None and not self.executor.in_this_process:
            raise UserError("workers write what they compute into a run directory; give output=, or leave them out")

    def execute(
        self, prepared: Prepared, directory: RunDirectory | None, report: Report, warn: Warn
    ) -> "xarray.Dataset":
        """Run every chunk that is not stored yet."""
        chunks = Chunks(self, prepared, directory)
        found = {index: chunks.stored(index, warn) for index in range(chunks.count)}
        missing = [index for index, arrays in found.items() if arrays is None]
        if missing:
            found |= self.executor.run(chunks, missing, report, warn)
        result = assembled(prepared.simulation, self, [arrays for arrays in found.values() if arrays is not None])
        return store_result(directory, result) if directory else result

    def so_far(self, directory: RunDirectory) -> SoFar:
        """Return how many members are stored, and those that failed."""
        return chunks_so_far(self, directory, self.repair)

    def check_finished(self, directory: RunDirectory) -> None:
        """Check the files of all chunks."""
        check_chunks(directory, self.members, plan_of(self.scenario).frames + 1)

    @classmethod
    def read(cls, directory: RunDirectory) -> "xarray.Dataset":
        """Return the result of a finished sweep."""
        if not all(check_regular(directory.path / name) for name in cls.results):
            raise UserError(f"{directory.path} is not finished; finish it with: simkit resume {directory.path}")
        return read_result(directory)

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
        return "; ".join(messages)
