"""Totals of a sweep: how many members ended how, those that failed by name, and quantiles of their final diagnostics.

Members are counted as they come, a block at a time, so that no more than a block is ever in memory.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.jobs.quantiles import Quantiles

if TYPE_CHECKING:
    import xarray

FRACTIONS = {"5 %": 0.05, "25 %": 0.25, "50 %": 0.5, "75 %": 0.75, "95 %": 0.95}
# Members that are looked at together.
BLOCK = 2**14


class Totals:
    """What is known of members so far.

    Attributes:
        statuses: members by status, in words.
        failed: how many failed.
    """

    def __init__(self) -> None:
        self.statuses: dict[str, int] = {}
        self.failed = 0
        self._quantiles: dict[str, Quantiles] = {}

    def add(self, status: np.ndarray, final: Mapping[str, np.ndarray]) -> None:
        """Count members.

        Args:
            status: codes of `simkit.core.status.Status`, (members,).
            final: diagnostics at the end of each by name, (members,); those of failed members, and what is not finite,
                are left out.
        """
        from simkit.core.status import Status, failed

        codes, counts = np.unique(status, return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            word = Status(code).name.lower()
            self.statuses[word] = self.statuses.get(word, 0) + count
        bad = failed(status)
        self.failed += int(bad.sum())
        for name, values in final.items():
            kept = np.asarray(values, np.float64)[~bad]
            self._quantiles.setdefault(name, Quantiles()).add(kept[np.isfinite(kept)])

    @property
    def quantiles(self) -> dict[str, dict[str, float]]:
        """Quantiles of each diagnostic that has numbers."""
        known = {name: found for name, found in self._quantiles.items() if found.count}
        return {
            name: dict(zip(FRACTIONS, found.at(list(FRACTIONS.values())), strict=True)) for name, found in known.items()
        }

    def plain(self) -> dict[str, Any]:
        """Return the totals as plain data."""
        return {"statuses": dict(sorted(self.statuses.items())), "quantiles": self.quantiles}


def totals_of(result: "xarray.Dataset") -> Totals:
    """Return the totals of a sweep, read a block of members at a time.

    Args:
        result: of a sweep.
    """
    totals = Totals()
    for _, block in blocks_of(result):
        final = {name: array.values.ravel() for name, array in final_numbers(block).items()}
        totals.add(codes_of(block["status"].values).ravel(), final)
    return totals


def final_numbers(result: "xarray.Dataset") -> "dict[str, xarray.DataArray]":
    """Return the diagnostics of members at their end, by name.

    Args:
        result: of a sweep.
    """
    axes = result["status"].dims
    return {str(n): a.isel(frame=-1) for n, a in result.data_vars.items() if a.dims == (*axes, "frame")}


def codes_of(words: np.ndarray) -> np.ndarray:
    """Return statuses in words as codes of `simkit.core.status.Status`.

    Args:
        words: as in a result, such as ``"converged"``.
    """
    from simkit.core.status import Status

    known = {status.name.lower(): status.value for status in Status}
    unique, places = np.unique(words, return_inverse=True)
    return np.array([known[str(word)] for word in unique], np.int32)[places].reshape(np.shape(words))


def blocks_of(result: "xarray.Dataset", most: int = BLOCK) -> "Iterator[tuple[tuple[int, ...], xarray.Dataset]]":
    """Return a result in parts of a few members, in the order of these, each with where it begins along each axis.

    Args:
        result: of a sweep.
        most: members in a part, of a result in memory.
    """
    status = result["status"]
    sizes = {str(axis): length for axis, length in status.sizes.items()}
    # Members that are stored together are read together.
    stored = status.encoding.get("preferred_chunks")
    lengths = tuple(stored[axis] for axis in sizes) if stored else block_lengths(status.shape, most)
    for starts in itertools.product(*(range(0, n, step) for n, step in zip(sizes.values(), lengths, strict=True))):
        places = zip(sizes, starts, lengths, strict=True)
        yield starts, result.isel({axis: slice(start, start + step) for axis, start, step in places})


def block_lengths(shape: Sequence[int], most: int) -> tuple[int, ...]:
    """Return the size of blocks of at most so many members, each of which is one range of their numbers.

    Args:
        shape: how members are arranged.
        most: members in a block.
    """
    lengths, room = list[int](), max(most, 1)
    for length in reversed(shape):
        lengths.append(min(length, max(room, 1)))
        room = room // length if lengths[-1] == length else 0
    return tuple(reversed(lengths))
