"""From cell values to pixels: separable interpolation on any grid, stretched ones included."""

import dataclasses
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass(frozen=True)
class Samples:
    """Where the pixels of one axis read a line of cell centers.

    Sample ``s`` reads ``(1 - weight[s]) value[lower[s]] + weight[s] value[lower[s] + 1]``; each pixel is the mean
    of ``per_pixel`` consecutive samples.

    Attributes:
        lower: index of the cell center at or below each sample.
        weight: weight of the next cell center, in [0, 1].
        per_pixel: samples per pixel; more than one where cells are smaller than pixels, so that none is skipped.
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
    """Return how ``pixels`` pixels read a line of cells; constant in the outer half of the end cells.

    Args:
        centers: of the cells, increasing, (n,).
        pixels: how many there are.
        low: where the first begins, within the cells.
        high: where the last ends, likewise.
    """
    edges = cell_edges(centers)
    shown = np.diff(edges)[(edges[1:] > low) & (edges[:-1] < high)]
    per_pixel = max(1, int(np.ceil((high - low) / pixels / shown.min())))
    # Finely clustered walls would ask for hundreds of samples per pixel that the eye cannot tell apart.
    count = pixels * min(per_pixel, 8)
    points = low + (high - low) * (np.arange(count) + 0.5) / count
    index = np.interp(points, centers, np.arange(len(centers), dtype=float))
    lower = np.clip(index.astype(int), 0, max(len(centers) - 2, 0))
    return Samples(lower, (index - lower).astype(np.float32), count // pixels)


def resample(image: np.ndarray, rows: Samples, columns: Samples) -> np.ndarray:
    """Interpolate ``image`` (cells in y, cells in x) to pixels.

    Cells that are not finite keep their shape: the pixels inside them are not a number, and those around them average
    over their finite neighbors only.
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
