"""Rasterization of solids: lines of sight, a depth buffer, and averaged shaded samples."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from simkit.render.bodies.camera import Camera
from simkit.render.bodies.light import Casters, Light, Shade, lit
from simkit.render.bodies.solids import CAPSULE, Solid, depths, surface

# Lines of sight per pixel across and up.
SAMPLES = 3
# Difference of depths, as a part of them, below which two surfaces lie in the same place and the first is shown:
# rounding of float32 frames would otherwise mix both, sample by sample.
_SAME_PLACE = 1e-5


class Visible(NamedTuple):
    """What lines of sight meet first.

    Attributes:
        depth: (height, width) of samples, infinite where there is nothing.
        owner: index of the body, -1 where there is none.
    """

    depth: np.ndarray
    owner: np.ndarray


def visible(bodies: Sequence[Solid], camera: Camera, samples: int = SAMPLES) -> Visible:
    """Return which body each sample shows, and at which depth.

    Args:
        bodies: in any order.
        camera: that sees them.
        samples: lines of sight per pixel across and up.
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
    shadows: Sequence[Shade],
    camera: Camera,
    light: Light,
    seen: Visible,
    samples: int = SAMPLES,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the light (height, width, 3) that bodies send into each pixel, and the part of it they cover.

    Args:
        bodies: as given to ``visible``.
        shadows: one for each of them.
        camera: that sees them.
        light: the lamp.
        seen: what ``visible`` returned.
        samples: as given to it.
    """
    across, upward = camera.slopes(samples)
    where, weight = _to_shade(seen.owner, samples)
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
        factor, shine = lit(normal, view / np.linalg.norm(view), light, casters.hidden(index, points))
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


def _to_shade(owner: np.ndarray, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which samples are shaded, and for which part of a pixel each stands.

    Inside a body its middle sample stands for a pixel: marks and edges are drawn softly enough for that.
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
    """Yield rows and columns of samples that hold the picture of a body; several for a long thin one."""
    corners = body.corners()
    pieces = [corners]
    if body.kind == CAPSULE:
        # The rectangle around a slanting rod is mostly empty: go along it in steps.
        count = int(np.clip(body.half_lengths[2] / (2 * body.radius), 1, 12))
        ends = np.linspace(corners[0], corners[1], count + 1)
        pieces = [ends[k : k + 2] for k in range(count)]
    for piece in pieces:
        left, right, top, bottom = camera.extent(piece, body.radius)
        columns = np.clip([left * samples - 1, right * samples + 2], 0, camera.width * samples).astype(int)
        rows = np.clip([top * samples - 1, bottom * samples + 2], 0, camera.height * samples).astype(int)
        if columns[0] < columns[1] and rows[0] < rows[1]:
            yield slice(*rows), slice(*columns)
