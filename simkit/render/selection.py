"""Selection of what is drawn: arrays of a view with checks of their shapes, and frames of an animation."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from simkit.core.arguments import check_shape
from simkit.core.settings import whole
from simkit.errors import known


def observed(frames: Mapping[str, np.ndarray], name: str, axes: int, shape: Sequence[int] | None = None) -> np.ndarray:
    """Return the observed array ``name`` with ``axes`` axes, frames first, and of the given shape if there is one.

    Raises:
        UserError: if it is missing, has another number of axes or another shape, or holds no frame.
    """
    array = np.asarray(frames[known(name, frames, "array of the frames")])
    wanted = (None,) * axes if shape is None else tuple(shape)
    check_shape(f"'{name}'", array, f"{axes} axes, none of them empty" if shape is None else f"{wanted}", wanted)
    return array


def field_values(runs: Sequence[Mapping[str, np.ndarray]], name: str) -> np.ndarray:
    """Return all values of the field ``name`` in several runs outside bodies, which are drawn over it, flattened.

    Args:
        runs: frames of each run; inside of bodies ``body_distance`` (frames, nx, ny) is negative, where it is given.
        name: of an array (frames, nx, ny).
    """
    uncovered = []
    for frames in runs:
        values = observed(frames, name, axes=3)
        covered = np.asarray(frames.get("body_distance", 0)) < 0
        uncovered.append(values[np.broadcast_to(~covered, values.shape)])
    return np.concatenate(uncovered)


def drawn_coordinates(coordinates: Mapping[str, np.ndarray], rows: int) -> Mapping[str, np.ndarray]:
    """Return the coordinates of a field, with ``NAME_drawn`` for ``NAME`` where ``y_drawn`` is that of its rows.

    Args:
        coordinates: by name, of a field that shows several planes those with ``_drawn``.
        rows: number of cells of the field along y.
    """
    if len(coordinates.get("y_drawn", ())) != rows:
        return coordinates
    drawn = {name: values for name, values in coordinates.items() if name.endswith("_drawn")}
    return {**coordinates, **{name.removesuffix("_drawn"): values for name, values in drawn.items()}}


def is_oblique(frames: Mapping[str, np.ndarray]) -> bool:
    """Return whether frames have a ``cell`` (frames, d, d) whose vectors are not along the axes."""
    if "cell" not in frames:
        return False
    vectors = np.asarray(frames["cell"], float)
    along = np.einsum("fii->fi", vectors)[..., None] * np.eye(vectors.shape[-1])
    return bool(np.any(vectors != along))


class DrawnCell(NamedTuple):
    """A cell as pictures show it, periodic along at least one of its vectors.

    Attributes:
        low: its first corner, (d,).
        vectors: its vectors as rows, (frames, d, d); along axes that do not repeat as long as the extent of all
            particles.
        periodic: whether the cell repeats along each vector, (d,) booleans.
    """

    low: np.ndarray
    vectors: np.ndarray
    periodic: np.ndarray

    @property
    def corners(self) -> np.ndarray:
        """The corners, (frames, 2**d, d), in the order of binary numbers."""
        return self.low + np.array(list(product((0.0, 1.0), repeat=len(self.low)))) @ self.vectors


def less_whole_vectors(
    vector: np.ndarray,
    vectors: np.ndarray,
    count: Callable[[np.ndarray], np.ndarray],
    periodic: np.ndarray | bool = True,
) -> np.ndarray:
    """Return vectors less whole numbers of the vectors of a cell, along those that repeat.

    Args:
        vector: any vectors (..., n, d).
        vectors: of the cell as rows, (..., d, d).
        count: numbers to take away as a function of the coordinates along the cell vectors, such as `np.floor`.
        periodic: whether the cell repeats along each vector, (d,) booleans.
    """
    coordinates = vector @ np.linalg.inv(vectors)
    return vector - np.where(periodic, count(coordinates), 0.0) @ vectors


def drawn_cell(frames: Mapping[str, np.ndarray], periodic: np.ndarray | None = None) -> DrawnCell | None:
    """Return the cell of frames with ``position`` and ``diameter``; ``None`` for free space.

    Args:
        frames: with ``box``, or with ``cell`` where it does not repeat along all axes.
        periodic: the coordinate of that name: whether each axis of ``cell`` repeats, (d,).

    Raises:
        UserError: if ``box`` has another shape.
    """
    count, _, dimension = np.shape(frames["position"])
    box = _edges(frames, count, dimension)
    if box is None and periodic is not None and "cell" in frames:
        box = np.where(np.asarray(periodic, bool), np.diagonal(frames["cell"], axis1=1, axis2=2), np.inf)
    if box is None:
        return None
    periodic = (np.isfinite(box) & (box > 0)).all(axis=0)
    center, radius = np.asarray(frames["position"], float), np.asarray(frames["diameter"], float)[..., None] / 2
    seen = np.isfinite(center).all(axis=-1) & np.isfinite(radius[..., 0])
    if not periodic.any() or not seen.any():
        return None
    low = np.where(periodic, 0, (center - radius)[seen].min(axis=0))
    edges = np.where(periodic, box, (center + radius)[seen].max(axis=0) - low)
    is_whole = periodic.all() and is_oblique(frames)
    return DrawnCell(
        low, np.asarray(frames["cell"], float) if is_whole else edges[..., None] * np.eye(dimension), periodic
    )


def _edges(frames: Mapping[str, np.ndarray], count: int, dimension: int) -> np.ndarray | None:
    if "box" not in frames:
        return None
    return observed(frames, "box", axes=2, shape=(count, dimension)).astype(float)


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

    Frames with a ``time`` are selected evenly, from the last one at rest at the beginning up to the time at which
    nothing visible moves any more. Those of a search or a relaxation are selected evenly in the accumulated change of
    positions and colors, and the animation is slowed down to three seconds if they are few. The last frame, the result,
    is shown for a second longer.

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
        moving = np.flatnonzero(visible_changes(frames, quantity, of=-1) > _REST)
        end = int(moving[-1]) + 2 if moving.size else 1
        kept = min(max(end, round(_SHORTEST * frames_per_second)), count)
        # The first and last steps of a slow motion are short although it is not at rest.
        kept = count if kept > _MOVING * count else kept
        started = np.flatnonzero(visible_changes(frames, quantity, of=0) > _REST)
        begin = int(started[0]) if started.size else 0
        begin = begin if (1 - _MOVING) * count < begin < kept - 3 else 0
        return Pace(begin + choose_frames(kept - begin, maximum), frames_per_second, _HOLD)
    change = np.concatenate([[0.0], np.cumsum(np.minimum(visible_changes(frames, quantity), _JUMP))])
    step = _VISIBLE
    while len(indices := _one_per_step(change, step)) > maximum:
        step *= 1.1
    return Pace(indices, min(frames_per_second, len(indices) / _SHORTEST), _HOLD)


def choose_frames(count: int, maximum: int) -> np.ndarray:
    """Return the indices of at most ``maximum`` of ``count`` frames, evenly spread, first and last included."""
    whole("of frames", low=1).check(maximum, "maximum_frames")
    if count <= maximum:
        return np.arange(count)
    return np.array([count - 1]) if maximum == 1 else np.rint(np.linspace(0, count - 1, maximum)).astype(int)


def visible_changes(frames: Frames, quantity: str, of: int | None = None) -> np.ndarray:
    """Return the change from each frame to the next, or between all others and the first or last one, (frames - 1,).

    The root of the sum of mean squares: of displacements in diameters, of changes of the quantity relative to its
    range, and of changes of the quaternions of bodies; values that are not finite count as unchanged.

    Args:
        frames: observed arrays by name, frame axis first, with or without ``position``, ``diameter``, ``box`` and
            ``orientation``.
        quantity: the observed array that is drawn.
        of: 0 or -1, the frame that all others are compared with; ``None`` for their neighbors.
    """

    def changes(array: np.ndarray) -> np.ndarray:
        values = np.asarray(array, dtype=float)
        return values[1:] - values[:1] if of == 0 else (values[-1:] if of else values[1:]) - values[:-1]

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
