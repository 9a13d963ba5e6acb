"""Consistency of what a sweep through lanes has stored: member and frame indices, and the lane of each member."""

from collections.abc import Mapping, Sequence

import numpy as np


def fault_of(
    pieces: Sequence[Mapping[str, np.ndarray]],
    member: np.ndarray,
    frame: np.ndarray,
    waiting: int,
    *,
    members: int,
    frames: int,
) -> str | None:
    """Return in a few words what cannot be in stored segments and the checkpoint after them, or ``None``.

    Checksums tell that a file is as it was written; this tells that a sweep could have written it.

    Args:
        pieces: the segments in order, see `simkit.engine.lanes.Queue`.
        member: of the checkpoint, member index in each lane; ``members`` marks an empty lane.
        frame: of the checkpoint, frames taken in each lane.
        waiting: of the checkpoint, the next member to begin.
        members: how many there are.
        frames: how many each has, without the initial one.
    """
    ended = [np.zeros(0, np.int32)]
    for piece in pieces:
        if fault := _fault_of_lanes(piece["member"], piece["frame"] + len(piece["status"]) - 1, members, frames):
            return fault
        if not np.isin(piece["left"], piece["member"]).all() or (piece["left"] == members).any():
            return "a member ends that is in no lane"
        ended.append(piece["left"])
    if fault := _fault_of_lanes(member, frame, members, frames):
        return fault
    begun = np.sort(np.concatenate([*ended, member[member < members]]))
    if not 0 <= waiting <= members or not np.array_equal(begun, np.arange(waiting)):
        return "members that have begun more than once or not at all"
    return None


def _fault_of_lanes(member: np.ndarray, last: np.ndarray, members: int, frames: int) -> str | None:
    """Return what cannot be in lanes whose members have reached the frames ``last``."""
    if ((member < 0) | (member > members)).any():
        return f"a member outside 0 to {members - 1}"
    present = member < members
    if len(np.unique(member[present])) < present.sum():
        return "a member in two lanes"
    # An empty lane counts on.
    if ((last < 0) | (last > frames))[present].any():
        return f"a frame outside 0 to {frames}"
    return None
