"""Quantiles of a stream of numbers in little memory: exact for short streams, within a known rank for long ones."""

from collections.abc import Sequence

import numpy as np

# Numbers kept per level; streams up to this length are kept whole.
KEPT = 2**14


class Quantiles:
    """Quantiles of numbers that come a few at a time.

    Level i holds at most `KEPT` numbers, each standing for 2^i of the stream. A full level is sorted, and every other
    number goes to the next level: the odd ones and the even ones in turn. Each time, the rank of any value changes by
    at most 2^i, so that n numbers are summed up within a rank of n log2(n / KEPT) / KEPT, and mostly far better, since
    the turns cancel. The same numbers in the same order give the same quantiles.

    Source: G. S. Manku, S. Rajagopalan and B. G. Lindsay, Approximate medians and other quantiles in one pass and with
    limited memory, SIGMOD 1998, doi:10.1145/276304.276342.

    Attributes:
        count: numbers so far.
        uncertainty: the most by which a rank may be wrong.
    """

    def __init__(self) -> None:
        self.count = 0
        self.uncertainty = 0
        self._levels: list[np.ndarray] = [np.empty(0)]
        self._turns = [0]

    def add(self, numbers: np.ndarray) -> None:
        """Take numbers.

        Args:
            numbers: finite, any shape.
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
        """Return the numbers below which fractions of the stream lie, interpolated as `numpy.quantile` does.

        Args:
            fractions: from 0 to 1.

        Raises:
            ValueError: if there were no numbers.
        """
        if not self.count:
            raise ValueError("quantiles of no numbers")
        numbers = np.concatenate(self._levels)
        order = np.argsort(numbers, kind="stable")
        weights = np.concatenate([np.full(level.size, 2**i) for i, level in enumerate(self._levels)])[order]
        # The rank of the middle of the numbers that each one stands for.
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
