"""Choice of frames that an animation shows: even steps of time, or of visible change where there is no time."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from simkit.errors import UserError

# Changes between two frames, in diameters of a particle or parts of the range of colors: smaller ones are not seen,
# larger ones are one jump and deserve no more frames.
_SEEN, _JUMP = 0.008, 0.5
# Differences to the last frame below which a run in time has come to rest.
_REST = 0.01
# Part of a run that is shown whole though its end is near the last frame.
_MOVING = 0.9
# Part of the extent of a scene that counts as the size of its bodies.
_BODY = 0.05
# Seconds that an animation lasts at least where it is slowed down or cut short, and for which its last frame stays.
_SHORTEST, _HOLD = 3.0, 1.0

type Frames = Mapping[str, np.ndarray]


class Pace(NamedTuple):
    """The frames of an animation and their speed.

    Attributes:
        indices: which stored frames, increasing.
        frames_per_second: how fast.
        hold: seconds for which the last frame stays longer.
    """

    indices: np.ndarray
    frames_per_second: float
    hold: float


def choose_pace(frames: Frames, diagnostics: Frames, quantity: str, frames_per_second: float, maximum: int) -> Pace:
    """Return what to show of a run.

    Frames with a ``time`` are spread evenly, up to where all that is seen has come to rest. Those of a search or a
    relaxation, which mostly stands still, are spread evenly over the way that particles and colors go, and the
    animation is slowed down to last three seconds where few are left. What comes to rest is then shown for a second.

    Args:
        frames: observed arrays by name, frame axis first.
        diagnostics: scalars by name, frame axis first.
        quantity: the observed array that is drawn.
        frames_per_second: wanted speed.
        maximum: how many frames at most.

    Raises:
        UserError: if ``maximum`` is below 1.
    """
    count = min(len(array) for array in frames.values())
    if count < 3 or maximum < 3:
        return Pace(choose_frames(count, maximum), frames_per_second, 0.0)
    if "time" in diagnostics:
        moving = np.flatnonzero(seen_changes(frames, quantity, last=True) > _REST)
        end = int(moving[-1]) + 2 if moving.size else 1
        kept = min(max(end, round(_SHORTEST * frames_per_second)), count)
        # The last steps of a slow motion are short, and no rest.
        kept = count if kept > _MOVING * count else kept
        return Pace(choose_frames(kept, maximum), frames_per_second, _HOLD if kept < count else 0.0)
    way = np.concatenate([[0.0], np.cumsum(np.minimum(seen_changes(frames, quantity), _JUMP))])
    step = _SEEN
    while len(indices := _one_per_step(way, step)) > maximum:
        step *= 1.1
    return Pace(indices, min(frames_per_second, len(indices) / _SHORTEST), _HOLD)


def choose_frames(count: int, maximum: int) -> np.ndarray:
    """Return the indices of at most ``maximum`` of ``count`` frames, evenly spread, first and last included."""
    if maximum < 1:
        raise UserError(f"maximum_frames is {maximum}; it must be at least 1")
    if count <= maximum:
        return np.arange(count)
    return np.array([count - 1]) if maximum == 1 else np.rint(np.linspace(0, count - 1, maximum)).astype(int)


def seen_changes(frames: Frames, quantity: str, last: bool = False) -> np.ndarray:
    """Return how much frames differ from those before them, or from the last of all (frames - 1,).

    It is the root of the mean square of the displacements, in diameters, of the changes of the quantity, in parts of
    its range, and of the turns of bodies; what is not finite counts as at rest.

    Args:
        frames: observed arrays by name, frame axis first, with or without ``position``, ``diameter``, ``box`` and
            ``orientation``.
        quantity: the observed array that is drawn.
        last: whether they are compared with the last one.
    """

    def changes(array: np.ndarray) -> np.ndarray:
        values = np.asarray(array, dtype=float)
        return (values[-1:] if last else values[1:]) - values[:-1]

    total = np.zeros(len(next(iter(frames.values()))) - 1)
    if quantity in frames:
        finite = np.asarray(frames[quantity])[np.isfinite(frames[quantity])]
        total += _mean_square(changes(frames[quantity]) / (float(np.ptp(finite)) or 1.0)) if finite.size else 0.0
    if "orientation" in frames:
        total += _mean_square(changes(frames["orientation"]))
    if "position" in frames:
        steps = changes(frames["position"])
        if "box" in frames:
            box = np.asarray(frames["box"], dtype=float)[1:, None, :]
            periodic = np.isfinite(box) & (box > 0)
            # What leaves a periodic box on one side comes in on the other.
            steps = steps - np.where(periodic, box * np.rint(steps / np.where(periodic, box, 1.0)), 0.0)
        total += steps.shape[-1] * _mean_square(steps / _size(frames))
    return np.sqrt(total)


def _size(frames: Frames) -> float:
    """Return the size of a particle, or a small part of the extent of a scene."""
    if "diameter" in frames:
        sizes = np.asarray(frames["diameter"], dtype=float)
        return float(sizes[np.isfinite(sizes)].mean()) if np.isfinite(sizes).any() else 1.0
    position = np.asarray(frames["position"], dtype=float)
    places = position[np.isfinite(position).all(axis=-1)]
    return (_BODY * float(np.ptp(places, axis=0).max()) if len(places) else 0.0) or 1.0


def _one_per_step(way: np.ndarray, step: float) -> np.ndarray:
    """Return the first index in each interval of ``step`` along a way that never goes back, and the last of all."""
    _, first = np.unique(np.floor(way / step + 1e-9), return_index=True)
    return np.union1d(first, [len(way) - 1])


def _mean_square(changes: np.ndarray) -> np.ndarray:
    changes = np.where(np.isfinite(changes), changes, 0.0)
    return (changes**2).reshape(len(changes), -1).mean(axis=1)
