"""Selection of the frames of an animation: even in time, or in visible change for relaxations."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from simkit.errors import UserError
from simkit.render.select import is_oblique, less_whole_vectors

# Smallest visible change between two frames, in particle diameters or fractions of the color range; and the change
# above which a step counts as one jump, which gets no more frames.
_VISIBLE, _JUMP = 0.008, 0.5
# Difference from the last frame below which a run in time is at rest.
_REST = 0.01
# Fraction of a run above which it is shown to its end, although it is nearly at rest by then.
_MOVING = 0.9
# Size of bodies without diameter, as a fraction of the extent of the scene.
_BODY = 0.05
# Shortest duration of an animation that is slowed down or cut, and additional duration of its last frame, in seconds.
_SHORTEST, _HOLD = 3.0, 1.0

type Frames = Mapping[str, np.ndarray]


class Pace(NamedTuple):
    """The frames of an animation and their speed.

    Attributes:
        indices: indices of stored frames, increasing.
        frames_per_second: speed.
        hold: additional seconds for which the last frame is shown.
    """

    indices: np.ndarray
    frames_per_second: float
    hold: float


def choose_pace(frames: Frames, diagnostics: Frames, quantity: str, frames_per_second: float, maximum: int) -> Pace:
    """Return the frames and the speed of an animation of a run.

    Frames with a ``time`` are selected evenly, up to the time at which nothing visible moves any more. Those of a
    search or a relaxation are selected evenly in the accumulated change of positions and colors, and the animation is
    slowed down to three seconds if they are few. A last frame at rest is shown for a second longer.

    Args:
        frames: observed arrays by name, frame axis first.
        diagnostics: scalars by name, frame axis first.
        quantity: the observed array that is drawn.
        frames_per_second: requested speed.
        maximum: largest number of frames.

    Raises:
        UserError: if ``maximum`` is below 1.
    """
    count = min(len(array) for array in frames.values())
    if count < 3 or maximum < 3:
        return Pace(choose_frames(count, maximum), frames_per_second, 0.0)
    if "time" in diagnostics:
        moving = np.flatnonzero(visible_changes(frames, quantity, last=True) > _REST)
        end = int(moving[-1]) + 2 if moving.size else 1
        kept = min(max(end, round(_SHORTEST * frames_per_second)), count)
        # The last steps of a slow motion are short although it is not at rest.
        kept = count if kept > _MOVING * count else kept
        return Pace(choose_frames(kept, maximum), frames_per_second, _HOLD if kept < count else 0.0)
    change = np.concatenate([[0.0], np.cumsum(np.minimum(visible_changes(frames, quantity), _JUMP))])
    step = _VISIBLE
    while len(indices := _one_per_step(change, step)) > maximum:
        step *= 1.1
    return Pace(indices, min(frames_per_second, len(indices) / _SHORTEST), _HOLD)


def choose_frames(count: int, maximum: int) -> np.ndarray:
    """Return the indices of at most ``maximum`` of ``count`` frames, evenly spread, first and last included."""
    if maximum < 1:
        raise UserError(f"maximum_frames is {maximum}; it must be at least 1")
    if count <= maximum:
        return np.arange(count)
    return np.array([count - 1]) if maximum == 1 else np.rint(np.linspace(0, count - 1, maximum)).astype(int)


def visible_changes(frames: Frames, quantity: str, last: bool = False) -> np.ndarray:
    """Return the change from each frame to the next, or to the last of all (frames - 1,).

    The root of the sum of mean squares: of displacements in diameters, of changes of the quantity relative to its
    range, and of changes of the quaternions of bodies; values that are not finite count as unchanged.

    Args:
        frames: observed arrays by name, frame axis first, with or without ``position``, ``diameter``, ``box`` and
            ``orientation``.
        quantity: the observed array that is drawn.
        last: whether frames are compared with the last one.
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
        if is_oblique(frames):
            steps = less_whole_vectors(steps, np.asarray(frames["cell"], dtype=float)[1:], np.rint)
        elif "box" in frames:
            box = np.asarray(frames["box"], dtype=float)[1:, None, :]
            periodic = np.isfinite(box) & (box > 0)
            # Minimum image: a particle that leaves a periodic box on one side enters on the other.
            steps = steps - np.where(periodic, box * np.rint(steps / np.where(periodic, box, 1.0)), 0.0)
        total += steps.shape[-1] * _mean_square(steps / _size(frames))
    return np.sqrt(total)


def _size(frames: Frames) -> float:
    """Return the mean diameter of particles, or a small fraction of the extent of a scene."""
    if "diameter" in frames:
        sizes = np.asarray(frames["diameter"], dtype=float)
        return float(sizes[np.isfinite(sizes)].mean()) if np.isfinite(sizes).any() else 1.0
    position = np.asarray(frames["position"], dtype=float)
    points = position[np.isfinite(position).all(axis=-1)]
    return (_BODY * float(np.ptp(points, axis=0).max()) if len(points) else 0.0) or 1.0


def _one_per_step(change: np.ndarray, step: float) -> np.ndarray:
    """Return the first index in each interval of ``step`` of a non-decreasing array, and its last index."""
    _, first = np.unique(np.floor(change / step + 1e-9), return_index=True)
    return np.union1d(first, [len(change) - 1])


def _mean_square(changes: np.ndarray) -> np.ndarray:
    changes = np.where(np.isfinite(changes), changes, 0.0)
    return (changes**2).reshape(len(changes), -1).mean(axis=1)
