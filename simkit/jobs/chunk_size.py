"""The number of members of a sweep that fit in memory together."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.core import paths
from simkit.errors import UserError
from simkit.jobs.chunks import cut_of, spread_of
from simkit.jobs.executors.executor import Executor
from simkit.jobs.fitting import check_disk
from simkit.jobs.job import Prepared
from simkit.jobs.members import Members

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation

# A result is in memory about four times while it is written as one file. Larger ones are left in their chunks.
ONE_FILE = 256 * 2**20
FILES_IN_MEMORY = 16


def fitting_chunk(plan: Members, prepared: Prepared, output: Path | None, executor: Executor) -> int:
    """Return how many members run as one program; what they need comes from the compiler.

    As many as the sweep asks for; or else as many as fit, no more than are faster together, and few enough that every
    place of the sweep's executor has some.

    Args:
        plan: the sweep.
        prepared: the member, and the program of a chunk; what is compiled here to measure it is what runs.
        output: the run directory to be, or ``None``.
        executor: computes the chunks.

    Raises:
        UserError: if the chunk asked for, one member, or the results of all members do not fit.
    """
    import jax

    from simkit.core.pytree import size_in_bytes
    from simkit.engine.lanes import usual_lanes
    from simkit.engine.memory import SHARE, available_bytes, show_size

    simulation, chunk = prepared.simulation, plan.chunk
    places, devices = executor.places, len(jax.local_devices())
    limit = plan.memory or int(SHARE * available_bytes()) // (places if executor.shares_memory else 1)

    def needed(members: int) -> int:
        return program_bytes(plan, prepared, members)

    def too_large(need: int, limit: int) -> UserError:
        return UserError(
            f"one member needs {show_size(need)} and {show_size(limit)} may be used; "
            "pass a larger memory= or make the simulation smaller"
        )

    # What the compiler would take long to find out: a segment has a state at its start and one at its end.
    free = available_bytes()
    if (least := 2 * size_in_bytes(prepared.shapes[0])) > free:
        raise too_large(least, free)
    if plan.in_one_file and (kept := result_bytes(plan, prepared)) > free:
        diagnosed = result_bytes(dataclasses.replace(plan, final_frames=False), prepared)
        remedy = "pass final_frames=False to keep the diagnostics only, or " if diagnosed <= free else ""
        raise UserError(
            f"the results of {plan.members} members need {show_size(kept)} and {show_size(free)} are free; "
            f"{remedy}give output= to keep them on the disk, or sweep fewer values"
        )
    check_disk(disk_bytes(plan, prepared), output, "sweep fewer values")
    share = -(-plan.members // places)
    if not plan.in_one_file:
        share = min(share, most_members(plan, prepared))
    wanted = min(chunk or (min(usual_lanes(), share) if simulation.converges else share), plan.members)
    if chunk is None and not simulation.converges:
        # Devices that cannot share a chunk evenly leave it to one of them; what it is padded with costs less.
        wanted = -(-wanted // devices) * devices
    need = needed(wanted)
    if need <= limit:
        return wanted
    if chunk is not None:
        raise UserError(
            f"a chunk of {chunk} members needs {show_size(need)} and {show_size(limit)} may be used; "
            f"pass a smaller chunk= (about {max(chunk * limit // need, 1)}) or a larger memory="
        )
    fitting = wanted * limit // need
    while fitting > 1 and needed(fitting) > limit:
        fitting //= 2
    if fitting < 1 or needed(fitting) > limit:
        raise too_large(needed(1), limit)
    return fitting


def result_bytes(plan: Members, prepared: Prepared) -> int:
    """Return the size of what a sweep keeps of all its members.

    Args:
        plan: the sweep.
        prepared: the member.
    """
    from simkit.engine.memory import frame_bytes

    observed, diagnosed = frame_bytes(prepared.shapes[1])
    frames = cut_of(prepared.simulation, plan).frames + 1
    return plan.members * (diagnosed * frames + observed * plan.final_frames)


def disk_bytes(plan: Members, prepared: Prepared) -> int:
    """Return the size of the files of a sweep: its chunks, and all of them once more if they are one file.

    Args:
        plan: the sweep.
        prepared: the member.
    """
    return (1 + plan.in_one_file) * result_bytes(plan, prepared)


def is_in_one_file(plan: Members, prepared: Prepared) -> bool:
    """Return whether the result of a sweep with a run directory is one file, held in memory.

    Args:
        plan: the sweep.
        prepared: the member.
    """
    return result_bytes(plan, prepared) <= most_in_one_file(plan.memory)


def most_in_one_file(memory: int | None) -> int:
    """Return the size up to which results are one file.

    Args:
        memory: bytes that the sweep may take, if that was given.
    """
    return min(ONE_FILE, memory or ONE_FILE)


def most_members(plan: Members, prepared: Prepared) -> int:
    """Return the number of members in a chunk of a result that is left in chunks, several of which are read together.

    Args:
        plan: the sweep.
        prepared: the member.
    """
    most = most_in_one_file(plan.memory) // FILES_IN_MEMORY
    return max(most * plan.members // result_bytes(plan, prepared), 1)


def program_bytes(plan: Members, prepared: Prepared, members: int) -> int:
    """Return the memory that a segment of members takes, by compiling it.

    Args:
        plan: the sweep.
        prepared: the member, and the program of a chunk.
        members: how many run together.
    """
    import jax

    from simkit.core.compilation import needed_bytes

    params, keys = _shapes(prepared.simulation, plan, members)
    state = jax.eval_shape(prepared.program.simulation.init, params, keys)
    # What one device needs. Those of a CPU share its memory.
    each = needed_bytes(prepared.program.advance.lower(state, params).compile())
    shared = spread_of(members) and jax.default_backend() == "cpu"
    return each * len(jax.local_devices()) if shared else each


def _shapes(simulation: "Simulation", plan: Members, members: int) -> tuple[Any, Any]:
    """Return the shapes of a chunk's params and keys, without taking the memory that they would."""
    import jax

    key = jax.eval_shape(jax.random.key, 0)
    params = jax.tree.map(lambda value: jax.ShapeDtypeStruct(value.shape, value.dtype), simulation.params)
    known = paths.leaves(params)
    swept = {
        name: jax.ShapeDtypeStruct((members,), known[name].dtype, sharding=spread_of(members)) for name in plan.over
    }
    return paths.replaced(params, swept), jax.ShapeDtypeStruct((members,), key.dtype, sharding=spread_of(members))
