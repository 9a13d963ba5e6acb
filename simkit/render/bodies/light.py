"""Shading of surfaces and soft shadows of bodies, with one lamp at the upper left."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simkit.render.bodies.camera import axes
from simkit.render.bodies.solids import BOX, DISK, Solid

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
        widths: distances (k,) of the sides from the center.
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
    if body.kind == DISK:
        # Tangents in 24 directions.
        sides = np.stack([np.cos(_DIRECTIONS), np.sin(_DIRECTIONS)], axis=-1)
        along = sides @ (light.across @ body.axes[:, 2])
        aside = np.sqrt(np.clip(1 - along**2, 0.0, 1.0))
        widths = body.half_lengths[2] * np.abs(along) + body.half_lengths[0] * aside
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
        for (a, b), width in zip(shadow.sides, shadow.widths, strict=True):
            outside = np.maximum(outside, np.abs(a * x + b * y) - width)
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
