"""Pinhole camera, and its fit to all bodies in all frames."""

import dataclasses

import numpy as np

from simkit.render.page import Window
from simkit.scenario.scenario import RenderSettings

# Tangent of half the vertical angle of view, narrow as of a lens of 70 mm: parallel edges stay nearly parallel.
_HALF_HEIGHT = np.tan(np.radians(13.0))
# Fraction of the picture filled by the bodies.
_FILLED = 0.93
# Number of azimuths checked for a camera that turns.
_TURNS = 48


@dataclasses.dataclass(frozen=True)
class Camera:
    """A pinhole camera.

    A point at depth t along the line of sight through column c and row r of the picture is
    ``eye + t (forward + (c - width/2) / focal right + (height/2 - r) / focal up)``.

    Attributes:
        eye: position (3,) in m.
        right: unit vector (3,) to the right of the picture.
        up: unit vector (3,) to the top of the picture.
        forward: unit vector (3,) of the line of sight.
        focal: focal length in pixels.
        width: width of the picture in pixels.
        height: height of the picture in pixels.
    """

    eye: np.ndarray
    right: np.ndarray
    up: np.ndarray
    forward: np.ndarray
    focal: float
    width: int
    height: int

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the columns and rows (in pixels, the first one's center at 0.5) and the depths of points (..., 3)."""
        offset = points - self.eye
        depth = offset @ self.forward
        column = self.width / 2 + self.focal * (offset @ self.right) / depth
        row = self.height / 2 - self.focal * (offset @ self.up) / depth
        return column, row, depth

    def slopes(self, samples: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (c - width/2) / focal per column and (height/2 - r) / focal per row, ``samples`` per pixel."""
        column = (np.arange(self.width * samples) + 0.5) / samples
        row = (np.arange(self.height * samples) + 0.5) / samples
        return (column - self.width / 2) / self.focal, (self.height / 2 - row) / self.focal

    def extent(self, centers: np.ndarray, radius: float) -> tuple[float, float, float, float]:
        """Return the first and last column and row of the picture of spheres, in pixels.

        Args:
            centers: centers (n, 3) in m.
            radius: radius of all spheres in m.
        """
        offset = centers - self.eye
        depth = offset @ self.forward
        slopes = []
        for axis in (self.right, -self.up):
            across = offset @ axis
            # The two tangents from the eye to a circle.
            spread = radius * np.sqrt(np.maximum(across**2 + depth**2 - radius**2, 0.0))
            below = np.maximum(depth**2 - radius**2, 1e-12 * depth**2)
            slopes += [((across * depth - spread) / below).min(), ((across * depth + spread) / below).max()]
        left, right, top, bottom = (self.focal * slope for slope in slopes)
        return self.width / 2 + left, self.width / 2 + right, self.height / 2 + top, self.height / 2 + bottom


def direction_of(settings: RenderSettings, low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    """Return azimuth and elevation of the camera in degrees: those of the settings, or else what suits the scene.

    A scene that is flat in y is viewed nearly along y, one that is flat in z more from above.

    Args:
        settings: of a view of bodies.
        low: lowest coordinates (3,) of all bodies.
        high: highest coordinates (3,).
    """
    x, y, z = high - low
    default = (-62.0, 36.0) if z < 0.25 * max(x, y) else (-62.0, 23.0)
    if y < 0.4 * max(x, z):
        default = (-76.0, 13.0)
    chosen = (settings.options.get(key) for key in ("azimuth", "elevation"))
    azimuth, elevation = (usual if angle is None else angle for angle, usual in zip(chosen, default, strict=True))
    return azimuth, elevation


def fitted(
    points: np.ndarray,
    radii: np.ndarray,
    azimuth: float,
    elevation: float,
    size: tuple[int, int],
    about: np.ndarray | None = None,
) -> Camera:
    """Return the camera nearest to a set of spheres with all of them in view.

    Args:
        points: centers (n, 3) in m.
        radii: radii (n,) in m.
        azimuth: direction from the scene to the camera, in degrees from x towards y.
        elevation: angle of that direction above the horizon, in degrees.
        size: width and height of the picture in pixels.
        about: point (3,) on the vertical axis about which the camera turns: the axis is centered horizontally, and all
            spheres are in view from every azimuth; ``None`` for a camera at rest.
    """
    width, height = size
    right, up, forward = axes(azimuth, elevation)
    middle = points.mean(axis=0) if about is None else about
    offset = points - middle
    if about is not None:
        angles = np.arange(_TURNS) * 2 * np.pi / _TURNS
        c, s = np.cos(angles)[:, None], np.sin(angles)[:, None]
        x, y, z = offset.T
        offset = np.stack([c * x - s * y, s * x + c * y, np.broadcast_to(z, (_TURNS, len(z)))], -1).reshape(-1, 3)
        radii = np.tile(radii, _TURNS)
    depth = offset @ forward
    shift, farthest = [], np.inf
    for axis, slope in ((right, _HALF_HEIGHT * width / height), (up, _HALF_HEIGHT)):
        # Each side of the picture is a plane through the eye, with all spheres on its inner side.
        angle = np.arctan(_FILLED * slope)
        across = offset @ axis
        low = (across * np.cos(angle) + depth * np.sin(angle) - radii).min()
        high = (-across * np.cos(angle) + depth * np.sin(angle) - radii).min()
        shift.append((low - high) / (2 * np.cos(angle)))
        farthest = min(farthest, (low + high) / (2 * np.sin(angle)))
    if about is not None:
        shift[0] = 0.0
    eye = middle + shift[0] * right + shift[1] * up + farthest * forward
    return Camera(eye, right, up, forward, height / 2 / _HALF_HEIGHT, width, height)


def seen_window(
    points: np.ndarray, radii: np.ndarray, azimuth: float, elevation: float, about: np.ndarray | None = None
) -> Window:
    """Return a window with the aspect ratio of spheres in parallel projection along a direction.

    Args:
        points: centers (n, 3) in m.
        radii: radii (n,) in m.
        azimuth: as for ``fitted``.
        elevation: as for ``fitted``.
        about: point of the vertical axis about which the camera turns, or ``None``.
    """
    right, up, _ = axes(azimuth, elevation)
    if about is not None:
        # The largest width over all azimuths is that of a ring through the farthest sphere.
        offset = points - about
        reach = float((np.hypot(offset[:, 0], offset[:, 1]) + radii).max())
        points = np.concatenate([points, about + reach * right * [[1], [-1]]])
        radii = np.concatenate([radii, [0.0, 0.0]])
    extents = []
    for axis in (right, up):
        across = points @ axis
        extents.append(float((across + radii).max() - (across - radii).min()))
    smallest = 1e-3 * max(extents) or 1.0
    return Window(0.0, max(extents[0], smallest), 0.0, max(extents[1], smallest))


def turned(camera: Camera, about: np.ndarray, angle: float) -> Camera:
    """Return the camera rotated about the vertical axis through a point by an angle in degrees."""
    c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    return dataclasses.replace(
        camera,
        eye=about + turn @ (camera.eye - about),
        right=turn @ camera.right,
        up=turn @ camera.up,
        forward=turn @ camera.forward,
    )


def axes(azimuth: float, elevation: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the unit vectors right, up and forward of a camera at azimuth and elevation (degrees) of the scene."""
    a, e = np.radians(azimuth), np.radians(elevation)
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    forward = -np.array([np.cos(a) * np.cos(e), np.sin(a) * np.cos(e), np.sin(e)])
    return right, np.cross(right, forward), forward
