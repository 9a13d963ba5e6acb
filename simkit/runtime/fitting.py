"""What fits in memory: the frames of a run, and how many members of a sweep at once."""

from typing import TYPE_CHECKING, Any

from simkit.errors import UserError
from simkit.runtime.chunks import Sweep, cut_of, spread_of

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation
    from simkit.runtime.driver import Plan, Program


def check_frames(simulation: "Simulation", plan: "Plan") -> None:
    """Refuse a run whose frames do not fit in memory.

    Args:
        simulation: what is run.
        plan: steps and frames.

    Raises:
        UserError: if they do not.
    """
    from simkit.runtime.memory import SHARE, available_bytes, frame_bytes, show_size

    kept, limit = (plan.frames + 1) * sum(frame_bytes(simulation)), int(SHARE * available_bytes())
    if kept > limit:
        raise UserError(
            f"the {plan.frames + 1} frames of this run need {show_size(kept)} and {show_size(limit)} may be used; "
            f"store fewer with a larger every (now {plan.every})"
        )


def fitting_chunk(
    simulation: "Simulation", plan: Sweep, program: "Program", chunk: int | None, memory: int | None
) -> int:
    """Return how many members run as one program; what they need comes from the compiler.

    Args:
        simulation: the member.
        plan: the sweep.
        program: of its members; what is compiled here to measure it is what runs.
        chunk: how many the user asks for; ``None`` takes as many as fit, and no more than are faster together.
        memory: bytes they may take; ``None`` takes a share of what is free.

    Raises:
        UserError: if the chunk asked for, one member, or the results of all members do not fit.
    """
    import jax

    from simkit.runtime.lanes import usual_lanes
    from simkit.runtime.memory import SHARE, available_bytes, frame_bytes, needed_bytes, show_size

    limit, devices = memory or int(SHARE * available_bytes()), len(jax.local_devices())

    def needed(members: int) -> int:
        params, keys = _shapes(simulation, plan, members)
        state = jax.eval_shape(program.simulation.init, params, keys)
        # What one device needs. Those of a CPU share its memory.
        each = needed_bytes(program.advance.lower(state, params).compile())
        return each * devices if spread_of(members) and jax.default_backend() == "cpu" else each

    observed, diagnosed = (plan.members * size for size in frame_bytes(simulation))
    diagnosed *= cut_of(simulation, plan).frames + 1
    if (kept := diagnosed + observed * plan.final_frames) > (free := available_bytes()):
        remedy = "pass --no-frames to keep the diagnostics only, or " if diagnosed <= free else ""
        raise UserError(
            f"the results of {plan.members} members need {show_size(kept)} and {show_size(free)} are free; "
            f"{remedy}sweep fewer values"
        )
    wanted = min(chunk or (plan.members if simulation.done is None else usual_lanes()), plan.members)
    if chunk is None and simulation.done is None:
        # Devices that cannot share a chunk evenly leave it to one of them; what it is padded with costs less.
        wanted = -(-wanted // devices) * devices
    need = needed(wanted)
    if need <= limit:
        return wanted
    if chunk is not None:
        raise UserError(
            f"a chunk of {chunk} members needs {show_size(need)} and {show_size(limit)} may be used; "
            f"pass a smaller --chunk (about {max(chunk * limit // need, 1)}) or more --memory"
        )
    fitting = wanted * limit // need
    while fitting > 1 and needed(fitting) > limit:
        fitting //= 2
    if fitting < 1 or needed(fitting) > limit:
        raise UserError(
            f"one member needs {show_size(needed(1))} and {show_size(limit)} may be used; "
            "pass more --memory (such as --memory 8GiB) or make the simulation smaller with --set"
        )
    return fitting


def _shapes(simulation: "Simulation", plan: Sweep, members: int) -> tuple[Any, Any]:
    """Return the shapes of a chunk's params and keys, without taking the memory that they would."""
    import jax

    key = jax.eval_shape(jax.random.key, 0)
    params = {name: jax.ShapeDtypeStruct(value.shape, value.dtype) for name, value in simulation.params.items()}
    swept = {
        name: jax.ShapeDtypeStruct((members,), params[name].dtype, sharding=spread_of(members)) for name in plan.over
    }
    return {**params, **swept}, jax.ShapeDtypeStruct((members,), key.dtype, sharding=spread_of(members))
