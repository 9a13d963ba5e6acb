"""Arrays in the files of a sweep's chunks, and their conversion to the axes of a result."""

import dataclasses
from typing import Any

import numpy as np


def member_axis(name: str) -> int:
    """Return the member axis of a chunk's array: 1 for diagnostics, whose axis 0 is the frame, else 0."""
    return int(name.startswith("diagnosed."))


@dataclasses.dataclass(frozen=True)
class StoredArray:
    """An array of a sweep's chunks.

    Attributes:
        name: name in the chunks.
        dtype: dtype of its numbers.
        shape: shape of one member's part.
        is_turned: whether its last two axes are swapped, see `simkit.storage.labels.oriented`.
        words: words that replace integer codes, by code; ``None`` for numbers.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_turned: bool = False
    words: np.ndarray | None = None

    def of(self, array: np.ndarray) -> np.ndarray:
        """Return the array with the axes of a result, members first.

        Args:
            array: array of a chunk, or of several chunks joined.
        """
        found = np.moveaxis(array, member_axis(self.name), 0)
        found = np.swapaxes(found, -2, -1) if self.is_turned else found
        return found if self.words is None else self.words[found]
