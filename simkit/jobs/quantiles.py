"""Streaming quantiles in bounded memory: exact for short streams, with a known rank error for long ones."""

from collections.abc import Sequence

import numpy as np

# Capacity of a level; quantiles of streams up to this length are exact.
KEPT = 2**14


class Quantiles:
    """Quantiles of a stream of numbers.

    Level i holds at most `KEPT` numbers, each with weight 2^i. A full level is sorted, and every other number moves to
    the next level, those at odd and at even positions in turn. Each time, the rank of any value changes by at most 2^i,
    so the rank error of n numbers is at most n log2(n / KEPT) / KEPT, and usually far smaller, since errors of
    successive turns cancel. The same numbers in the same order give the same quantiles.

    Source: G. S. Manku, S. Rajagopalan and B. G. Lindsay, Approximate medians and other quantiles in one pass and with
    limited memory, SIGMOD 1998, doi:10.1145/276304.276342.

    Attributes:
        count: number of numbers so far.
        uncertainty: upper bound of the rank error.
    """

    def __init__(self) -> None:
        self.count = 0
        self.uncertainty = 0
        self._levels: list[np.ndarray] = [np.empty(0)]
        self._turns = [0]

    def add(self, numbers: np.ndarray) -> None:
        """Add numbers to the stream.

        Args:
            numbers: finite numbers, any shape.
        """
        left = np.asarray(numbers, np.float64).ravel()
        self.count += left.size
        while left.size:
            room = KEPT - self._levels[0].size
            self._levels[0] = np.concatenate([self._levels[0], left[:room]])
            left = left[room:]
            if left.size:
                self._halve(0)

    def at(self, fractions: Sequence[float]) -> list[float]:
        """Return quantiles of the stream, interpolated as by `numpy.quantile`.

        Args:
            fractions: from 0 to 1.

        Raises:
            ValueError: for an empty stream.
        """
        if not self.count:
            raise ValueError("quantiles of no numbers")
        numbers = np.concatenate(self._levels)
        order = np.argsort(numbers, kind="stable")
        weights = np.concatenate([np.full(level.size, 2**i) for i, level in enumerate(self._levels)])[order]
        # Middle rank of the numbers that each stored one represents.
        ranks = np.cumsum(weights) - (weights + 1) / 2
        wanted = np.asarray(fractions) * (self.count - 1)
        return np.interp(wanted, ranks, numbers[order]).tolist()

    def _halve(self, level: int) -> None:
        """Move every other number of a full level to the next one."""
        if level + 1 == len(self._levels):
            self._levels.append(np.empty(0))
            self._turns.append(0)
        elif self._levels[level + 1].size + KEPT // 2 > KEPT:
            self._halve(level + 1)
        chosen = np.sort(self._levels[level])[self._turns[level] :: 2]
        self._turns[level] ^= 1
        self.uncertainty += 2**level
        self._levels[level] = np.empty(0)
        self._levels[level + 1] = np.concatenate([self._levels[level + 1], chosen])
