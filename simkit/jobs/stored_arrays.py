"""Arrays of a sweep's chunks as they are stored: where members are in them, and how a result has them."""

import dataclasses
from typing import Any

import numpy as np


def member_axis(name: str) -> int:
    """Return the axis of a chunk's array along which its members are: diagnostics have their frames first."""
    return int(name.startswith("diagnosed."))


@dataclasses.dataclass(frozen=True)
class StoredArray:
    """An array of a sweep's chunks.

    Attributes:
        name: in the chunks.
        dtype: of its numbers.
        shape: of one member.
        is_turned: whether its last two axes are swapped, see `simkit.storage.labels.oriented`.
        words: by code, which take the place of codes; ``None`` for numbers.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_turned: bool = False
    words: np.ndarray | None = None

    def of(self, array: np.ndarray) -> np.ndarray:
        """Return the array as a result has it, members first.

        Args:
            array: of a chunk, or of several as `joined` returns it.
        """
        found = np.moveaxis(array, member_axis(self.name), 0)
        found = np.swapaxes(found, -2, -1) if self.is_turned else found
        return found if self.words is None else self.words[found]
