"""Chunk size of a sweep: the number of members that run as one program, and the sizes of its program and results."""

import dataclasses
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from simkit.core import paths
from simkit.core.compilation import needed_bytes
from simkit.core.pytrees import size_in_bytes
from simkit.engine import memory
from simkit.engine.lanes import default_lanes
from simkit.engine.memory import SHARE, frame_bytes
from simkit.errors import argument
from simkit.jobs.chunks import cores_for_chunks, devices_of_members, member_plan, member_sharding
from simkit.jobs.executors.executor import Executor
from simkit.jobs.job import Prepared, check_disk
from simkit.jobs.points import Members

# Writing a result as one file takes about four times its size in memory. Larger results stay in their chunks.
ONE_FILE = 256 * 2**20
FILES_IN_MEMORY = 16

# Each core of a CPU computes a chunk, where its states have at least 128 KiB; smaller ones do not pay for the steps of
# the host. A single device computes all members as one program, whose large operations XLA divides over the cores.
CPU_CHUNK_BYTES = 2**17


def most_in_one_file(limit: int | None) -> int:
    """Return the largest result, in bytes, that is stored as one file, with the sweep's memory limit if it has one."""
    return min(ONE_FILE, limit or ONE_FILE)


def memory_limit(sweep: Members, processes: int = 1) -> int:
    """Return the memory in bytes that a program may use: the sweep's limit, or a share of what all processes may."""
    return sweep.memory or int(SHARE * memory.available_bytes()) // processes


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of a sweep, in bytes and in members.

    Attributes:
        sweep: the sweep.
        prepared: simulation of one member, and the program of a chunk, compiled here and reused by the sweep.
    """

    sweep: Members
    prepared: Prepared

    @property
    def results(self) -> int:
        """Bytes of the results of all members."""
        observed, diagnosed = frame_bytes(self.prepared.shapes[1])
        frames = member_plan(self.prepared.simulation, self.sweep).frames + 1
        return self.sweep.members * (diagnosed * frames + observed * self.sweep.final_frames)

    @property
    def files(self) -> int:
        """Bytes of the sweep's files: its chunks, the last one padded, and a small result again as one file."""
        members, chunk = self.sweep.members, self.sweep.chunk or self.sweep.members
        padded = members if self.prepared.simulation.converges else -(-members // chunk) * chunk
        return self.results * padded // members + self.sweep.in_one_file * self.results

    @property
    def is_in_one_file(self) -> bool:
        """Whether the result of a stored sweep is small enough for one file, read into memory."""
        return self.results <= most_in_one_file(self.sweep.memory)

    @property
    def most_members(self) -> int:
        """Largest chunk of a result that stays in chunks, so that several of them fit in memory for reading."""
        most = most_in_one_file(self.sweep.memory) // FILES_IN_MEMORY
        return max(most * self.sweep.members // self.results, 1)

    def program(self, members: int) -> tuple[int, float]:
        """Return the bytes that one segment of ``members`` needs on each device, and the seconds of its compilation."""
        costs, program = self.prepared.costs, self.prepared.program
        if members not in costs:
            began = time.monotonic()
            params, keys = self._shapes(members)
            state = jax.eval_shape(program.simulation.init, params, keys)
            compiled = program.record.lower(state, params, np.int32(program.count)).compile()
            costs[members] = needed_bytes(compiled), time.monotonic() - began
        return costs[members]

    def needed(self, members: int, *, compiled: bool) -> int:
        """Return the bytes that a segment needs; without compiling it, those of the states at its start and end."""
        return self.program(members)[0] if compiled else 2 * size_in_bytes(self.prepared.shapes[0]) * members

    def usual_chunk(self, workers: int = 1) -> int:
        """Return the number of members per chunk, or of lanes, for a number of workers, where memory allows more."""
        share = -(-self.sweep.members // workers)
        if not self.sweep.in_one_file:
            share = min(share, self.most_members)
        if self.prepared.simulation.converges:
            return min(default_lanes(), share)
        cores = len(cores_for_chunks())
        if cores > 1 and workers == 1:
            least = CPU_CHUNK_BYTES // max(size_in_bytes(self.prepared.shapes[0]), 1)
            share = min(share, max(-(-self.sweep.members // cores), least, 1))
        return self._even(share)

    def fitting_chunk(self, output: Path | None, executor: Executor, *, compiled: bool = True) -> int:
        """Return the number of members per chunk, from the memory that the compiler reports for their program.

        This is the sweep's ``chunk`` if given; otherwise as many as fit in memory, limited by the number that still
        speeds up the sweep and by an equal share for each worker of the executor.

        Args:
            output: run directory to write, or ``None``.
            executor: executor of the chunks.
            compiled: whether programs are compiled to know their memory; otherwise it is a lower bound.
        """
        chunk, workers = self.sweep.chunk, executor.concurrency
        limit = memory_limit(self.sweep, workers if executor.shares_memory else 1)
        _check_member(self.needed(1, compiled=False), min(limit, memory.available_bytes()))
        self._check_results()
        check_disk(self.files, output, "sweep fewer values")
        wanted = min(chunk or self.usual_chunk(workers), self.sweep.members)
        if chunk is None and not self.prepared.simulation.converges:
            # A chunk not divisible by the number of devices would run on one of them; padding it costs less.
            devices = len(devices_of_members()) or 1
            wanted = -(-wanted // devices) * devices
        if (need := self.needed(wanted, compiled=compiled)) <= limit:
            return wanted
        if chunk is not None:
            smaller = f"{argument('chunk')} (about {max(chunk * limit // need, 1)})"
            remedy = f"pass a smaller {smaller} or a larger {argument('memory')}"
            memory.check_room(f"a chunk of {chunk} members needs", need, limit, remedy)
        fitting = self._even(max(wanted * limit // need, 1))
        while fitting > 1 and self.needed(fitting, compiled=compiled) > limit:
            fitting = self._even(fitting // 2)
        _check_member(self.needed(fitting, compiled=compiled), limit)
        return fitting

    def _even(self, chunk: int) -> int:
        """Return the size of as many chunks of equal size: the last one would be padded, which costs time and space."""
        members = self.sweep.members
        return chunk if self.prepared.simulation.converges else -(-members // -(-members // chunk))

    def _check_results(self) -> None:
        """Refuse results that are returned as one file, or in memory, and do not fit."""
        if not self.sweep.in_one_file:
            return
        free = memory.available_bytes()
        diagnosed = dataclasses.replace(self, sweep=dataclasses.replace(self.sweep, final_frames=False)).results
        remedy = (
            f"pass {argument('final_frames', 'False')} to keep the diagnostics only, or " if diagnosed <= free else ""
        )
        remedy += f"give {argument('output')} to keep them on disk, or sweep fewer values"
        words = f"the results of {self.sweep.members} members need"
        memory.check_room(words, self.results, free, remedy, "are free")

    def _shapes(self, members: int) -> tuple[Any, Any]:
        """Return the shapes of a chunk's params and keys, without allocating them."""
        key, sharding = jax.eval_shape(jax.random.key, 0), member_sharding(members)
        params = jax.tree.map(
            lambda value: jax.ShapeDtypeStruct(value.shape, value.dtype), self.prepared.simulation.params
        )
        leaves = paths.leaves(params)
        swept = {
            name: jax.ShapeDtypeStruct((members,), leaves[name].dtype, sharding=sharding) for name in self.sweep.over
        }
        return paths.replaced(params, swept), jax.ShapeDtypeStruct((members,), key.dtype, sharding=sharding)


def _check_member(need: int, limit: int) -> None:
    """Refuse a member that does not fit in the memory in bytes that a program may use."""
    remedy = f"pass a larger {argument('memory')} or make the simulation smaller"
    memory.check_room("one member needs", need, limit, remedy)
