"""Totals of a sweep: number of members by status, and quantiles of their final diagnostics and objectives.

Members are read a block at a time, so that only their final numbers are in memory.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.core.status import FAILURES, Status, failed
from simkit.jobs.sweep_objectives import OBJECTIVE

if TYPE_CHECKING:
    import xarray

# Attribute of a result with the statuses that are failures, if these are not those of a run.
FAILURE_STATUSES = "failure_statuses"
FRACTIONS = {"5 %": 0.05, "25 %": 0.25, "50 %": 0.5, "75 %": 0.75, "95 %": 0.95}
# Members read together.
BLOCK = 2**14


@dataclasses.dataclass(frozen=True)
class Totals:
    """Totals of members.

    Attributes:
        statuses: number of members by status, in words.
        failed: number of failed members.
        quantiles: quantiles of each array with finite numbers, without those of failed members.
    """

    statuses: dict[str, int]
    failed: int
    quantiles: dict[str, dict[str, float]]

    def plain(self) -> dict[str, Any]:
        """Return the totals as plain data."""
        return {"statuses": dict(sorted(self.statuses.items())), "quantiles": self.quantiles}


def totals(
    status: Sequence[np.ndarray], final: Sequence[Mapping[str, np.ndarray]], failures: Sequence[str] = ()
) -> Totals:
    """Return the totals of members.

    Args:
        status: codes of `simkit.core.status.Status` of some members each, int32 (members,).
        final: their final diagnostics and objectives by name, each (members,).
        failures: names of the statuses that are failures, in lower case; empty for those of a run.
    """
    ended = np.concatenate(status)
    codes, counts = np.unique(ended, return_counts=True)
    statuses = {Status(code).name.lower(): count for code, count in zip(codes.tolist(), counts.tolist(), strict=True)}
    failed, quantiles = is_failure(ended, failures), {}
    for name in final[0]:
        values = np.concatenate([part[name] for part in final]).astype(np.float64)
        if (fine := np.isfinite(values) & ~failed).any():
            quantiles[name] = dict(
                zip(FRACTIONS, np.quantile(values[fine], [*FRACTIONS.values()]).tolist(), strict=True)
            )
    return Totals(statuses, int(failed.sum()), quantiles)


def is_failure(status: np.ndarray, failures: Sequence[str] = ()) -> np.ndarray:
    """Return which members failed, booleans of the shape of their statuses.

    Args:
        status: codes, or their names as in a result.
        failures: names of the statuses that are failures, in lower case; empty for those of a run.
    """
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
    status, final = list[np.ndarray](), list[dict[str, np.ndarray]]()
    for _, block in blocks_of(result):
        status.append(codes_of(block["status"].values).ravel())
        arrays = final_numbers(block) | objective_arrays(block)
        final.append({name: array.values.ravel() for name, array in arrays.items()})
    return totals(status, final, failures_of(result))


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
