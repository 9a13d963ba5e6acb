"""Disks: cylinders about their own z axis, in their own coordinates."""

import numpy as np

# How much paler every other quarter of a disk is: it shows how fast the disk spins.
_PALER = 0.45


def meet_disk(origin: np.ndarray, line: list[np.ndarray], radius: float, half: float) -> np.ndarray:
    """Return the depth at which lines of sight meet a disk, infinite where they miss it.

    Args:
        origin: the eye (3,).
        line: the three components of the directions.
        radius: of the disk.
        half: half its thickness.
    """
    a = line[0] ** 2 + line[1] ** 2
    b = origin[0] * line[0] + origin[1] * line[1]
    within = b * b - a * (origin[0] ** 2 + origin[1] ** 2 - radius**2)
    root = np.sqrt(within)
    inverse = 1 / line[2]
    middle, spread = -origin[2] * inverse, half * np.abs(inverse)
    enter = np.maximum((-b - root) / a, middle - spread)
    leave = np.minimum((-b + root) / a, middle + spread)
    # Outside the cylinder the root is not a number, and no comparison holds.
    return np.where(enter < leave, enter, np.inf)


def disk_surface(own: np.ndarray, radius: float, half: float, pixel: float) -> tuple[np.ndarray, np.ndarray]:
    """Return outward normals (3, n) and how pale (n,) points of a disk's surface are.

    Args:
        own: the points (3, n).
        radius: of the disk.
        half: half its thickness.
        pixel: size of a pixel there.
    """
    away = np.hypot(own[0], own[1])
    face = np.abs(own[2]) / half > away / radius
    nothing = np.zeros(own.shape[1])
    around = np.stack([own[0], own[1], nothing]) / np.maximum(away, 1e-12 * radius)
    normal = np.where(face, np.stack([nothing, nothing, np.sign(own[2])]), around)
    # Distance from the nearer of the two lines between the quarters, below zero in the dark ones.
    inside = np.minimum(np.abs(own[0]), np.abs(own[1])) * np.sign(own[0] * own[1])
    return normal, _PALER * np.clip(0.5 + inside / pixel, 0.0, 1.0)
