"""The floor and other planes: a checkered ground that fades into the paper and catches shadows."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from matplotlib.colors import to_rgb

from simkit.render.bodies.camera import Camera
from simkit.render.bodies.light import Light, Shade, blur, covered
from simkit.render.style import ACCENT

_LIGHT, _DARK = "#e9edf1", "#d9dfe6"
# What of each color a full shadow leaves: bluish, as under a clear sky.
_SHADED = np.array([0.36, 0.40, 0.47])
# How dark the ground is under a body that lies on it, where the sky is hidden.
_CONTACT = 0.45
# Share of the sky below which hiding it goes unnoticed.
_FAINTEST = 0.06
# Pixels at 640 x 360 over which a plane fades towards the sides of the picture.
_EDGE = 34


@dataclasses.dataclass(frozen=True)
class Plane:
    """A plane ``n . x = d`` with bodies in front of it.

    Attributes:
        normal: unit vector (3,).
        offset: d in m.
        middle: point (3,) on it about which it is drawn.
        reach: distance from there over which it fades, in m.
        tile: length of its squares in m.
    """

    normal: np.ndarray
    offset: float
    middle: np.ndarray
    reach: float
    tile: float

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two unit vectors (3,) along its squares, the first of them level."""
        level = np.cross([0.0, 0.0, 1.0], self.normal)
        length = np.linalg.norm(level)
        first = level / length if length > 1e-9 else np.array([1.0, 0.0, 0.0])
        return first, np.cross(self.normal, first)


class Ground:
    """What of the planes a camera sees, without bodies.

    Args:
        planes: all of them.
        camera: that sees them.
        light: the lamp.
        scale: pixels per pixel of the design.
        target: point (3,) marked by rings where it lies on a plane, or ``None``.
        mark: radius of the rings in m.

    Attributes:
        color: (height, width, 3), linear in light; the paper is 1.
    """

    def __init__(
        self,
        planes: Sequence[Plane],
        camera: Camera,
        light: Light,
        scale: float,
        target: np.ndarray | None = None,
        mark: float = 0.0,
    ) -> None:
        # What lies behind a plane, the camera included, looks through it.
        self._planes = [plane for plane in planes if plane.normal @ camera.eye > plane.offset]
        self._camera, self._light = camera, light
        x, y = camera.slopes(1)
        depth, self._owner = _nearest(self._planes, camera, x, y)
        depth = np.where(self._owner < 0, 0.0, depth)
        self.color = np.ones((*depth.shape, 3))
        self._strength = np.zeros(depth.shape)
        edge = _vignette(camera.height, camera.width, _EDGE * scale)
        for index, plane in enumerate(self._planes):
            here = self._owner == index
            first, second = plane.sides()
            u, v = (_coordinate(side, camera, x, y[:, None], depth) for side in (first, second))
            color, strength = _pattern(plane, u, v)
            strength *= edge
            if target is not None and abs(plane.normal @ target - plane.offset) < 0.5 * mark:
                # The mark does not fade with the plane.
                marked = _rings(u - first @ target, v - second @ target, mark)
                color += marked[..., None] * (linear(ACCENT) - color)
                strength = np.maximum(strength, marked)
            self._strength[here] = strength[here]
            self.color[here] = color[here]
        self.color = 1 - (1 - self.color) * self._strength[..., None]
        # Where shadows are measured: two coordinates across the light and one along it.
        axes = (*light.across, light.toward)
        self._places = [_coordinate(axis, camera, x, y[:, None], depth) for axis in axes]

    def shadowed(self, shadows: Sequence[Shade]) -> np.ndarray:
        """Return the colors (height, width, 3) under the shadows of bodies."""
        dark = np.zeros(self._owner.shape)
        sky = np.ones_like(dark)
        for index, plane in enumerate(self._planes):
            for shadow in shadows:
                height = float(plane.normal @ shadow.center) - plane.offset
                self._cast(index, plane, shadow, height, dark)
                self._touch(index, plane, shadow, height, sky)
        rows, columns = np.nonzero((dark > 0) | (sky < 1))
        hides, share = dark[rows, columns, None], self._strength[rows, columns, None]
        factor = (1 - hides * (1 - _SHADED)) * sky[rows, columns, None]
        color = self.color.copy()
        color[rows, columns] *= 1 - share * (1 - factor)
        return color

    def _cast(self, index: int, plane: Plane, shadow: Shade, height: float, dark: np.ndarray) -> None:
        slope = float(plane.normal @ self._light.toward)
        if slope < 0.05 or height < 0:
            return
        middle = shadow.center - height / slope * self._light.toward
        # The farthest points of the shadow are where the rays through the edges of its outline meet the plane.
        lean = self._light.across @ plane.normal / slope
        edge = blur(shadow.narrow, height / slope + shadow.deep + float(np.abs(lean) @ shadow.reach)) / 2
        corners = []
        for signs in np.ndindex(2, 2):
            step = (shadow.reach + edge) * (2 * np.array(signs) - 1)
            corners.append(middle + step @ self._light.across - lean @ step * self._light.toward)
        part = self._window(np.array(corners))
        hides = covered(shadow, [place[part] for place in self._places[:2]], self._places[2][part])
        np.maximum(dark[part], hides * (self._owner[part] == index), out=dark[part])

    def _touch(self, index: int, plane: Plane, shadow: Shade, height: float, sky: np.ndarray) -> None:
        """Darken the ground near a body, which hides the sky as a ball of its bulk would."""
        if not 0 < height < shadow.bulk / _FAINTEST**0.5:
            return
        first, second = plane.sides()
        reach = shadow.bulk * (max(height, shadow.bulk) / shadow.bulk / _FAINTEST) ** (1 / 3)
        foot = shadow.center - height * plane.normal
        part = self._window(np.array([foot + reach * (a * first + b * second) for a in (-1, 1) for b in (-1, 1)]))
        center = (*shadow.place, shadow.along)
        square = sum((place[part] - middle) ** 2 for place, middle in zip(self._places, center, strict=True))
        square = np.maximum(square, shadow.bulk**2)
        share = height * shadow.bulk**2 / (square * np.sqrt(square))
        # The far skirts would be many faint steps.
        share = np.clip((share - _FAINTEST) / (1 - _FAINTEST), 0.0, 1.0) * (self._owner[part] == index)
        sky[part] *= 1 - _CONTACT * share

    def _window(self, points: np.ndarray) -> tuple[slice, slice]:
        """Return rows and columns that hold points (n, 3) and all between them."""
        column, row, depth = self._camera.project(points)
        if (depth <= 0).any():
            return slice(0, self._camera.height), slice(0, self._camera.width)
        left, right = np.clip([column.min(), column.max() + 1], 0, self._camera.width).astype(int)
        top, bottom = np.clip([row.min(), row.max() + 1], 0, self._camera.height).astype(int)
        return slice(top, bottom), slice(left, right)


def _nearest(
    planes: Sequence[Plane], camera: Camera, across: np.ndarray, upward: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the depth (rows, columns) of the first plane that lines of sight meet, and which it is; -1 for none."""
    depth = np.full((len(upward), len(across)), np.inf)
    owner = np.full(depth.shape, -1, np.int32)
    for index, plane in enumerate(planes):
        forward, right, up = (float(plane.normal @ axis) for axis in (camera.forward, camera.right, camera.up))
        toward = -(forward + right * across + (up * upward)[:, None])
        gap = float(plane.normal @ camera.eye) - plane.offset
        far = np.where(toward > 1e-9, gap / np.maximum(toward, 1e-9), np.inf)
        owner[far < depth] = index
        depth = np.minimum(depth, far)
    return depth, owner


def _coordinate(
    axis: np.ndarray, camera: Camera, across: np.ndarray, upward: np.ndarray, depth: np.ndarray
) -> np.ndarray:
    """Return how far along an axis (3,) from the origin points on lines of sight lie."""
    forward, right, up, start = (float(axis @ other) for other in (camera.forward, camera.right, camera.up, camera.eye))
    return start + depth * (forward + right * across + up * upward)


def nice_length(length: float) -> float:
    """Return 1, 2 or 5 times a power of ten, at most ``length``."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * max(step for step in (1.0, 2.0, 5.0) if step * power <= length * (1 + 1e-9)))


def _pattern(plane: Plane, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the colors (height, width, 3), linear in light, and the strength (height, width) of a plane.

    Args:
        plane: any.
        u: coordinate of each pixel along its first side.
        v: coordinate along its second side.
    """
    first, second = plane.sides()
    steps_u, steps_v = (np.abs(np.gradient(w)).sum(axis=0) for w in (u, v))
    odd = 0.5 - 0.5 * stripes(u / plane.tile, steps_u / plane.tile) * stripes(v / plane.tile, steps_v / plane.tile)
    light, dark = linear(_LIGHT), linear(_DARK)
    color = light + odd[..., None] * (dark - light)
    away = np.hypot(u - first @ plane.middle, v - second @ plane.middle) / plane.reach
    strength = np.clip((1 - away) / 0.62, 0.0, 1.0)
    return color, strength * strength * (3 - 2 * strength)


def _rings(u: np.ndarray, v: np.ndarray, radius: float) -> np.ndarray:
    """Return how much of each pixel (height, width) a disk and a ring about the origin cover."""
    away = np.hypot(u, v)
    pixel = np.maximum(np.abs(np.gradient(away)).max(axis=0), 1e-12)
    disk, inner, outer = (np.clip(0.5 + (part * radius - away) / pixel, 0.0, 1.0) for part in (0.42, 0.74, 1.0))
    return disk + outer - inner


def stripes(place: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Return 1 in even and -1 in odd unit intervals, averaged over a width: without it, far squares would flicker."""
    width = np.clip(width, 1e-9, None)

    def total(x: np.ndarray) -> np.ndarray:
        x = x % 2
        return np.minimum(x, 2 - x)

    return (total(place + width / 2) - total(place - width / 2)) / width


def _vignette(height: int, width: int, edge: float) -> np.ndarray:
    lines = []
    for length in (height, width):
        place = np.arange(length) + 0.5
        part = np.clip(np.minimum(place, length - place) / edge, 0.0, 1.0)
        lines.append(part * part * (3 - 2 * part))
    return lines[0][:, None] * lines[1]


def linear(color: str | np.ndarray) -> np.ndarray:
    """Return a color as amounts of light, for which the square of a screen's numbers is near enough."""
    return np.asarray(to_rgb(color) if isinstance(color, str) else color) ** 2
