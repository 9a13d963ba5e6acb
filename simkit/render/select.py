"""Selection of the arrays of a view from stored frames, with checks of their shapes."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from simkit.errors import UserError, nearest


def observed(frames: Mapping[str, np.ndarray], name: str, axes: int) -> np.ndarray:
    """Return the observed array ``name`` with ``axes`` axes, frames first.

    Raises:
        UserError: if it is missing, has another number of axes, or holds no frame.
    """
    if name not in frames:
        raise UserError(f"the frames hold no '{name}'{nearest(name, list(frames))}")
    array = np.asarray(frames[name])
    if array.ndim != axes:
        raise UserError(f"'{name}' has {array.ndim - 1} axes per frame; this view draws {axes - 1}")
    if not array.size:
        raise UserError(f"'{name}' is empty (shape {array.shape}); there is nothing to draw")
    return array


def all_values(runs: Sequence[Mapping[str, np.ndarray]], name: str, axes: int) -> np.ndarray:
    """Return all values of the observed array ``name`` in several runs, flattened."""
    return np.concatenate([observed(frames, name, axes).ravel() for frames in runs])


def field_values(runs: Sequence[Mapping[str, np.ndarray]], name: str) -> np.ndarray:
    """Return all values of the field ``name`` in several runs outside bodies, which are drawn over it, flattened.

    Args:
        runs: frames of each run; inside of bodies ``body_distance`` (frames, nx, ny) is negative, where it is given.
        name: of an array (frames, nx, ny).
    """
    found = []
    for frames in runs:
        values = observed(frames, name, axes=3)
        covered = np.asarray(frames.get("body_distance", 0)) < 0
        found.append(values[np.broadcast_to(~covered, values.shape)])
    return np.concatenate(found)


def periodic_box(frames: Mapping[str, np.ndarray], count: int, dimension: int) -> np.ndarray | None:
    """Return the edge lengths (frames, dimension) of a periodic box, or ``None`` for free space and oblique cells.

    Raises:
        UserError: if ``box`` has another shape.
    """
    box = _edges(frames, count, dimension)
    is_box = box is not None and np.isfinite(box).all() and (box > 0).all() and not is_oblique(frames)
    return box if is_box else None


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
    box = observed(frames, "box", axes=2).astype(float)
    if box.shape != (count, dimension):
        raise UserError(f"'box' has shape {box.shape}; one edge length per direction would be {(count, dimension)}")
    return box
