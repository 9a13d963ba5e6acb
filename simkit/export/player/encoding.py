"""Arrays of a run in few bytes: quantized to 8 or 16 bits, predicted from neighbors, and compressed."""

import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

# Numbers of differences along frames and within a frame that are tried; the one with the fewest bytes is kept.
PREDICTORS = ((0, 0), (1, 0), (2, 0), (0, 1), (1, 1))
# Magnitude beyond which numbers are clipped, so that their range is finite.
_FARTHEST = 1e30
# Bytes of an array by which a predictor is chosen.
_PROBED = 2_000_000


class Stored(NamedTuple):
    """An array to be stored.

    Attributes:
        values: (frames, ...).
        bits: 8 or 16.
        step: smallest difference worth storing, in the unit of the values.
        ends: range that the codes cover, beyond which values are clipped; ``None`` for that of the values.
    """

    values: np.ndarray
    bits: int = 16
    step: float = 0.0
    ends: tuple[float, float] | None = None


class Quantized(NamedTuple):
    """Integers that stand for ``low + step * code``; the largest one stands for a value that is not finite.

    Attributes:
        codes: (frames, ...) of uint8 or uint16; one frame of an array that is constant in time.
        low: value of code 0.
        step: difference of neighboring codes; each value differs by at most half of it.
    """

    codes: np.ndarray
    low: float
    step: float


def quantized(stored: Stored) -> Quantized:
    """Return an array as integers.

    Args:
        stored: the array.
    """
    values = np.asarray(stored.values, np.float64)
    finite = np.isfinite(values)
    values = np.clip(values, -_FARTHEST, _FARTHEST)
    if len(values) > 1 and np.array_equal(values, np.broadcast_to(values[:1], values.shape), equal_nan=True):
        values, finite = values[:1], finite[:1]
    most = 2**stored.bits - 2
    low, high = stored.ends or (
        (float(values[finite].min()), float(values[finite].max())) if finite.any() else (0.0, 0.0)
    )
    step = max((high - low) / most, stored.step) or 1.0
    if not stored.ends and high - low <= most and np.array_equal(values[finite], np.rint(values[finite])):
        step = 1.0
    places = np.clip((np.where(finite, values, low) - low) / step, 0, most)
    kind = np.uint8 if stored.bits == 8 else np.uint16
    return Quantized(np.where(finite, np.rint(places), most + 1).astype(kind), low, step)


def encoded(arrays: Mapping[str, Stored]) -> tuple[list[dict[str, Any]], bytes]:
    """Return descriptions of arrays and their compressed bytes, one array after another.

    Args:
        arrays: by name.
    """
    descriptions, parts = [], []
    for name, stored in arrays.items():
        codes, low, step = quantized(stored)
        flat = codes.reshape(len(codes), -1)
        probe = flat[: max(3, _PROBED // max(flat[0].nbytes, 1))]
        predictor = min(PREDICTORS, key=lambda each: len(zlib.compress(_bytes(probe, *each), 1)))
        data = _bytes(flat, *predictor)
        descriptions.append(
            {
                "name": name,
                "bits": stored.bits,
                "low": low,
                "step": step,
                "frames": len(codes),
                "shape": list(codes.shape[1:]),
                "differences": list(predictor),
            }
        )
        parts.append(data)
    return descriptions, zlib.compress(b"".join(parts), 9)


def _bytes(codes: np.ndarray, along_frames: int, within: int) -> bytes:
    """Return differences of codes (frames, n), small ones of either sign as small numbers, high bytes first."""
    for axis, count in ((1, within), (0, along_frames)):
        for _ in range(count):
            # Integers wrap around, and so do the sums that undo this.
            codes = np.concatenate([codes.take([0], axis), np.diff(codes, axis=axis)], axis)
    if along_frames or within:
        signed = codes.view(f"i{codes.itemsize}")
        codes = ((signed << 1) ^ (signed >> (8 * codes.itemsize - 1))).view(codes.dtype)
    if codes.itemsize == 1:
        return codes.tobytes()
    return (codes >> 8).astype(np.uint8).tobytes() + (codes & 255).astype(np.uint8).tobytes()
