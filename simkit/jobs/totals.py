"""Totals of a sweep: number of members by status, and quantiles of their final diagnostics and objectives.

Members are read a block at a time, so that only one block is in memory.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.jobs.quantiles import Quantiles
from simkit.jobs.sweep_objectives import OBJECTIVE

if TYPE_CHECKING:
    import xarray

# Attribute of a result with the statuses that are failures, if these are not those of a run.
FAILURE_STATUSES = "failure_statuses"
FRACTIONS = {"5 %": 0.05, "25 %": 0.25, "50 %": 0.5, "75 %": 0.75, "95 %": 0.95}
# Members read together.
BLOCK = 2**14


class Totals:
    """Totals of the members added so far.

    Attributes:
        statuses: number of members by status, in words.
        failed: number of failed members.

    Args:
        failures: names of the statuses that are failures, in lower case; empty for those of a run.
    """

    def __init__(self, failures: Sequence[str] = ()) -> None:
        self._failures = failures
        self.statuses: dict[str, int] = {}
        self.failed = 0
        self._quantiles: dict[str, Quantiles] = {}

    def add(self, status: np.ndarray, final: Mapping[str, np.ndarray]) -> None:
        """Add members.

        Args:
            status: codes of `simkit.core.status.Status`, int32 (members,).
            final: final diagnostics and objectives by name, (members,); those of failed members and non-finite ones
                are omitted.
        """
        from simkit.core.status import Status

        codes, counts = np.unique(status, return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            word = Status(code).name.lower()
            self.statuses[word] = self.statuses.get(word, 0) + count
        bad = is_failure(status, self._failures)
        self.failed += int(bad.sum())
        for name, values in final.items():
            kept = np.asarray(values, np.float64)[~bad]
            self._quantiles.setdefault(name, Quantiles()).add(kept[np.isfinite(kept)])

    @property
    def quantiles(self) -> dict[str, dict[str, float]]:
        """Quantiles of each array with finite numbers."""
        known = {name: found for name, found in self._quantiles.items() if found.count}
        return {
            name: dict(zip(FRACTIONS, found.at(list(FRACTIONS.values())), strict=True)) for name, found in known.items()
        }

    def plain(self) -> dict[str, Any]:
        """Return the totals as plain data."""
        return {"statuses": dict(sorted(self.statuses.items())), "quantiles": self.quantiles}


def is_failure(status: np.ndarray, failures: Sequence[str] = ()) -> np.ndarray:
    """Return which members failed, booleans of the shape of their statuses.

    Args:
        status: codes, or their names as in a result.
        failures: names of the statuses that are failures, in lower case; empty for those of a run.
    """
    from simkit.core.status import FAILURES, Status, failed

    return failed(status, [Status[name.upper()] for name in failures] or FAILURES)


def failures_of(result: "xarray.Dataset") -> tuple[str, ...]:
    """Return the names of the statuses that are failures of a result; empty if they are those of a run.

    Args:
        result: result of a sweep, or of an optimization from several starts.
    """
    return tuple(str(result.attrs.get(FAILURE_STATUSES, "")).split())


def totals_of(result: "xarray.Dataset") -> Totals:
    """Return the totals of a sweep, read a block of members at a time.

    Args:
        result: result of a sweep.
    """
    totals = Totals(failures_of(result))
    for _, block in blocks_of(result):
        arrays = final_numbers(block) | objective_arrays(block)
        final = {name: array.values.ravel() for name, array in arrays.items()}
        totals.add(codes_of(block["status"].values).ravel(), final)
    return totals


def final_numbers(result: "xarray.Dataset") -> "dict[str, xarray.DataArray]":
    """Return the final diagnostics of members, by name.

    Args:
        result: result of a sweep.
    """
    axes = result["status"].dims
    return {str(n): a.isel(frame=-1) for n, a in result.data_vars.items() if a.dims == (*axes, "frame")}


def objective_arrays(result: "xarray.Dataset") -> "dict[str, xarray.DataArray]":
    """Return the objectives of members other than the last value of a diagnostic, by name in the data set.

    Args:
        result: result of a sweep.
    """
    return {str(name): array for name, array in result.data_vars.items() if OBJECTIVE in array.attrs}


def codes_of(words: np.ndarray) -> np.ndarray:
    """Return statuses in words as codes of `simkit.core.status.Status`.

    Args:
        words: statuses of a result, such as ``"converged"``.
    """
    from simkit.core.status import Status

    known = {status.name.lower(): status.value for status in Status}
    unique, inverse = np.unique(words, return_inverse=True)
    return np.array([known[str(word)] for word in unique], np.int32)[inverse].reshape(np.shape(words))


def blocks_of(result: "xarray.Dataset", most: int = BLOCK) -> "Iterator[tuple[tuple[int, ...], xarray.Dataset]]":
    """Yield a result in blocks of members, in their order, each with its start index along each axis.

    Args:
        result: result of a sweep.
        most: maximum number of members per block, for a result in memory.
    """
    status = result["status"]
    sizes = {str(axis): length for axis, length in status.sizes.items()}
    # Members of one chunk are read together.
    stored = status.encoding.get("preferred_chunks")
    lengths = tuple(stored[axis] for axis in sizes) if stored else block_lengths(status.shape, most)
    for starts in itertools.product(*(range(0, n, step) for n, step in zip(sizes.values(), lengths, strict=True))):
        ranges = zip(sizes, starts, lengths, strict=True)
        yield starts, result.isel({axis: slice(start, start + step) for axis, start, step in ranges})


def block_lengths(shape: Sequence[int], most: int) -> tuple[int, ...]:
    """Return the lengths, along each axis, of blocks that are contiguous ranges of flat member indices.

    Args:
        shape: shape of the members, points and seeds.
        most: maximum number of members per block.
    """
    lengths, room = list[int](), max(most, 1)
    for length in reversed(shape):
        lengths.append(min(length, max(room, 1)))
        room = room // length if lengths[-1] == length else 0
    return tuple(reversed(lengths))
