"""Consistency checks of the stored lanes of a sweep: member and frame indices, and the lane of each member."""

from collections.abc import Mapping, Sequence

import numpy as np


def inconsistency_of(
    segments: Sequence[Mapping[str, np.ndarray]],
    member: np.ndarray,
    frame: np.ndarray,
    waiting: int,
    *,
    members: int,
    frames: int,
) -> str | None:
    """Return the first inconsistency of stored segments and their checkpoint, in a few words, or ``None``.

    Checksums verify that a file is unchanged; this verifies that a sweep could have written it.

    Args:
        segments: arrays of the segments in order, see `simkit.engine.lanes.Queue`.
        member: member index in each lane of the checkpoint, int32 (lanes,); ``members`` marks an empty lane.
        frame: frames taken in each lane of the checkpoint, int32 (lanes,).
        waiting: index of the next member to start, in the checkpoint.
        members: number of members.
        frames: frames per member, without the initial one.
    """
    ended = [np.zeros(0, np.int32)]
    for segment in segments:
        if problem := _inconsistency_of_lanes(
            segment["member"], segment["frame"] + len(segment["status"]) - 1, members, frames
        ):
            return problem
        if not np.isin(segment["left"], segment["member"]).all() or (segment["left"] == members).any():
            return "a member ends that is in no lane"
        ended.append(segment["left"])
    if problem := _inconsistency_of_lanes(member, frame, members, frames):
        return problem
    begun = np.sort(np.concatenate([*ended, member[member < members]]))
    if not 0 <= waiting <= members or not np.array_equal(begun, np.arange(waiting)):
        return "members that have begun more than once or not at all"
    return None


def _inconsistency_of_lanes(member: np.ndarray, last: np.ndarray, members: int, frames: int) -> str | None:
    """Return the first inconsistency of lanes whose members have reached the frames ``last``, int32 (lanes,)."""
    if ((member < 0) | (member > members)).any():
        return f"a member outside 0 to {members - 1}"
    present = member < members
    if len(np.unique(member[present])) < present.sum():
        return "a member in two lanes"
    # The frame count of an empty lane keeps increasing, so it is not checked.
    if ((last < 0) | (last > frames))[present].any():
        return f"a frame outside 0 to {frames}"
    return None
