"""Rasterization of solids and of lines in space: depth buffer, shaded samples averaged over pixels, hidden parts."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from simkit.render.bodies.camera import Camera
from simkit.render.bodies.light import Casters, Light, Shadow, lighting
from simkit.render.bodies.solids import CAPSULE, Solid, depths, surface
from simkit.render.style import LUMINANCE

# Samples (lines of sight) per pixel in each direction.
SAMPLES = 3
# Relative difference of depths below which two surfaces coincide and the first body is shown: the round-off of float32
# frames would otherwise mix both sample by sample.
_SAME_PLACE = 1e-5


class Visible(NamedTuple):
    """Depth buffer.

    Attributes:
        depth: depth (height, width) of the nearest surface at each sample; infinite for none.
        owner: index (height, width) of its body; -1 for none.
    """

    depth: np.ndarray
    owner: np.ndarray


def visible(bodies: Sequence[Solid], camera: Camera, samples: int = SAMPLES) -> Visible:
    """Return the depth buffer of bodies.

    Args:
        bodies: in any order.
        camera: the camera.
        samples: samples per pixel in each direction.
    """
    across, upward = camera.slopes(samples)
    depth = np.full((len(upward), len(across)), np.inf)
    owner = np.full(depth.shape, -1, np.int32)
    for index, body in enumerate(bodies):
        for rows, columns in _windows(body, camera, samples):
            distance = depths(body, camera, across[columns], upward[rows])
            nearer = distance < depth[rows, columns] * (1 - _SAME_PLACE)
            depth[rows, columns][nearer] = distance[nearer]
            owner[rows, columns][nearer] = index
    return Visible(depth, owner)


def shaded(
    bodies: Sequence[Solid],
    shadows: Sequence[Shadow],
    camera: Camera,
    light: Light,
    seen: Visible,
    samples: int = SAMPLES,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the light (height, width, 3) of bodies in each pixel, and the fraction (height, width) they cover.

    Args:
        bodies: as given to ``visible``.
        shadows: shadows of the bodies, or none.
        camera: the camera.
        light: the lamp.
        seen: result of ``visible``.
        samples: as given to ``visible``.
    """
    across, upward = camera.slopes(samples)
    where, weight = _shading_samples(seen.owner, samples)
    owners = seen.owner.ravel()[where]
    order = np.argsort(owners.astype(np.int16) if len(bodies) < 2**15 else owners, kind="stable")
    where, weight, owners = where[order], weight[order], owners[order]
    starts = np.searchsorted(owners, np.arange(len(bodies) + 1))
    rows, columns = np.divmod(where, len(across))
    pixel = rows // samples * camera.width + columns // samples
    depth = seen.depth.ravel()[where]
    colors, casters = np.empty((3, len(where))), Casters(shadows, light)
    for index, body in enumerate(bodies):
        part = slice(starts[index], starts[index + 1])
        if part.start == part.stop:
            continue
        size = float((body.center - camera.eye) @ camera.forward) / camera.focal
        points, normal, tone = surface(body, camera, across[columns[part]], upward[rows[part]], depth[part], size)
        view = camera.eye - body.center
        factor, shine = lighting(normal, view / np.linalg.norm(view), light, casters.hidden(index, points))
        pale, dark = np.maximum(tone, 0.0), 1 + np.minimum(tone, 0.0)
        for channel, amount in enumerate(body.color):
            diffuse = (amount + pale * (1 - amount)) * dark
            colors[channel, part] = diffuse * factor + shine
    colors = np.clip(colors, 0.0, 1.0) * weight
    count = camera.width * camera.height
    shape = (camera.height, camera.width)
    sums = [np.bincount(pixel, channel, count) for channel in colors]
    cover = np.bincount(pixel, weight, count)
    return np.stack(sums, axis=-1).reshape(*shape, 3), cover.reshape(shape)


def packed(image: np.ndarray) -> np.ndarray:
    """Return colors linear in light as RGBA packed into one uint32 each, first row at the bottom."""
    page = np.full((*image.shape[:2], 4), 255, np.uint8)
    page[..., :3] = np.sqrt(np.clip(image, 0.0, 1.0)) * 255 + 0.5
    return page.view(np.uint32)[::-1, :, 0]


def _shading_samples(owner: np.ndarray, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the flat indices of the samples to shade, and the weight of each in its pixel.

    A pixel inside a body is shaded at its middle sample only; marks and edges are antialiased by themselves.
    """
    lines = [owner[k::samples] for k in range(samples)]
    level = np.logical_and.reduce([line == lines[0] for line in lines[1:]])
    alike = np.logical_and.reduce([level[:, k::samples] for k in range(samples)])
    for k in range(1, samples):
        alike &= lines[0][:, k::samples] == lines[0][:, ::samples]
    middle = np.flatnonzero(alike & (lines[0][:, ::samples] >= 0))
    rows, columns = np.divmod(middle, alike.shape[1])
    inner = (rows * samples + samples // 2) * owner.shape[1] + columns * samples + samples // 2
    mixed = np.flatnonzero(~alike)
    rows, columns = np.divmod(mixed, alike.shape[1])
    corner = rows * samples * owner.shape[1] + columns * samples
    steps = (np.arange(samples)[:, None] * owner.shape[1] + np.arange(samples)).ravel()
    outer = (corner[:, None] + steps).ravel()
    outer = outer[owner.ravel()[outer] >= 0]
    return np.concatenate([inner, outer]), np.repeat([1.0, 1 / samples**2], [len(inner), len(outer)])


def _windows(body: Solid, camera: Camera, samples: int) -> Iterator[tuple[slice, slice]]:
    """Yield rows and columns of samples that contain the image of a body; several rectangles for a long capsule."""
    corners = body.corners()
    parts = [corners]
    if body.kind == CAPSULE:
        # The bounding rectangle of a slanting rod is mostly empty: divide the rod along its axis.
        count = int(np.clip(body.half_lengths[2] / (2 * body.radius), 1, 12))
        ends = np.linspace(corners[0], corners[1], count + 1)
        parts = [ends[k : k + 2] for k in range(count)]
    for part in parts:
        left, right, top, bottom = camera.extent(part, body.radius)
        columns = np.clip([left * samples - 1, right * samples + 2], 0, camera.width * samples).astype(int)
        rows = np.clip([top * samples - 1, bottom * samples + 2], 0, camera.height * samples).astype(int)
        if columns[0] < columns[1] and rows[0] < rows[1]:
            yield slice(*rows), slice(*columns)


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
    """Return the edges of a box on the side facing the camera, or all of a hull.

    Args:
        body: a box or a hull.
        owner: index of the body.
        camera: the camera.
    """
    half, eye = body.half_lengths, (camera.eye - body.center) @ body.axes
    is_dim = body.color @ LUMINANCE < _DIM
    color = np.tile(body.color * 0.55 + 0.22 if is_dim else body.color * 0.22, (2, 1))
    if body.edges is not None:
        # Those behind the body are hidden by it, without an owner.
        return [Line(body.center + ends @ body.axes.T, color, np.full(2, 0.7)) for ends in body.edges]
    lines = []
    for along in range(3):
        a, b = (along + 1) % 3, (along + 2) % 3
        for signs in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            if any(sign * eye[k] > half[k] for sign, k in zip(signs, (a, b), strict=True)):
                ends = np.zeros((2, 3))
                ends[:, a], ends[:, b] = signs[0] * half[a], signs[1] * half[b]
                ends[:, along] = -half[along], half[along]
                lines.append(Line(body.center + ends @ body.axes.T, color, np.full(2, 0.7), owner))
    return lines


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
    dense = [_dense_points(line, camera) for line in lines if len(line.points) > 1]
    if not dense:
        return image
    column, row, far, color, strength, owner = (np.concatenate(parts) for parts in zip(*dense, strict=True))
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
