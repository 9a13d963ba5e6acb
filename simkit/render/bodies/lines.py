"""Lines in space with hidden parts removed: paths of bodies and edges of boxes."""

from typing import NamedTuple

import numpy as np

from simkit.render.bodies.camera import Camera
from simkit.render.bodies.raster import SAMPLES, Visible
from simkit.render.bodies.solids import Solid
from simkit.render.style import LUMINANCE

# Points per pixel along a line.
_DENSITY = 1.6
# Luminance, linear in light, below which the edges of a box are lighter than its faces instead of darker.
_DIM = 0.06


class Line(NamedTuple):
    """A line through points.

    Attributes:
        points: points (n, 3) in m.
        colors: colors (n, 3), linear in light.
        strength: opacity (n,), 0 to 1.
        owner: index of the body that the line is part of, which does not hide it; -1 for none.
    """

    points: np.ndarray
    colors: np.ndarray
    strength: np.ndarray
    owner: int = -1


def edges(body: Solid, owner: int, camera: Camera) -> list[Line]:
    """Return the edges of a box on the side facing the camera.

    Args:
        body: a box.
        owner: index of the box.
        camera: the camera.
    """
    half, eye = body.half_lengths, (camera.eye - body.center) @ body.axes
    is_dim = body.color @ LUMINANCE < _DIM
    color = np.tile(body.color * 0.55 + 0.22 if is_dim else body.color * 0.22, (2, 1))
    found = []
    for along in range(3):
        a, b = (along + 1) % 3, (along + 2) % 3
        for signs in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            if any(sign * eye[k] > half[k] for sign, k in zip(signs, (a, b), strict=True)):
                ends = np.zeros((2, 3))
                ends[:, a], ends[:, b] = signs[0] * half[a], signs[1] * half[b]
                ends[:, along] = -half[along], half[along]
                found.append(Line(body.center + ends @ body.axes.T, color, np.full(2, 0.7), owner))
    return found


def draw_lines(
    image: np.ndarray, lines: list[Line], camera: Camera, width: float, seen: Visible, samples: int = SAMPLES
) -> np.ndarray:
    """Return an image with lines drawn over it where no body is nearer.

    Args:
        image: (height, width, 3), linear in light.
        lines: any number of lines.
        camera: the camera.
        width: width of the lines in pixels.
        seen: depth buffer of the bodies, as returned by ``visible``.
        samples: samples per pixel in each direction.
    """
    found = [_dense_points(line, camera) for line in lines if len(line.points) > 1]
    if not found:
        return image
    column, row, far, color, strength, owner = (np.concatenate(parts) for parts in zip(*found, strict=True))
    reach = int(np.ceil(width / 2 + 0.5))
    steps = np.arange(-reach, reach + 1)
    shift_row, shift_column = (shift.ravel() for shift in np.meshgrid(steps, steps, indexing="ij"))
    rows = np.floor(row).astype(int)[:, None] + shift_row
    columns = np.floor(column).astype(int)[:, None] + shift_column
    distance = np.hypot(rows + 0.5 - row[:, None], columns + 0.5 - column[:, None])
    cover = np.clip(width / 2 + 0.5 - distance, 0.0, 1.0) * strength[:, None]
    inside = (cover > 0) & (rows >= 0) & (rows < camera.height) & (columns >= 0) & (columns < camera.width)
    point, _ = np.nonzero(inside)
    rows, columns, cover = rows[inside], columns[inside], cover[inside]
    # A line in contact with another body, within half a pixel, is in front of it.
    limit, owner = far[point] * (1 - 0.5 / camera.focal), owner[point]
    behind = np.zeros(len(point))
    for i, j in np.ndindex(samples, samples):
        sample = (rows * samples + i) * (camera.width * samples) + columns * samples + j
        behind += (seen.depth.ravel()[sample] < limit) & (seen.owner.ravel()[sample] != owner)
    cover *= 1 - behind / samples**2
    pixel, count = rows * camera.width + columns, camera.height * camera.width
    opacity = np.zeros(count)
    np.maximum.at(opacity, pixel, cover)
    total = np.bincount(pixel, cover, count)
    drawn = np.flatnonzero(total > 0)
    mixed = [np.bincount(pixel, cover * channel[point], count)[drawn] / total[drawn] for channel in color.T]
    result = image.reshape(-1, 3).copy()
    share = opacity[drawn, None]
    result[drawn] = result[drawn] * (1 - share) + np.stack(mixed, axis=-1) * share
    return result.reshape(image.shape)


def _dense_points(line: Line, camera: Camera) -> tuple[np.ndarray, ...]:
    """Return columns, rows, depths, colors, opacities and owners of points along a line, closer than a pixel."""
    column, row, far = camera.project(line.points)
    length = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(column), np.diff(row)))])
    along = np.linspace(0.0, length[-1], max(2, int(length[-1] * _DENSITY)))

    def interpolated(values: np.ndarray) -> np.ndarray:
        return np.interp(along, length, values)

    place = interpolated(column), interpolated(row), interpolated(far)
    color = np.stack([interpolated(channel) for channel in line.colors.T], axis=-1)
    return *place, color, interpolated(line.strength), np.full(len(along), line.owner)
