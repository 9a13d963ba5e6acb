"""Selection of the arrays of a view from stored frames, with checks of their shapes."""

from collections.abc import Mapping, Sequence

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


def periodic_box(frames: Mapping[str, np.ndarray], count: int, dimension: int) -> np.ndarray | None:
    """Return the edge lengths (frames, dimension) of a periodic box, or ``None`` for free space.

    Raises:
        UserError: if ``box`` has another shape.
    """
    if "box" not in frames:
        return None
    box = observed(frames, "box", axes=2).astype(float)
    if box.shape != (count, dimension):
        raise UserError(f"'box' has shape {box.shape}; one edge length per direction would be {(count, dimension)}")
    return box if np.isfinite(box).all() and (box > 0).all() else None
