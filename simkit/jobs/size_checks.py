"""Checks that states, frames and files fit in memory and on disk, before anything is computed."""

import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.core import paths
from simkit.core.pytree import size_in_bytes
from simkit.engine import memory
from simkit.engine.memory import SHARE, format_bytes, frame_bytes
from simkit.errors import UserError

if TYPE_CHECKING:
    from simkit.core.simulation import Arrays, Simulation
    from simkit.engine.plan import Plan


def check_frames(state: Any, frame: "Arrays", plan: "Plan", output: Path | None) -> None:
    """Check that the state and frames of a run fit in memory and on disk.

    Args:
        state: shapes of the state, see `simkit.engine.memory.shapes_of`.
        frame: shapes of one frame.
        plan: steps and frames.
        output: run directory to write, or ``None``.

    Raises:
        UserError: if they do not fit.
    """
    kept, limit = (plan.frames + 1) * sum(frame_bytes(frame)), int(SHARE * memory.available_bytes())
    # A segment holds the state at its start and the state at its end.
    if (need := 2 * size_in_bytes(state)) > limit:
        raise UserError(
            f"the state of this simulation needs {format_bytes(need)} and {format_bytes(limit)} may be used; "
            "make the simulation smaller"
        )
    if kept > limit:
        raise UserError(
            f"the {plan.frames + 1} frames of this run need {format_bytes(kept)} and {format_bytes(limit)} may be "
            f"used; {fewer_frames(plan)}"
        )
    # Two checkpoints, and the temporary file of a third.
    check_disk(kept + 3 * size_in_bytes(state), output, fewer_frames(plan))


def check_declared_sizes(simulation: "Simulation", frames: int, remedy: str) -> None:
    """Check the memory of frames by the dimensions that the simulation declares, without tracing it.

    Args:
        simulation: the simulation; arrays with dimensions without coordinates are not counted.
        frames: number of frames kept in memory.
        remedy: remedy named in the error.

    Raises:
        UserError: if they need more than the free memory.
    """
    lengths = {name: len(values) for name, values in simulation.coordinates.items()}
    shapes = [[lengths.get(name, 0) for name in names] for names in simulation.dimensions.values()]
    each = min((value.dtype.itemsize for value in paths.leaves(simulation.params).values()), default=4)
    need, free = frames * each * sum(math.prod(shape) for shape in shapes if shape), memory.available_bytes()
    if need > free:
        kept = "1 frame needs" if frames == 1 else f"{frames} frames need"
        raise UserError(f"{kept} {format_bytes(need)} and {format_bytes(free)} are free; {remedy}")


def fewer_frames(plan: "Plan") -> str:
    """Return the remedy for too many frames, in words.

    Args:
        plan: steps and frames.
    """
    remedy = "make the simulation smaller"
    return f"store fewer with a larger every (now {plan.every}), or {remedy}" if plan.every < plan.steps else remedy


def check_disk(needed: int, output: Path | None, remedy: str) -> None:
    """Check that files fit on the disk.

    Args:
        needed: size of the files in bytes.
        output: run directory to write, or ``None``.
        remedy: remedy named in the error.

    Raises:
        UserError: if they do not fit.
    """
    if output is None:
        return
    home = output.resolve()
    free = shutil.disk_usage(next(parent for parent in (home, *home.parents) if parent.exists())).free
    if needed > free:
        raise UserError(
            f"{output} would take {format_bytes(needed)} and {format_bytes(free)} are free on its disk; "
            f"{remedy}, or choose another disk with output="
        )
