"""What a sweep will take: members, chunks, compilations, memory, disk and, after timing a segment, time."""

import dataclasses
import time
from pathlib import Path

import numpy as np

from simkit.core.precision import precision
from simkit.jobs.chunks import cut_of, inputs_of
from simkit.jobs.config_sweeps import ConfigSweep
from simkit.jobs.job import Prepared
from simkit.jobs.sweeps import Sweep


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What a sweep will take.

    Attributes:
        members: number of simulations.
        compilations: number of configurations, each of which is compiled once.
        chunk: members that run together, the most of all configurations.
        chunks: how many there are; of simulations that end when they are done, one queue per configuration.
        memory: bytes that a program and the results take, the most of all configurations.
        disk: bytes of results: in chunks and, of small ones, once more in one file.
        seconds: of all chunks, one after another, after compiling; ``None`` if nothing was timed.
        is_exact: whether memory and chunks are those of the compiled program; otherwise a state at the start and one
            at the end of a segment are counted, which is the least.
        may_end_early: whether members end when they are done, so that the time is the longest there may be.
    """

    members: int
    compilations: int
    chunk: int
    chunks: int
    memory: int
    disk: int
    seconds: float | None
    is_exact: bool
    may_end_early: bool


def forecast(job: Sweep, output: Path | None = None, *, timed: bool = False) -> Forecast:
    """Return what a sweep will take, without storing anything; everything it would refuse is refused.

    Args:
        job: what is asked for.
        output: the run directory to be, whose disk must have room; or ``None``.
        timed: compile every configuration, and time one segment of one chunk of it.

    Raises:
        UserError: if the sweep cannot be done or does not fit.
    """
    job = job.checked()
    parts = job.parts if isinstance(job, ConfigSweep) else [job]
    with precision(job.scenario.run.precision):
        found = [_of_one(part, output, timed) for part in parts]
    return Forecast(
        members=sum(one.members for one in found),
        compilations=len(found),
        chunk=max(one.chunk for one in found),
        chunks=sum(one.chunks for one in found),
        memory=max(one.memory for one in found),
        disk=sum(one.disk for one in found) * (2 if len(found) > 1 else 1),
        seconds=sum(one.seconds or 0.0 for one in found) if timed else None,
        is_exact=timed,
        may_end_early=any(one.may_end_early for one in found),
    )


def _of_one(part: Sweep, output: Path | None, timed: bool) -> Forecast:
    """Return what a sweep of one configuration will take."""
    from simkit.core.pytree import size_in_bytes
    from simkit.engine.lanes import usual_lanes
    from simkit.engine.memory import SHARE, available_bytes
    from simkit.jobs.chunk_size import disk_bytes, is_in_one_file, most_members, program_bytes, result_bytes

    simulation = part.simulation(new=True)
    prepared = Prepared(simulation, part.program(simulation))
    kept = result_bytes(part, prepared)
    part = dataclasses.replace(part, in_one_file=output is None or is_in_one_file(part, prepared))
    each, seconds = 2 * size_in_bytes(prepared.shapes[0]), None
    if timed:
        part = part.fitted(prepared, output)
        chunk = part.chunk or part.members
        memory, seconds = program_bytes(part, prepared, chunk), _seconds(part, prepared)
    else:
        limit = part.memory or int(SHARE * available_bytes())
        usual = usual_lanes() if simulation.converges else part.members
        usual = usual if part.in_one_file else min(usual, most_members(part, prepared))
        chunk = min(part.chunk or usual, part.members, max(limit // max(each, 1), 1))
        memory = chunk * each
    chunks = 1 if simulation.converges else -(-part.members // chunk)
    memory += kept if part.in_one_file else kept * chunk // part.members
    disk = disk_bytes(part, prepared)
    return Forecast(part.members, 1, chunk, chunks, memory, disk, seconds, timed, simulation.converges)


def _seconds(part: Sweep, prepared: Prepared) -> float:
    """Return the time of all segments of all chunks, by that of one segment after the program is compiled."""
    import jax

    from simkit.engine.driver import Drive

    cut, together = cut_of(prepared.simulation, part), part.chunk or part.members
    params, keys = inputs_of(prepared.simulation, part, np.minimum(np.arange(together), part.members - 1))
    work, piece = Drive(prepared.program, params, keys, cut).begin()
    work, second = work.advance(piece)
    jax.block_until_ready(second.state)
    began = time.perf_counter()
    _, again = work.advance(second if not second.finished else piece)
    jax.block_until_ready(again.state)
    return (time.perf_counter() - began) * cut.segments * -(-part.members // together)
