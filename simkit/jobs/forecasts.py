"""Resource forecast of a sweep: members, chunks, compilations, memory, disk and, after timing a segment, time."""

import dataclasses
import time
from pathlib import Path

import numpy as np

from simkit.core.precision import precision
from simkit.jobs.chunks import member_inputs, member_plan
from simkit.jobs.config_sweeps import ConfigSweep
from simkit.jobs.job import Prepared
from simkit.jobs.sweeps import Sweep


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
    """Return the resources that a sweep needs, with all checks of the sweep, and without storing anything.

    Args:
        job: the sweep.
        output: run directory to write, whose free disk space is checked; or ``None``.
        timed: compile every configuration, and time one segment of one chunk of it.

    Raises:
        UserError: if the sweep is invalid or does not fit.
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
    """Return the resources of a sweep of one configuration."""
    from simkit.jobs.chunk_size import (
        check_member,
        disk_bytes,
        is_in_one_file,
        least_bytes,
        memory_limit,
        program_bytes,
        result_bytes,
        usual_chunk,
    )

    simulation = part.simulation(new=True)
    prepared = Prepared(simulation, part.program(simulation))
    kept = result_bytes(part, prepared)
    part = dataclasses.replace(part, in_one_file=output is None or is_in_one_file(part, prepared))
    each, seconds = least_bytes(prepared), None
    if timed:
        part = part.fitted(prepared, output)
        chunk = part.chunk or part.members
        memory, seconds = program_bytes(part, prepared, chunk), _seconds(part, prepared)
    else:
        check_member(each, limit := memory_limit(part))
        usual = part.chunk or usual_chunk(part, prepared, part.executor.concurrency)
        chunk = min(usual, part.members, max(limit // max(each, 1), 1))
        memory, part = chunk * each, dataclasses.replace(part, chunk=chunk)
    chunks = 1 if simulation.converges else -(-part.members // chunk)
    memory += kept if part.in_one_file else kept * chunk // part.members
    disk = disk_bytes(part, prepared)
    return Forecast(part.members, 1, chunk, chunks, memory, disk, seconds, timed, simulation.converges)


def _seconds(part: Sweep, prepared: Prepared) -> float:
    """Return the time of all segments of all chunks, extrapolated from one segment after compilation."""
    import jax

    from simkit.engine.driver import Drive

    plan, together = member_plan(prepared.simulation, part), part.chunk or part.members
    params, keys = member_inputs(prepared.simulation, part, np.minimum(np.arange(together), part.members - 1))
    work, first = Drive(prepared.program, params, keys, plan).begin()
    work, second = work.advance(first)
    jax.block_until_ready(second.state)
    began = time.perf_counter()
    _, timed = work.advance(second if not second.finished else first)
    jax.block_until_ready(timed.state)
    return (time.perf_counter() - began) * plan.segments * -(-part.members // together)
