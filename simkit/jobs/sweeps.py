"""Sweeps: many members of one scenario in chunks that fit in memory, their progress and the forecast of their size."""

import abc
import contextlib
import dataclasses
import time
from functools import partial
from pathlib import Path
from typing import ClassVar

import jax
import numpy as np
import xarray

from simkit.core.devices import settle
from simkit.core.precision import precision
from simkit.core.simulation import Simulation
from simkit.core.status import MESSAGES, Status
from simkit.engine.driver import Drive, Program
from simkit.errors import UserError, argument
from simkit.jobs import sweep_results
from simkit.jobs.chunk_size import Sizes
from simkit.jobs.chunks import Chunks, member_inputs, member_plan, program_of_chunk
from simkit.jobs.executors.executor import Executor
from simkit.jobs.executors.in_this_process import IN_THIS_PROCESS
from simkit.jobs.job import Job, Prepared, StoredProgress, check_declared_sizes, write_times
from simkit.jobs.points import Members, check_axes, check_counts, check_extremes
from simkit.jobs.reporting import Report, Warn
from simkit.jobs.runs import RunFailedError
from simkit.jobs.sweep_datasets import (
    OBJECTIVES,
    in_memory,
    members_first,
    objectives_to_compute,
    on_disk,
    store_objectives,
)
from simkit.scenario.build import build
from simkit.storage import datasets, manifest
from simkit.storage.chunk_files import ChunkFile, check_chunks
from simkit.storage.files import DamagedFileError
from simkit.storage.run_directory import SUMMARY, RunDirectory

BLOCKS_PER_WORKER = 4


@dataclasses.dataclass(frozen=True)
class SweepJob(Members, Job["xarray.Dataset"]):
    """A job of many members, see `Members`: a sweep in chunks, or the sweeps of several configurations.

    Attributes:
        executor: executor of the chunks.
    """

    keeps_parts = True
    request_checks: ClassVar = {
        "over": manifest.each(manifest.NUMBERS),
        "seeds": manifest.COUNT,
        "chunk": manifest.COUNT,
        "final_frames": manifest.FLAG,
    }
    request_added_later: ClassVar = {
        "zip": manifest.FLAG,
        "origin": manifest.WORD,
        "blocks": manifest.COUNT,
        "in_one_file": manifest.FLAG,
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
        return (sweep_results.RESULT, SUMMARY) if self.in_one_file else (SUMMARY,)

    def check_folder(self, output: Path | None) -> None:
        """Refuse a sweep in other processes without a run directory, or of a simulation that is in this one alone.

        Raises:
            UserError: if chunks are not computed in this process, and there is no directory, or the simulation was made
                in Python.
        """
        if self.executor.in_this_process:
            return
        problem = f"workers write their results into a run directory; give {argument('output')}, or leave workers out"
        if self.scenario.made is not None:
            options = f"{argument('workers')} and {argument('scheduler')}"
            problem = f"{self.scenario.name} was made in Python, in this process, and cannot be made in others"
            problem += f"; leave out {options}, or register it (docs/extending.md)"
        if output is None or self.scenario.made is not None:
            raise UserError(problem)

    @classmethod
    def read(cls, directory: RunDirectory) -> "xarray.Dataset":
        """Return the result of a finished sweep."""
        job = cls.of(directory)
        directory.check_finished(job.results)
        return sweep_results.read_result(directory) if job.in_one_file else job.opened(directory)

    def bytes_at_once(self, prepared: Prepared) -> float:
        """Return the bytes of the states of a chunk, of all members unless its size is given."""
        return min(self.members, self.chunk or self.members) * super().bytes_at_once(prepared)

    @staticmethod
    def dataset(result: "xarray.Dataset") -> "xarray.Dataset":
        """Return the result itself."""
        return result

    @staticmethod
    def warning(result: "xarray.Dataset") -> str:
        """Return the members that failed."""
        messages = sweep_results.failures(result)
        if messages and bool((result["status"] == "non_finite").all()):
            raise RunFailedError(f"{messages[0]}, and so did every other member")
        return "; ".join([*messages, *sweep_results.undefined_objectives(result)])


@dataclasses.dataclass(frozen=True)
class Sweep(SweepJob):
    """A sweep over members of one configuration, in chunks."""

    kind = "sweep"
    noun = "a sweep"
    files = r"sweep\.(nc|png)|objectives\.npz|chunk_\d{4,}\.npz"
    stores = r"chunk_\d{4,}"

    def checked(self) -> "Sweep":
        """Return the job with its values as tuples of numbers."""
        check_counts(self.scenario, self.seeds, self.chunk, self.memory)
        self.check_folder(Path())  # of a new sweep without one, see `fitted`
        return dataclasses.replace(self, over=self.checked_points())

    def simulation(self, *, new: bool) -> "Simulation":
        """Return the simulation of one member."""
        if not new:
            return build(self.scenario)
        frames = self.members if self.final_frames else 0
        remedy = f"pass {argument('final_frames', 'False')} or sweep fewer values"

        def examine(made: "Simulation") -> None:
            check_declared_sizes(made, frames, remedy)
            check_axes(made, self.over)

        simulation = build(self.scenario, examine=examine)
        check_extremes(simulation, self)
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

    @property
    def stored_length(self) -> int:
        """Number of members in each stored chunk but the last."""
        # Only converging members are divided into several blocks; a single block begins at member 0 in any case.
        return self.chunk_length(converges=self.blocks > 1)

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
        chunks, finished = Chunks(self, prepared, directory), dict[int, dict[str, np.ndarray]]()

        def keep(index: int, arrays: dict[str, np.ndarray] | None) -> bool:
            # If the result is larger than memory, a chunk is checked and dropped.
            if arrays is not None and self.in_one_file:
                finished[index] = arrays
            return arrays is not None

        missing = [index for index in range(chunks.count) if not keep(index, chunks.stored(index, warn))]
        if missing:
            # Closed also when interrupted here: no chunk is written after the lock of the directory is released.
            with contextlib.closing(self.executor.run(chunks, missing, report, warn)) as computed:
                for index, arrays in computed:
                    keep(index, arrays)
        if directory is None or self.in_one_file:
            arrays = [finished[index] for index in range(chunks.count)]
            result = in_memory(prepared.simulation, self, arrays, chunks.length)
            result.attrs["failed"] = int(sweep_results.is_failure(result["status"].values, self.failures).sum())
        else:
            store_objectives(self, prepared.simulation, directory, map(chunks.read, range(chunks.count)))
            result = on_disk(self, directory)
        return sweep_results.store_result(directory, result, in_one_file=self.in_one_file) if directory else result

    def stored_progress(self, directory: RunDirectory) -> StoredProgress:
        """Return the number of stored members, and their failures."""
        return _chunk_progress(self, directory)

    def check_finished(self, directory: RunDirectory) -> None:
        """Check the files of all chunks."""
        check_chunks(directory, -(-self.members // self.stored_length), self.plan.frames + 1, read=True)

    def opened(self, directory: RunDirectory) -> "xarray.Dataset":
        """Return the result that stays in its chunks."""
        summary = sweep_results.read_summary(directory)
        check_chunks(directory, -(-self.members // self.stored_length), read=False)
        return on_disk(self, directory).assign_attrs(failed=summary["failures"])


def _chunk_progress(sweep: Sweep, directory: RunDirectory) -> StoredProgress:
    """Return the progress of a sweep from the files of its chunks; another process may be writing to its directory."""
    size, frames, finished, left, under_way = sweep.stored_length, sweep.plan.frames + 1, 0, 0, 0.0
    lines, ends, damaged = list[str](), list[xarray.Dataset](), 0
    paths = sorted(directory.path.glob("chunk_[0-9]*.npz"))
    for path in paths:
        index = int(path.stem.partition("_")[2])
        try:
            arrays = members_first(ChunkFile(directory, index, frames).read_whole(), sweep.members - index * size)
        except DamagedFileError as error:
            damaged += 1
            lines.append(f"{error}; {sweep.repair} with: {directory.resuming}")
            continue
        status, diagnosed = arrays["status"], datasets.split(arrays)[1]
        finished += len(status)
        # A copy, so that the other frames of the chunk are freed.
        final = {n: ("member", array[:, -1].copy()) for n, array in diagnosed.items() if array.ndim == 2}
        ends.append(xarray.Dataset({**final, "status": ("member", status.copy())}))
        room = max(sweep_results.MOST_NAMED - len(lines), 0)
        bad = index * size + np.flatnonzero(sweep_results.is_failure(status, sweep.failures))[:room]
        values, seeds = sweep.values_of(bad)
        for row, member in enumerate(bad.tolist()):
            swept = {name: array[row].item() for name, array in values.items()} | {"seed": int(seeds[row])}
            lines.append(f"{sweep_results.named(member, swept)} {MESSAGES[Status(int(status[member - index * size]))]}")
    for folder in sorted(directory.path.glob("chunk_[0-9]*")):
        if folder.suffix or folder.with_suffix(".npz") in paths:
            continue
        store = ChunkFile(directory, int(folder.name.partition("_")[2]), frames).store(lambda request: None)
        written = store.written()
        paths += written
        try:
            segments = [store.read_segment(path) for path in written]
        except DamagedFileError:
            continue  # it is being removed, since its chunk is finished; otherwise `resume` computes it again
        if any("left" in segment for segment in segments):
            left += sum(len(segment["left"]) for segment in segments)
        else:
            under_way += min(size, sweep.members) * max(len(written) - 1, 0) / sweep.plan.segments
    words = f"{finished + left} of {sweep.members} members"
    fraction = min((finished + left + under_way) / sweep.members, 1.0)
    counts = sweep_results.totals(ends, sweep.failures) if ends else {"failures": 0}
    failed = counts.pop("failures") + damaged
    return StoredProgress(fraction, words, lines, write_times(paths), failed, finished + left, counts)


@dataclasses.dataclass(frozen=True)
class Forecast:
    """Resources that a sweep needs.

    Attributes:
        members: number of members.
        compilations: number of configurations, each compiled once.
        chunk: members that run together, the maximum over configurations.
        chunks: number of chunks; for converging simulations, one queue per configuration.
        memory: bytes of a program and the results, the maximum over configurations.
        disk: bytes of results: in chunks and, if small, once more in one file.
        seconds: time of all chunks, one after another, without compilation; ``None`` if nothing was timed.
        is_exact: whether memory and chunks are those of the compiled program; otherwise memory is a lower bound, of
            the states at the start and end of a segment.
        may_end_early: whether members may converge before their last step, so that the time is an upper bound.
    """

    members: int = 0
    compilations: int = 0
    chunk: int = 0
    chunks: int = 0
    memory: int = 0
    disk: int = 0
    seconds: float | None = None
    is_exact: bool = False
    may_end_early: bool = False


def forecast(job: SweepJob, output: Path | None = None, *, timed: bool = False) -> Forecast:
    """Return the resources that a sweep needs, with all checks of the sweep, and without storing anything.

    Args:
        job: the sweep.
        output: run directory to write, whose free disk space is checked; or ``None``.
        timed: compile every configuration, and time one segment of one chunk of it.
    """
    parts, total = job.checked().parts, Forecast(seconds=0.0 if timed else None, is_exact=timed)
    with precision(job.scenario.run.precision):
        for part in parts:
            simulation = part.simulation(new=True)
            prepared = Prepared(simulation, part.program(simulation))
            settle(job.scenario.name, partial(job.bytes_at_once, prepared))
            sweep = part.fitted(prepared, output, compiled=timed)
            sizes, chunk = Sizes(sweep, prepared), sweep.chunk or sweep.members
            results = sizes.results if sweep.in_one_file else sizes.results * chunk // sweep.members
            total = Forecast(
                members=total.members + sweep.members,
                compilations=total.compilations + 1,
                chunk=max(total.chunk, chunk),
                chunks=total.chunks + (1 if simulation.converges else -(-sweep.members // chunk)),
                memory=max(total.memory, sizes.needed(chunk, compiled=timed) + results),
                disk=total.disk + sizes.files * (2 if len(parts) > 1 else 1),
                seconds=None if total.seconds is None else total.seconds + _seconds(sweep, prepared),
                is_exact=timed,
                may_end_early=total.may_end_early or simulation.converges,
            )
    return total


def _seconds(part: Sweep, prepared: Prepared) -> float:
    """Return the time of all segments of all chunks, extrapolated from one segment after compilation."""
    plan, together = member_plan(prepared.simulation, part), part.chunk or part.members
    params, keys = member_inputs(prepared.simulation, part, np.minimum(np.arange(together), part.members - 1))
    work, first = Drive(prepared.program, params, keys, plan).begin()
    work, second = work.advance(first)
    jax.block_until_ready(second.state)
    began = time.perf_counter()
    _, third = work.advance(second if not second.finished else first)
    jax.block_until_ready(third.state)
    return (time.perf_counter() - began) * plan.segments * -(-part.members // together)
