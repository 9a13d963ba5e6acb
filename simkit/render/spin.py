"""Marks of a ball's orientation in the side view: a seam around it and a dot on the seam."""

from typing import NamedTuple

import numpy as np

_ANGLES = np.linspace(0.0, 2 * np.pi, 73)
_CIRCLE = np.stack([np.cos(_ANGLES), np.sin(_ANGLES), np.zeros_like(_ANGLES)], axis=-1)
# On the seam, halfway between rim and middle in the initial orientation: it stays visible when the ball rolls.
_DOT = np.array([1.0, -1.0, 0.0]) / np.sqrt(2)


class Seam(NamedTuple):
    """The visible part of a ball's seam, in units of its radius around its center, seen along +y.

    Attributes:
        line: points (n, 2) of (x, z); empty if the seam is hidden.
        dot: (x, z) of the dot (2,); NaN if it is hidden.
    """

    line: np.ndarray
    dot: np.ndarray


def seam(quaternion: np.ndarray) -> Seam:
    """Return the visible half of the great circle around the body's z axis.

    Args:
        quaternion: orientation (w, x, y, z), from body to world coordinates.
    """
    turned = rotation(quaternion)
    circle, dot = _CIRCLE @ turned.T, turned @ _DOT
    # The viewer is at negative y. A circle that coincides with the rim counts as visible.
    visible = circle[:-1, 1] <= 1e-9
    begins = np.flatnonzero(visible & ~np.roll(visible, 1))
    if visible.all():
        line = circle
    elif begins.size:
        # Starting at the first visible point, the visible half is contiguous.
        line = np.roll(circle[:-1], -begins[0], axis=0)[: visible.sum()]
    else:
        line = circle[:0]
    return Seam(line[:, [0, 2]], dot[[0, 2]] if dot[1] < 0.1 else np.full(2, np.nan))


def rotation(quaternion: np.ndarray) -> np.ndarray:
    """Return rotation matrices (..., 3, 3) from body to world coordinates of quaternions (..., 4) in (w, x, y, z)."""
    w, x, y, z = np.moveaxis(quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True), -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
