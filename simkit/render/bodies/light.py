"""Light: shading of surfaces, soft shadows of bodies, and the checkered ground on which they fall."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.colors import to_rgb

from simkit.render.bodies.camera import Camera, axes
from simkit.render.bodies.solids import BOX, DISK, ELLIPSOID, HULL, Solid
from simkit.render.style import ACCENT

# Azimuth of the lamp relative to that of the camera, and its elevation, in degrees.
_ASIDE, _HEIGHT = -40.0, 52.0
# Light from the sky, from the ground, from the camera and from the lamp; a surface facing the lamp keeps its color.
_SKY, _GROUND, _FILL, _LAMP = 0.55, 0.24, 0.15, 0.54
# Strength and exponent of the highlight.
_SHINE, _SHARPNESS = 0.16, 36
# Light of the sky and of the lamp reflected by black surfaces.
_GLOSS_SKY, _GLOSS_LAMP = 0.015, 0.035
# Width of the penumbra per distance from the body, the angular diameter of the lamp.
_SOFTNESS = 0.24
# Angles of the straight sides that approximate the shadow of a disk.
_DIRECTIONS = np.arange(12) * np.pi / 12


class Light(NamedTuple):
    """A lamp far away.

    Attributes:
        toward: unit vector (3,) to the lamp.
        across: unit vectors (2, 3) that span the plane on which shadows are measured.
    """

    toward: np.ndarray
    across: np.ndarray


class Shadow(NamedTuple):
    """The shadow of one body: its outline as seen from the lamp.

    Attributes:
        center: center (3,) of the body in m.
        place: coordinates (2,) of the center across the light.
        along: coordinate of the center along the light.
        reach: half-widths (2,) of the body across the light.
        deep: half-width of the body along the light.
        bulk: radius of a ball that occludes about as much of the sky.
        narrow: half of the smallest width of the outline.
        sides: unit normals (k, 2) of the straight sides of the outline, one for each pair of opposite sides.
        widths: distances (k,) of the sides from the line midway between two of them.
        middles: distances (k,) of these lines from the center.
        half: vector (2,) from the center to the end of a capsule's axis.
        radius: radius of a round body.
    """

    center: np.ndarray
    place: np.ndarray
    along: float
    reach: np.ndarray
    deep: float
    bulk: float
    narrow: float
    sides: np.ndarray
    widths: np.ndarray
    middles: np.ndarray
    half: np.ndarray
    radius: float


def lamp(azimuth: float) -> Light:
    """Return the lamp for a camera at an azimuth in degrees."""
    right, up, forward = axes(azimuth + _ASIDE, _HEIGHT)
    return Light(-forward, np.stack([right, up]))


def shadow_of(body: Solid, light: Light) -> Shadow:
    """Return the shadow of a body."""
    spread = light.across @ body.axes * body.half_lengths
    sides, widths, half, narrow = np.empty((0, 2)), np.empty(0), spread[:, 2], body.radius
    if body.kind == BOX:
        # The outline of a box seen from the lamp is a hexagon bounded by its projected edges.
        lengths = np.linalg.norm(spread, axis=0)
        is_line = lengths > 1e-6 * lengths.max()
        sides = (np.array([[0, -1], [1, 0]]) @ spread[:, is_line] / lengths[is_line]).T
        widths = np.abs(sides @ spread).sum(axis=1)
        narrow = widths.min()
    middles = np.zeros(len(widths))
    if body.kind in (DISK, ELLIPSOID, HULL):
        # Tangents in 24 directions.
        sides = np.stack([np.cos(_DIRECTIONS), np.sin(_DIRECTIONS)], axis=-1)
        middles = np.zeros(len(sides))
    if body.kind == DISK:
        along = sides @ (light.across @ body.axes[:, 2])
        aside = np.sqrt(np.clip(1 - along**2, 0.0, 1.0))
        widths = body.half_lengths[2] * np.abs(along) + body.half_lengths[0] * aside
        narrow = widths.min()
    if body.kind == ELLIPSOID:
        widths = np.linalg.norm(sides @ spread, axis=1)
        narrow = widths.min()
    if body.kind == HULL and body.edges is not None:
        heights = sides @ light.across @ body.axes @ body.edges.reshape(-1, 3).T
        widths, middles = np.ptp(heights, axis=1) / 2, (heights.max(axis=1) + heights.min(axis=1)) / 2
        narrow = widths.min()
    return Shadow(
        center=body.center,
        place=light.across @ body.center,
        along=float(light.toward @ body.center),
        reach=np.abs(spread).sum(axis=1) + body.radius,
        deep=float(np.abs(light.toward @ body.axes * body.half_lengths).sum()) + body.radius,
        bulk=float(np.prod(body.half_lengths + body.radius) ** (1 / 3)),
        narrow=max(float(narrow), 1e-3 * body.reach),
        sides=sides,
        widths=widths,
        middles=middles,
        half=half,
        radius=body.radius,
    )


def covered(shadow: Shadow, place: Sequence[np.ndarray] | np.ndarray, along: np.ndarray) -> np.ndarray:
    """Return the fraction of the lamp that a body hides from points, 0 to 1.

    Args:
        shadow: shadow of the body.
        place: two coordinates of the points across the light.
        along: coordinate of the points along the light.
    """
    x, y = place[0] - shadow.place[0], place[1] - shadow.place[1]
    if len(shadow.sides):
        outside = np.full(np.shape(x), -np.inf)
        for (a, b), width, middle in zip(shadow.sides, shadow.widths, shadow.middles, strict=True):
            outside = np.maximum(outside, np.abs(a * x + b * y - middle) - width)
    else:
        h = shadow.half
        length = h @ h
        part = np.clip((h[0] * x + h[1] * y) / length, -1.0, 1.0) if length > 0 else 0.0
        outside = np.hypot(x - part * h[0], y - part * h[1]) - shadow.radius
    distance = shadow.along - along
    edge = blur(shadow.narrow, np.maximum(distance, 0.0))
    depth = smoothstep(0.5 - outside / edge)
    # A narrow body far above hides little of a wide lamp; a body hides nothing from points nearer to the lamp.
    return depth / (1 + (edge / (3 * shadow.narrow)) ** 2) * np.clip(0.5 + 2 * distance / shadow.narrow, 0.0, 1.0)


def smoothstep(x: np.ndarray) -> np.ndarray:
    """Return ``x^2 (3 - 2 x)`` of x clipped to [0, 1]."""
    x = np.clip(x, 0.0, 1.0)
    return x * x * (3 - 2 * x)


def blur(narrow: float | np.ndarray, distance: float | np.ndarray) -> np.ndarray:
    """Return the width of the penumbra of a shadow.

    Args:
        narrow: half of the smallest width of the body.
        distance: distance below the center of the body, along the light.
    """
    return np.asarray(_SOFTNESS * distance + 0.12 * narrow)


class Casters:
    """Bodies that cast shadows on each other.

    Args:
        shadows: shadows of the bodies.
        light: the lamp.
    """

    def __init__(self, shadows: Sequence[Shadow], light: Light) -> None:
        self._shadows, self._light = shadows, light
        self._place, self._reach = (
            np.array(pair).reshape(-1, 2) for pair in ([s.place for s in shadows], [s.reach for s in shadows])
        )
        self._top = np.array([shadow.along + shadow.deep for shadow in shadows])
        self._narrow = np.array([shadow.narrow for shadow in shadows])

    def hidden(self, caster: int, points: np.ndarray) -> np.ndarray:
        """Return the fraction of the lamp (n,) that other bodies hide from points (3, n) of body ``caster``."""
        place, along = self._light.across @ points, self._light.toward @ points
        above = self._top - along.min()
        reach = self._reach + blur(self._narrow, above)[:, None] / 2
        near = (self._place - reach < place.max(axis=1)) & (self._place + reach > place.min(axis=1))
        result = np.zeros(points.shape[1])
        for index in np.flatnonzero(near.all(axis=1) & (above > 0)).tolist():
            if index != caster:
                result = np.maximum(result, covered(self._shadows[index], place, along))
        return result


def lighting(normal: np.ndarray, view: np.ndarray, light: Light, shadow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the factor (n,) of the color of surfaces, and the highlight (n,) added to it.

    Args:
        normal: outward unit normals (3, n).
        view: unit vector (3,) to the camera.
        light: the lamp.
        shadow: hidden fraction of the lamp (n,).
    """
    facing = np.clip(light.toward @ normal, 0.0, None) * (1 - shadow)
    sky = (1 + normal[2]) / 2
    middle = light.toward + view
    shine = np.clip((middle / np.linalg.norm(middle)) @ normal, 0.0, None) ** _SHARPNESS
    gloss = _GLOSS_SKY * sky + _GLOSS_LAMP * facing
    fill = _FILL * np.clip(view @ normal, 0.0, None)
    return _GROUND + (_SKY - _GROUND) * sky + fill + _LAMP * facing, _SHINE * shine * (1 - shadow) + gloss


_LIGHT, _DARK = "#e9edf1", "#d9dfe6"
# Factor of each color channel in full shadow: bluish, as under a clear sky.
_SHADED = np.array([0.36, 0.40, 0.47])
# Darkening of the ground under a body in contact, where the sky is occluded.
_CONTACT = 0.45
# Occluded fraction of the sky below which it is not drawn.
_FAINTEST = 0.06
# Pixels at 640 x 360 over which a plane fades towards the sides of the picture.
_EDGE = 34


@dataclasses.dataclass(frozen=True)
class Plane:
    """A plane ``n . x = d`` with bodies in front of it.

    Attributes:
        normal: unit normal n (3,).
        offset: d in m.
        middle: center (3,) of the part that is drawn.
        reach: distance from the center at which it has faded, in m.
        tile: side length of its squares in m.
    """

    normal: np.ndarray
    offset: float
    middle: np.ndarray
    reach: float
    tile: float

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two unit vectors (3,) along the sides of its squares, the first one horizontal."""
        level = np.cross([0.0, 0.0, 1.0], self.normal)
        length = np.linalg.norm(level)
        first = level / length if length > 1e-9 else np.array([1.0, 0.0, 0.0])
        return first, np.cross(self.normal, first)


class Ground:
    """Image of the planes without bodies.

    Args:
        planes: all planes.
        camera: the camera.
        light: the lamp.
        scale: pixels per pixel of the design.
        target: point (3,) marked by rings if it lies on a plane, or ``None``.
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
        # Planes seen from behind are not drawn.
        self._planes = [plane for plane in planes if plane.normal @ camera.eye > plane.offset]
        self._camera, self._light = camera, light
        x, y = camera.slopes(1)
        depth, self._owner = _nearest(self._planes, camera, x, y)
        depth = np.where(self._owner < 0, 0.0, depth)
        self.color = np.ones((*depth.shape, 3))
        self._strength = np.zeros(depth.shape)
        edge = _vignette(camera.height, camera.width, _EDGE * scale)
        for index, plane in enumerate(self._planes):
            is_plane = self._owner == index
            first, second = plane.sides()
            u, v = (_coordinate(side, camera, x, y[:, None], depth) for side in (first, second))
            color, strength = _pattern(plane, u, v)
            strength *= edge
            if target is not None and abs(plane.normal @ target - plane.offset) < 0.5 * mark:
                # The mark does not fade with the plane.
                marked = _rings(u - first @ target, v - second @ target, mark)
                color += marked[..., None] * (linear(ACCENT) - color)
                strength = np.maximum(strength, marked)
            self._strength[is_plane] = strength[is_plane]
            self.color[is_plane] = color[is_plane]
        self.color = 1 - (1 - self.color) * self._strength[..., None]
        # Coordinates of the ground in the frame of the light: two across it and one along it.
        axes = (*light.across, light.toward)
        self._in_light = [_coordinate(axis, camera, x, y[:, None], depth) for axis in axes]

    def shadowed(self, shadows: Sequence[Shadow]) -> np.ndarray:
        """Return the colors (height, width, 3) under the shadows of bodies."""
        dark = np.zeros(self._owner.shape)
        sky = np.ones_like(dark)
        for index, plane in enumerate(self._planes):
            for shadow in shadows:
                height = float(plane.normal @ shadow.center) - plane.offset
                self._cast_shadow(index, plane, shadow, height, dark)
                self._occlude_sky(index, plane, shadow, height, sky)
        rows, columns = np.nonzero((dark > 0) | (sky < 1))
        hidden, strength = dark[rows, columns, None], self._strength[rows, columns, None]
        factor = (1 - hidden * (1 - _SHADED)) * sky[rows, columns, None]
        color = self.color.copy()
        color[rows, columns] *= 1 - strength * (1 - factor)
        return color

    def _cast_shadow(self, index: int, plane: Plane, shadow: Shadow, height: float, dark: np.ndarray) -> None:
        slope = float(plane.normal @ self._light.toward)
        if slope < 0.05 or height < 0:
            return
        middle = shadow.center - height / slope * self._light.toward
        # Corners of the bounding rectangle of the shadow, projected along the light onto the plane.
        lean = self._light.across @ plane.normal / slope
        edge = blur(shadow.narrow, height / slope + shadow.deep + float(np.abs(lean) @ shadow.reach)) / 2
        corners = []
        for signs in np.ndindex(2, 2):
            step = (shadow.reach + edge) * (2 * np.array(signs) - 1)
            corners.append(middle + step @ self._light.across - lean @ step * self._light.toward)
        part = self._window(np.array(corners))
        hidden = covered(shadow, [across[part] for across in self._in_light[:2]], self._in_light[2][part])
        np.maximum(dark[part], hidden * (self._owner[part] == index), out=dark[part])

    def _occlude_sky(self, index: int, plane: Plane, shadow: Shadow, height: float, sky: np.ndarray) -> None:
        """Darken the ground near a body (ambient occlusion) as a ball of radius ``bulk`` would."""
        if not 0 < height < shadow.bulk / _FAINTEST**0.5:
            return
        first, second = plane.sides()
        reach = shadow.bulk * (max(height, shadow.bulk) / shadow.bulk / _FAINTEST) ** (1 / 3)
        foot = shadow.center - height * plane.normal
        part = self._window(np.array([foot + reach * (a * first + b * second) for a in (-1, 1) for b in (-1, 1)]))
        center = (*shadow.place, shadow.along)
        square = sum((points[part] - middle) ** 2 for points, middle in zip(self._in_light, center, strict=True))
        square = np.maximum(square, shadow.bulk**2)
        share = height * shadow.bulk**2 / (square * np.sqrt(square))
        # Far from the body the darkening would be visible as bands of single gray levels.
        share = np.clip((share - _FAINTEST) / (1 - _FAINTEST), 0.0, 1.0) * (self._owner[part] == index)
        sky[part] *= 1 - _CONTACT * share

    def _window(self, points: np.ndarray) -> tuple[slice, slice]:
        """Return rows and columns of the bounding rectangle of points (n, 3)."""
        column, row, depth = self._camera.project(points)
        if (depth <= 0).any():
            return slice(0, self._camera.height), slice(0, self._camera.width)
        left, right = np.clip([column.min(), column.max() + 1], 0, self._camera.width).astype(int)
        top, bottom = np.clip([row.min(), row.max() + 1], 0, self._camera.height).astype(int)
        return slice(top, bottom), slice(left, right)


def _nearest(
    planes: Sequence[Plane], camera: Camera, across: np.ndarray, upward: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return depth and index (rows, columns) of the first plane that lines of sight hit, infinite and -1 for none."""
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
    """Return the coordinate along an axis (3,) of points on lines of sight at a depth."""
    forward, right, up, start = (float(axis @ other) for other in (camera.forward, camera.right, camera.up, camera.eye))
    return start + depth * (forward + right * across + up * upward)


def nice_length(length: float) -> float:
    """Return 1, 2 or 5 times a power of ten, at most ``length``."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * max(step for step in (1.0, 2.0, 5.0) if step * power <= length * (1 + 1e-9)))


def _pattern(plane: Plane, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the colors (height, width, 3), linear in light, and the opacity (height, width) of a plane.

    Args:
        plane: the plane.
        u: coordinate of each pixel along the first side of its squares.
        v: coordinate along the second side.
    """
    first, second = plane.sides()
    steps_u, steps_v = (np.abs(np.gradient(w)).sum(axis=0) for w in (u, v))
    odd = 0.5 - 0.5 * stripes(u / plane.tile, steps_u / plane.tile) * stripes(v / plane.tile, steps_v / plane.tile)
    light, dark = linear(_LIGHT), linear(_DARK)
    color = light + odd[..., None] * (dark - light)
    distance = np.hypot(u - first @ plane.middle, v - second @ plane.middle) / plane.reach
    return color, smoothstep((1 - distance) / 0.62)


def _rings(u: np.ndarray, v: np.ndarray, radius: float) -> np.ndarray:
    """Return the fraction of each pixel (height, width) covered by a disk and a ring about the origin."""
    distance = np.hypot(u, v)
    pixel = np.maximum(np.abs(np.gradient(distance)).max(axis=0), 1e-12)
    disk, inner, outer = (np.clip(0.5 + (part * radius - distance) / pixel, 0.0, 1.0) for part in (0.42, 0.74, 1.0))
    return disk + outer - inner


def stripes(x: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Return 1 in even and -1 in odd unit intervals, averaged over a width, so that far squares do not flicker."""
    width = np.clip(width, 1e-9, None)

    def integral(x: np.ndarray) -> np.ndarray:
        x = x % 2
        return np.minimum(x, 2 - x)

    return (integral(x + width / 2) - integral(x - width / 2)) / width


def _vignette(height: int, width: int, edge: float) -> np.ndarray:
    lines = []
    for length in (height, width):
        center = np.arange(length) + 0.5
        lines.append(smoothstep(np.minimum(center, length - center) / edge))
    return lines[0][:, None] * lines[1]


def linear(color: str | np.ndarray) -> np.ndarray:
    """Return a color linear in light, approximated by the square of its sRGB values."""
    return np.asarray(to_rgb(color) if isinstance(color, str) else color) ** 2
