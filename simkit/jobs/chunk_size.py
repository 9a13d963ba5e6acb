"""Chunk size of a sweep: the number of members that run as one program, and the sizes of results."""

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.core import paths
from simkit.errors import UserError
from simkit.jobs.chunks import cores_for_chunks, devices_of_members, member_plan, member_sharding
from simkit.jobs.executors.executor import Executor
from simkit.jobs.job import Prepared
from simkit.jobs.members import Members
from simkit.jobs.size_checks import check_disk

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation

# Writing a result as one file takes about four times its size in memory. Larger results stay in their chunks.
ONE_FILE = 256 * 2**20
FILES_IN_MEMORY = 16

# Each core of a CPU computes a chunk, where its states have at least 128 KiB; smaller ones do not pay for the steps of
# the host. A single device computes all members as one program, whose large operations XLA divides over the cores.
CPU_CHUNK_BYTES = 2**17


def fitting_chunk(sweep: Members, prepared: Prepared, output: Path | None, executor: Executor) -> int:
    """Return the number of members per chunk, from the memory that the compiler reports for their program.

    This is the sweep's ``chunk`` if given; otherwise as many as fit in memory, limited by the number that still speeds
    up the sweep and by an equal share for each worker of the executor.

    Args:
        sweep: the sweep.
        prepared: simulation of one member, and the program of a chunk, compiled here and reused by the sweep.
        output: run directory to write, or ``None``.
        executor: executor of the chunks.

    Raises:
        UserError: if the given chunk, one member, or the results of all members do not fit.
    """
    from simkit.engine.memory import available_bytes, format_bytes

    simulation, chunk, workers = prepared.simulation, sweep.chunk, executor.concurrency
    limit = memory_limit(sweep, workers if executor.shares_memory else 1)

    def needed(members: int) -> int:
        return program_bytes(sweep, prepared, members)

    free = available_bytes()
    check_member(least_bytes(prepared), min(limit, free))
    if sweep.in_one_file and (kept := result_bytes(sweep, prepared)) > free:
        diagnosed = result_bytes(dataclasses.replace(sweep, final_frames=False), prepared)
        remedy = "pass final_frames=False to keep the diagnostics only, or " if diagnosed <= free else ""
        raise UserError(
            f"the results of {sweep.members} members need {format_bytes(kept)} and {format_bytes(free)} are free; "
            f"{remedy}give output= to keep them on disk, or sweep fewer values"
        )
    check_disk(disk_bytes(sweep, prepared), output, "sweep fewer values")
    wanted = min(chunk or usual_chunk(sweep, prepared, workers), sweep.members)
    if chunk is None and not simulation.converges:
        # A chunk not divisible by the number of devices would run on one of them; padding it costs less.
        devices = len(devices_of_members()) or 1
        wanted = -(-wanted // devices) * devices
    need = needed(wanted)
    if need <= limit:
        return wanted
    if chunk is not None:
        raise UserError(
            f"a chunk of {chunk} members needs {format_bytes(need)} and {format_bytes(limit)} may be used; "
            f"pass a smaller chunk= (about {max(chunk * limit // need, 1)}) or a larger memory="
        )
    fitting = _even(sweep, prepared, max(wanted * limit // need, 1))
    while fitting > 1 and needed(fitting) > limit:
        fitting = _even(sweep, prepared, fitting // 2)
    check_member(needed(fitting), limit)
    return fitting


def least_bytes(prepared: Prepared) -> int:
    """Return a lower bound of the memory of one member, the states at the start and end of a segment.

    Args:
        prepared: simulation of one member; its program is not compiled.
    """
    from simkit.core.pytree import size_in_bytes

    return 2 * size_in_bytes(prepared.shapes[0])


def check_member(need: int, limit: int) -> None:
    """Check that one member fits in memory.

    Args:
        need: its memory in bytes.
        limit: memory in bytes that a program may use.

    Raises:
        UserError: if it does not fit.
    """
    from simkit.engine.memory import format_bytes

    if need > limit:
        raise UserError(
            f"one member needs {format_bytes(need)} and {format_bytes(limit)} may be used; "
            "pass a larger memory= or make the simulation smaller"
        )


def usual_chunk(sweep: Members, prepared: Prepared, workers: int = 1) -> int:
    """Return the number of members per chunk, or of lanes, where memory allows more.

    Args:
        sweep: the sweep.
        prepared: simulation of one member.
        workers: number of processes that compute chunks.
    """
    from simkit.core.pytree import size_in_bytes
    from simkit.engine.lanes import default_lanes

    share = -(-sweep.members // workers)
    if not sweep.in_one_file:
        share = min(share, most_members(sweep, prepared))
    if prepared.simulation.converges:
        return min(default_lanes(), share)
    cores = len(cores_for_chunks())
    if cores > 1 and workers == 1:
        least = CPU_CHUNK_BYTES // max(size_in_bytes(prepared.shapes[0]), 1)
        share = min(share, max(-(-sweep.members // cores), least, 1))
    return _even(sweep, prepared, share)


def _even(sweep: Members, prepared: Prepared, chunk: int) -> int:
    """Return the size of as many chunks of equal size: the last one would be padded, which costs time and space."""
    return chunk if prepared.simulation.converges else -(-sweep.members // -(-sweep.members // chunk))


def memory_limit(sweep: Members, processes: int = 1) -> int:
    """Return the memory in bytes that a program may use: the sweep's own limit, or a fraction of the free memory.

    Args:
        sweep: the sweep.
        processes: number of processes that share the free memory.
    """
    from simkit.engine.memory import SHARE, available_bytes

    return sweep.memory or int(SHARE * available_bytes()) // processes


def result_bytes(sweep: Members, prepared: Prepared) -> int:
    """Return the bytes of the results of all members.

    Args:
        sweep: the sweep.
        prepared: simulation of one member.
    """
    from simkit.engine.memory import frame_bytes

    observed, diagnosed = frame_bytes(prepared.shapes[1])
    frames = member_plan(prepared.simulation, sweep).frames + 1
    return sweep.members * (diagnosed * frames + observed * sweep.final_frames)


def disk_bytes(sweep: Members, prepared: Prepared) -> int:
    """Return the bytes of a sweep's files: its chunks, the last one padded, and a small result again as one file.

    Args:
        sweep: the sweep.
        prepared: simulation of one member.
    """
    kept, chunk = result_bytes(sweep, prepared), sweep.chunk or sweep.members
    padded = sweep.members if prepared.simulation.converges else -(-sweep.members // chunk) * chunk
    return kept * padded // sweep.members + sweep.in_one_file * kept


def is_in_one_file(sweep: Members, prepared: Prepared) -> bool:
    """Return whether the result of a stored sweep is small enough for one file, read into memory.

    Args:
        sweep: the sweep.
        prepared: simulation of one member.
    """
    return result_bytes(sweep, prepared) <= most_in_one_file(sweep.memory)


def most_in_one_file(memory: int | None) -> int:
    """Return the largest result, in bytes, that is stored as one file.

    Args:
        memory: the sweep's memory limit in bytes, or ``None``.
    """
    return min(ONE_FILE, memory or ONE_FILE)


def most_members(sweep: Members, prepared: Prepared) -> int:
    """Return the largest chunk of a result that stays in chunks, so that several of them fit in memory for reading.

    Args:
        sweep: the sweep.
        prepared: simulation of one member.
    """
    most = most_in_one_file(sweep.memory) // FILES_IN_MEMORY
    return max(most * sweep.members // result_bytes(sweep, prepared), 1)


def program_bytes(sweep: Members, prepared: Prepared, members: int) -> int:
    """Return the memory in bytes that one segment needs on each device, by compiling it.

    Args:
        sweep: the sweep.
        prepared: simulation of one member, and the program of a chunk.
        members: number of members that run together.
    """
    return program_cost(sweep, prepared, members)[0]


def program_cost(sweep: Members, prepared: Prepared, members: int) -> tuple[int, float]:
    """Return the memory in bytes that one segment needs on each device, and the seconds that its compilation took.

    Args:
        sweep: the sweep.
        prepared: simulation of one member, and the program of a chunk.
        members: number of members that run together.
    """
    import jax

    from simkit.core.compilation import needed_bytes

    if members not in prepared.costs:
        began = time.monotonic()
        params, keys = _shapes(prepared.simulation, sweep, members)
        state = jax.eval_shape(prepared.program.simulation.init, params, keys)
        compiled = prepared.program.advance.lower(state, params).compile()
        prepared.costs[members] = needed_bytes(compiled), time.monotonic() - began
    return prepared.costs[members]


def _shapes(simulation: "Simulation", sweep: Members, members: int) -> tuple[Any, Any]:
    """Return the shapes of a chunk's params and keys, without allocating them."""
    import jax

    key = jax.eval_shape(jax.random.key, 0)
    params = jax.tree.map(lambda value: jax.ShapeDtypeStruct(value.shape, value.dtype), simulation.params)
    known = paths.leaves(params)
    swept = {
        name: jax.ShapeDtypeStruct((members,), known[name].dtype, sharding=member_sharding(members))
        for name in sweep.over
    }
    return paths.replaced(params, swept), jax.ShapeDtypeStruct((members,), key.dtype, sharding=member_sharding(members))
