"""Ray intersection and surface of disks: cylinders about the z axis of body coordinates."""

import numpy as np

# Lightening of every other quarter of a disk, which makes its spin visible.
_SPOT = 0.45


def meet_disk(origin: np.ndarray, line: list[np.ndarray], radius: float, half: float) -> np.ndarray:
    """Return the depth at which lines of sight hit a disk, infinite where they miss it.

    Args:
        origin: position (3,) of the eye.
        line: the three components of the directions.
        radius: radius of the disk.
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
    # Lines that miss the cylinder have a NaN root, with which the comparison is false.
    return np.where(enter < leave, enter, np.inf)


def disk_surface(own: np.ndarray, radius: float, half: float, pixel: float) -> tuple[np.ndarray, np.ndarray]:
    """Return outward normals (3, n) and lightening (n,) at points of a disk's surface.

    Args:
        own: the points (3, n).
        radius: radius of the disk.
        half: half its thickness.
        pixel: size of a pixel at the disk.
    """
    distance = np.hypot(own[0], own[1])
    is_face = np.abs(own[2]) / half > distance / radius
    zero = np.zeros(own.shape[1])
    radial = np.stack([own[0], own[1], zero]) / np.maximum(distance, 1e-12 * radius)
    normal = np.where(is_face, np.stack([zero, zero, np.sign(own[2])]), radial)
    # Distance from the nearer of the two lines between the quarters, negative in the dark quarters.
    inside = np.minimum(np.abs(own[0]), np.abs(own[1])) * np.sign(own[0] * own[1])
    return normal, _SPOT * np.clip(0.5 + inside / pixel, 0.0, 1.0)
