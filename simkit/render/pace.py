"""Which stored frames an animation shows: even steps of time, or of what is seen to change where there is no time."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from simkit.errors import UserError

# Changes between two frames, in diameters of a particle or parts of the range of colors: smaller ones are not seen,
# larger ones are one jump and deserve no more frames.
_SEEN, _JUMP = 0.008, 0.5
# Seconds that an animation without time lasts at least, and for which its last frame stays.
_SHORTEST, _HOLD = 3.0, 1.0


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


def choose_pace(
    frames: Mapping[str, np.ndarray],
    diagnostics: Mapping[str, np.ndarray],
    quantity: str,
    frames_per_second: float,
    maximum: int,
) -> Pace:
    """Return what to show of a run.

    Frames with a ``time`` are spread evenly. Those of a search or a relaxation, which mostly stands still, are spread
    evenly over the way that particles and colors go; the animation is slowed down to last three seconds where few are
    left, and holds its last frame for one.

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
    if "time" in diagnostics or count < 3 or maximum < 3:
        return Pace(choose_frames(count, maximum), frames_per_second, 0.0)
    way = np.concatenate([[0.0], np.cumsum(np.minimum(seen_changes(frames, quantity), _JUMP))])
    step = _SEEN
    while len(indices := _one_per_step(way, step)) > maximum:
        step *= 1.1
    return Pace(indices, min(frames_per_second, len(indices) / _SHORTEST), _HOLD)


def _one_per_step(way: np.ndarray, step: float) -> np.ndarray:
    """Return the first index in each interval of ``step`` along a way that never goes back, and the last of all."""
    _, first = np.unique(np.floor(way / step + 1e-9), return_index=True)
    return np.union1d(first, [len(way) - 1])


def choose_frames(count: int, maximum: int) -> np.ndarray:
    """Return the indices of at most ``maximum`` of ``count`` frames, evenly spread, first and last included."""
    if maximum < 1:
        raise UserError(f"maximum_frames is {maximum}; it must be at least 1")
    if count <= maximum:
        return np.arange(count)
    return np.array([count - 1]) if maximum == 1 else np.rint(np.linspace(0, count - 1, maximum)).astype(int)


def seen_changes(frames: Mapping[str, np.ndarray], quantity: str) -> np.ndarray:
    """Return how much frames differ from those before them (frames - 1,).

    It is the root of the mean square of the displacements, in diameters, and of the changes of the quantity, in parts
    of its range; what is not finite counts as at rest.

    Args:
        frames: observed arrays by name, frame axis first, with or without ``position``, ``diameter`` and ``box``.
        quantity: the observed array that is drawn.
    """
    total = np.zeros(len(next(iter(frames.values()))) - 1)
    values = np.asarray(frames[quantity], dtype=float) if quantity in frames else None
    if values is not None and np.isfinite(values).any():
        finite = values[np.isfinite(values)]
        total += _mean_square(np.diff(values, axis=0) / (np.ptp(finite) or 1.0))
    if "position" in frames:
        steps = np.diff(np.asarray(frames["position"], dtype=float), axis=0)
        if "box" in frames:
            box = np.asarray(frames["box"], dtype=float)[1:, None, :]
            box = np.where(np.isfinite(box) & (box > 0), box, np.inf)
            # Who leaves a periodic box on one side comes in on the other.
            steps = steps - np.where(np.isinf(box), 0.0, np.where(np.isinf(box), 1.0, box) * np.rint(steps / box))
        size = np.nanmean(frames["diameter"]) if "diameter" in frames else 1.0
        total += steps.shape[-1] * _mean_square(steps / (float(size) or 1.0))
    return np.sqrt(total)


def _mean_square(changes: np.ndarray) -> np.ndarray:
    changes = np.where(np.isfinite(changes), changes, 0.0)
    return (changes**2).reshape(len(changes), -1).mean(axis=1)
