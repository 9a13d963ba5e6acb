"""Resource forecast of a sweep: members, chunks, compilations, memory, disk and, after timing a segment, time."""

import dataclasses
import time
from pathlib import Path

import jax
import numpy as np

from simkit.core.precision import precision
from simkit.engine.driver import Drive
from simkit.jobs.chunk_size import Sizes
from simkit.jobs.chunks import member_inputs, member_plan
from simkit.jobs.job import Prepared
from simkit.jobs.sweeps import Sweep, SweepJob


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


def forecast(job: SweepJob, output: Path | None = None, *, timed: bool = False) -> Forecast:
    """Return the resources that a sweep needs, with all checks of the sweep, and without storing anything.

    Args:
        job: the sweep.
        output: run directory to write, whose free disk space is checked; or ``None``.
        timed: compile every configuration, and time one segment of one chunk of it.

    Raises:
        UserError: if the sweep is invalid or does not fit.
    """
    job = job.checked()
    with precision(job.scenario.run.precision):
        parts = [_forecast(part, output, timed) for part in job.parts]
    several = len(parts) > 1
    return Forecast(
        members=sum(part.members for part in parts),
        compilations=len(parts),
        chunk=max(part.chunk for part in parts),
        chunks=sum(part.chunks for part in parts),
        memory=max(part.memory for part in parts),
        disk=sum(part.disk for part in parts) * (2 if several else 1),
        seconds=sum(part.seconds or 0.0 for part in parts) if timed else None,
        is_exact=timed,
        may_end_early=any(part.may_end_early for part in parts),
    )


def _forecast(sweep: Sweep, output: Path | None, timed: bool) -> Forecast:
    """Return the resources of a sweep of one configuration."""
    simulation = sweep.simulation(new=True)
    prepared = Prepared(simulation, sweep.program(simulation))
    sweep = sweep.fitted(prepared, output, compiled=timed)
    sizes, chunk = Sizes(sweep, prepared), sweep.chunk or sweep.members
    kept = sizes.results if sweep.in_one_file else sizes.results * chunk // sweep.members
    return Forecast(
        members=sweep.members,
        compilations=1,
        chunk=chunk,
        chunks=1 if simulation.converges else -(-sweep.members // chunk),
        memory=sizes.needed(chunk, compiled=timed) + kept,
        disk=sizes.files,
        seconds=_seconds(sweep, prepared) if timed else None,
        is_exact=timed,
        may_end_early=simulation.converges,
    )


def _seconds(part: Sweep, prepared: Prepared) -> float:
    """Return the time of all segments of all chunks, extrapolated from one segment after compilation."""
    plan, together = member_plan(prepared.simulation, part), part.chunk or part.members
    params, keys = member_inputs(prepared.simulation, part, np.minimum(np.arange(together), part.members - 1))
    work, first = Drive(prepared.program, params, keys, plan).begin()
    work, second = work.advance(first)
    jax.block_until_ready(second.state)
    began = time.perf_counter()
    _, timed = work.advance(second if not second.finished else first)
    jax.block_until_ready(timed.state)
    return (time.perf_counter() - began) * plan.segments * -(-part.members // together)
