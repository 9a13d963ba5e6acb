"""Selection of the arrays of a view from stored frames, with checks of their shapes."""

from collections.abc import Mapping, Sequence
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
    """Return the edge lengths (frames, dimension) of a periodic box, or ``None`` for free space.

    Raises:
        UserError: if ``box`` has another shape.
    """
    box = _edges(frames, count, dimension)
    return box if box is not None and np.isfinite(box).all() and (box > 0).all() else None


class DrawnCell(NamedTuple):
    """A cell as pictures show it, periodic along at least one axis.

    Attributes:
        low: its lower corner, (d,).
        edges: edge lengths, (frames, d); along axes that do not repeat the extent of all particles.
        periodic: whether each axis repeats, (d,) booleans.
    """

    low: np.ndarray
    edges: np.ndarray
    periodic: np.ndarray

    def corners(self, frame: int) -> np.ndarray:
        """Return the corners, (2**d, d), in the order of binary numbers."""
        return self.low + np.array(list(product((0.0, 1.0), repeat=len(self.low)))) * self.edges[frame]


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
    return DrawnCell(low, edges, periodic)


def _edges(frames: Mapping[str, np.ndarray], count: int, dimension: int) -> np.ndarray | None:
    if "box" not in frames:
        return None
    box = observed(frames, "box", axes=2).astype(float)
    if box.shape != (count, dimension):
        raise UserError(f"'box' has shape {box.shape}; one edge length per direction would be {(count, dimension)}")
    return box
