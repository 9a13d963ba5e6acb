"""Palette of an animation, and the exact mapping of pixels to its colors."""

from collections.abc import Iterable

import numpy as np

# Index 255 is reserved: the GIF writer uses it for unchanged pixels, the mapping for colors not yet mapped.
MOST_COLORS = 255
_UNSEEN = 255
# Largest error of a color channel, of 255, for pixels kept from the frame before; not visible in motion.
TOLERANCE = 4


def rank_colors(images: Iterable[np.ndarray], most: int = MOST_COLORS) -> np.ndarray:
    """Return colors of ``images`` ordered so that the first k are a good palette for any k, (n, 3) of uint8.

    The next color is the one with the largest squared distance to the colors before it, times the square root of its
    count, so that thin lines and the ends of color bars keep their colors beside large areas. Only colors that occur
    are chosen: paper stays exactly white.

    Args:
        images: uint8 arrays (height, width, 3).
        most: largest number of colors.
    """
    found, counts = np.unique(np.concatenate([_packed(image).ravel() for image in images]), return_counts=True)
    colors, weight = _unpacked(found).astype(np.float32), np.sqrt(counts)
    chosen = [int(counts.argmax())]
    distance = np.full(len(colors), np.inf, np.float32)
    while len(chosen) < min(most, MOST_COLORS, len(colors)):
        distance = np.minimum(distance, ((colors - colors[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int((distance * weight).argmax()))
    return colors[chosen].astype(np.uint8)


class Palette:
    """The exact mapping of pixels to the nearest of at most 255 colors.

    Args:
        colors: (n, 3) of uint8.
        tolerance: largest error of a color channel, of 255, for pixels kept from the frame before.

    Attributes:
        colors: the first 255 of them.
    """

    def __init__(self, colors: np.ndarray, tolerance: int = 0) -> None:
        self.colors = colors[:MOST_COLORS]
        self._tolerance = tolerance
        self._index = np.full(1 << 24, _UNSEEN, np.uint8)

    def after(self, image: np.ndarray, before: np.ndarray | None) -> np.ndarray:
        """Return palette indices of a picture, keeping those of the picture before where they are within tolerance.

        Smooth fields that change slowly then take a fraction of the bytes, with any number of colors. Errors do not
        accumulate: each pixel is within the tolerance of its own picture.

        Args:
            image: (height, width, 3) of uint8.
            before: indices (height, width) of the picture before it, or ``None``.
        """
        found = self.indices(image)
        if before is None or not self._tolerance:
            return found
        error = np.maximum(image, self.colors[before]) - np.minimum(image, self.colors[before])
        return np.where((error <= self._tolerance).all(axis=-1), before, found)

    def indices(self, image: np.ndarray) -> np.ndarray:
        """Return the index of the nearest color for each pixel of ``image``, (height, width) of uint8."""
        packed = _packed(image)
        index = self._index[packed]
        unseen = packed[index == _UNSEEN]
        if unseen.size:
            new = np.unique(unseen)
            # |new|^2 is the same for every candidate; all terms are integers that float32 represents exactly.
            candidates = self.colors.astype(np.float32)
            distance = (candidates**2).sum(axis=1) - 2 * _unpacked(new).astype(np.float32) @ candidates.T
            self._index[new] = distance.argmin(axis=1)
            index = self._index[packed]
        return index


def _packed(image: np.ndarray) -> np.ndarray:
    packed = image[..., 0].astype(np.uint32)
    for channel in (1, 2):
        packed <<= 8
        packed |= image[..., channel]
    return packed


def _unpacked(packed: np.ndarray) -> np.ndarray:
    return np.stack([packed >> 16, packed >> 8 & 255, packed & 255], axis=-1).astype(np.uint8)
