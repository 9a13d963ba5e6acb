"""Frames that fit in memory and on the disk."""

import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.core import paths
from simkit.errors import UserError

if TYPE_CHECKING:
    from simkit.core.simulation import Arrays, Simulation
    from simkit.engine.plan import Plan


def check_frames(state: Any, frame: "Arrays", plan: "Plan", output: Path | None) -> None:
    """Refuse a run whose state or frames do not fit in memory or on the disk, before anything is computed.

    Args:
        state: shapes of its state, see `simkit.engine.memory.shapes_of`.
        frame: shapes of one frame.
        plan: steps and frames.
        output: the run directory to be, or ``None``.

    Raises:
        UserError: if they do not.
    """
    from simkit.core.pytree import size_in_bytes
    from simkit.engine.memory import SHARE, available_bytes, frame_bytes, show_size

    kept, limit = (plan.frames + 1) * sum(frame_bytes(frame)), int(SHARE * available_bytes())
    # A segment has a state at its start and one at its end.
    if (need := 2 * size_in_bytes(state)) > limit:
        raise UserError(
            f"the state of this simulation needs {show_size(need)} and {show_size(limit)} may be used; make it smaller"
        )
    if kept > limit:
        raise UserError(
            f"the {plan.frames + 1} frames of this run need {show_size(kept)} and {show_size(limit)} may be used; "
            f"{fewer(plan)}"
        )
    # Two checkpoints, and the one that is being written.
    check_disk(kept + 3 * size_in_bytes(state), output, fewer(plan))


def check_declared(simulation: "Simulation", frames: int, remedy: str) -> None:
    """Refuse frames that cannot fit in memory, by the dimensions that the simulation declares, without tracing it.

    Args:
        simulation: any; what it observes along dimensions without coordinates is not counted.
        frames: number of frames that are kept.
        remedy: what makes them fewer.

    Raises:
        UserError: if they take more than is free.
    """
    from simkit.engine.memory import available_bytes, show_size

    lengths = {name: len(values) for name, values in simulation.coordinates.items()}
    shapes = [[lengths.get(name, 0) for name in names] for names in simulation.dimensions.values()]
    each = min((value.dtype.itemsize for value in paths.leaves(simulation.params).values()), default=4)
    need, free = frames * each * sum(math.prod(shape) for shape in shapes if shape), available_bytes()
    if need > free:
        kept = "1 frame needs" if frames == 1 else f"{frames} frames need"
        raise UserError(f"{kept} {show_size(need)} and {show_size(free)} are free; {remedy}")


def fewer(plan: "Plan") -> str:
    """Return in words how a run stores less.

    Args:
        plan: steps and frames.
    """
    remedy = "make the simulation smaller"
    return f"store fewer with a larger every (now {plan.every}), or {remedy}" if plan.every < plan.steps else remedy


def check_disk(needed: int, output: Path | None, remedy: str) -> None:
    """Refuse work whose files do not fit on the disk.

    Args:
        needed: bytes.
        output: the run directory to be, or ``None``.
        remedy: what makes them fewer.

    Raises:
        UserError: if they do not.
    """
    from simkit.engine.memory import show_size

    if output is None:
        return
    home = output.resolve()
    free = shutil.disk_usage(next(parent for parent in (home, *home.parents) if parent.exists())).free
    if needed > free:
        raise UserError(
            f"{output} would take {show_size(needed)} and {show_size(free)} are free on its disk; "
            f"{remedy}, or choose another disk with output="
        )
