"""The number of members of a sweep that fit in memory together."""

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
    from simkit.engine.memory import SHARE, available_bytes, frame_bytes, show_size

    simulation, shapes, chunk = prepared.simulation, prepared.shapes, plan.chunk
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
    if (least := 2 * size_in_bytes(shapes[0])) > free:
        raise too_large(least, free)
    observed, diagnosed = (plan.members * size for size in frame_bytes(shapes[1]))
    diagnosed *= cut_of(simulation, plan).frames + 1
    if (kept := diagnosed + observed * plan.final_frames) > free:
        remedy = "pass final_frames=False to keep the diagnostics only, or " if diagnosed <= free else ""
        raise UserError(
            f"the results of {plan.members} members need {show_size(kept)} and {show_size(free)} are free; "
            f"{remedy}sweep fewer values"
        )
    # The chunks, and all of them once more in one file.
    check_disk(2 * kept, output, "sweep fewer values")
    share = -(-plan.members // places)
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
