"""Bodies, cameras and frames for pictures in perspective."""

import numpy as np

from simkit.render.bodies.camera import Camera, axes
from simkit.render.bodies.solids import solid

STILL = np.array([1.0, 0.0, 0.0, 0.0])
GREEN = np.array([0.2, 0.6, 0.3])


def ball(center=(0, 0, 0), radius=1.0, orientation=STILL, color=GREEN):
    return solid(np.array(center, float), np.array(orientation), np.zeros(3), radius, np.asarray(color))


def box(center=(0, 0, 0), half=(1, 1, 1), orientation=STILL, color=GREEN):
    return solid(np.array(center, float), np.array(orientation), np.array(half, float), 0.0, np.asarray(color))


def capsule(center=(0, 0, 0), half=1.0, radius=0.3, orientation=STILL, color=GREEN):
    return solid(np.array(center, float), np.array(orientation), np.array([0, 0, half]), radius, np.asarray(color))


def disk(orientation=STILL, radius=1.0, half=0.2):
    return solid(np.zeros(3), np.array(orientation), np.array([radius, radius, half]), 0.0, GREEN, disk=True)


def looking(distance, azimuth=-90.0, elevation=0.0, size=(120, 90), focal=200.0):
    """Return a camera at a distance from the origin that looks at it."""
    right, up, forward = axes(azimuth, elevation)
    return Camera(-distance * forward, right, up, forward, focal, *size)


def run(position, orientation=None, half_lengths=None, radius=None, count=3, **more):
    """Return frames, diagnostics and coordinates of bodies that rest, or move if arrays have an axis of frames."""
    position = np.asarray(position, float)
    if position.ndim == 2:
        position = np.tile(position, (count, 1, 1))
    count, bodies = position.shape[:2]

    def every(values, *shape):
        return np.broadcast_to(np.asarray(values, float), (count, bodies, *shape)).copy()

    frames = {
        "position": position,
        "orientation": every(STILL if orientation is None else orientation, 4),
        "half_lengths": every(0.0 if half_lengths is None else half_lengths, 3),
        "radius": every(0.0 if radius is None else radius),
        **{name: np.broadcast_to(value, (count, *np.shape(value))).copy() for name, value in more.items()},
    }
    return frames, {"time": np.arange(count) / 10}, {}
