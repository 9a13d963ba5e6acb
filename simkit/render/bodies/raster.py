"""Rasterization of solids: depth buffer and shaded samples averaged over pixels."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from simkit.render.bodies.camera import Camera
from simkit.render.bodies.light import Casters, Light, Shadow, lighting
from simkit.render.bodies.solids import CAPSULE, Solid, depths, surface

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
            found = depths(body, camera, across[columns], upward[rows])
            nearer = found < depth[rows, columns] * (1 - _SAME_PLACE)
            depth[rows, columns][nearer] = found[nearer]
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
            own = (amount + pale * (1 - amount)) * dark
            colors[channel, part] = own * factor + shine
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
