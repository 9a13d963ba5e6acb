"""One palette for all frames of an animation, and the exact mapping of pixels to it."""

from collections.abc import Iterable

import numpy as np

# Index 255 is left free: the GIF writer uses it for unchanged pixels, the mapping for colors not yet seen.
MOST_COLORS = 255
_UNSEEN = 255
# Steps of 255 in each channel by which a pixel may miss its color: less than the eye tells apart in motion.
TOLERANCE = 4


def rank_colors(images: Iterable[np.ndarray], most: int = MOST_COLORS) -> np.ndarray:
    """Return the colors of ``images`` in an order whose every beginning is a good palette, (n, 3) of uint8.

    Each next color is the one worst served by those before it: the largest distance squared times the square root of
    how often it occurs, so that thin lines and color-bar ends keep their colors beside large areas. Only colors that
    really occur are chosen: paper stays exactly white.

    Args:
        images: uint8 arrays (height, width, 3).
        most: how many colors at most.
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
        tolerance: steps of 255 in each channel by which pixels that stay as they are may miss their color.

    Attributes:
        colors: the same.
    """

    def __init__(self, colors: np.ndarray, tolerance: int = 0) -> None:
        self.colors = colors[:MOST_COLORS]
        self._tolerance = tolerance
        self._index = np.full(1 << 24, _UNSEEN, np.uint8)

    def after(self, image: np.ndarray, shown: np.ndarray | None) -> np.ndarray:
        """Return indices for a picture that follows another, where pixels that hardly change stay as they are.

        Smooth fields that change slowly then take a fraction of the bytes with any number of colors. Each pixel stays
        within the tolerance of the picture, however slowly it changes.

        Args:
            image: (height, width, 3) of uint8.
            shown: indices (height, width) of the picture before it, or ``None``.
        """
        found = self.indices(image)
        if shown is None or not self._tolerance:
            return found
        away = np.maximum(image, self.colors[shown]) - np.minimum(image, self.colors[shown])
        return np.where((away <= self._tolerance).all(axis=-1), shown, found)

    def indices(self, image: np.ndarray) -> np.ndarray:
        """Return the index of the nearest color for each pixel of ``image``, (height, width) of uint8."""
        packed = _packed(image)
        index = self._index[packed]
        unseen = packed[index == _UNSEEN]
        if unseen.size:
            new = np.unique(unseen)
            # |new|^2 is the same for every candidate; all terms are whole numbers that float32 holds exactly.
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
