"""Interpolation of cell values to pixels, separable in x and y, on even or stretched grids."""

import dataclasses
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass(frozen=True)
class Samples:
    """Linear interpolation from a line of cell centers to the pixels of one axis.

    Sample ``s`` reads ``(1 - weight[s]) value[lower[s]] + weight[s] value[lower[s] + 1]``; each pixel is the mean
    of ``per_pixel`` consecutive samples.

    Attributes:
        lower: index of the cell center at or below each sample.
        weight: weight of the next cell center, in [0, 1].
        per_pixel: samples per pixel; more than one where cells are smaller than pixels, so that no cell is skipped.
    """

    lower: np.ndarray
    weight: np.ndarray
    per_pixel: int


def cell_edges(centers: np.ndarray) -> np.ndarray:
    """Return the ``n + 1`` edges of cells with the given ``n`` centers: midpoints, and mirrored at both ends."""
    if len(centers) == 1:
        return np.array([centers[0] - 0.5, centers[0] + 0.5])
    inner = (centers[:-1] + centers[1:]) / 2
    return np.concatenate([[2 * centers[0] - inner[0]], inner, [2 * centers[-1] - inner[-1]]])


def samples(centers: np.ndarray, pixels: int, low: float, high: float) -> Samples:
    """Return the interpolation from a line of cells to pixels, constant in the outer half of the end cells.

    Args:
        centers: centers of the cells, increasing, (n,).
        pixels: number of pixels.
        low: coordinate of the start of the first pixel, within the cells.
        high: coordinate of the end of the last pixel, within the cells.
    """
    edges = cell_edges(centers)
    shown = np.diff(edges)[(edges[1:] > low) & (edges[:-1] < high)]
    per_pixel = max(1, int(np.ceil((high - low) / pixels / shown.min())))
    # Cells clustered at walls would need hundreds of samples per pixel, without a visible difference.
    count = pixels * min(per_pixel, 8)
    points = low + (high - low) * (np.arange(count) + 0.5) / count
    index = np.interp(points, centers, np.arange(len(centers), dtype=float))
    lower = np.clip(index.astype(int), 0, max(len(centers) - 2, 0))
    return Samples(lower, (index - lower).astype(np.float32), count // pixels)


def resample(image: np.ndarray, rows: Samples, columns: Samples) -> np.ndarray:
    """Interpolate ``image`` (cells in y, cells in x) to pixels.

    Pixels inside cells that are not finite are NaN; those around average over finite neighbors only.
    """
    finite = np.isfinite(image)
    if finite.all():
        return _along_both(image, rows, columns, _interpolated)
    total = _along_both(np.where(finite, image, 0).astype(np.float32), rows, columns, _interpolated)
    weight = _along_both(finite.astype(np.float32), rows, columns, _interpolated)
    inside = _along_both(finite.astype(np.float32), rows, columns, _nearest) > 0.5
    return np.where(inside, total / np.where(inside, weight, 1), np.nan)


def _along_both(image: np.ndarray, rows: Samples, columns: Samples, read: Callable) -> np.ndarray:
    return _averaged(read(_averaged(read(image.T, rows), rows).T, columns), columns)


def _averaged(values: np.ndarray, line: Samples) -> np.ndarray:
    if line.per_pixel == 1:
        return values
    return values.reshape(*values.shape[:-1], -1, line.per_pixel).mean(axis=-1)


def _interpolated(image: np.ndarray, line: Samples) -> np.ndarray:
    low = np.take(image, line.lower, axis=-1)
    if image.shape[-1] > 1:
        low += line.weight * (np.take(image, line.lower + 1, axis=-1) - low)
    return low


def _nearest(image: np.ndarray, line: Samples) -> np.ndarray:
    return np.take(image, line.lower + (line.weight > 0.5), axis=-1)
