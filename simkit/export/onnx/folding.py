"""Constant folding: ONNX operators computed by NumPy when a graph is built."""

from collections.abc import Callable
from typing import Any

import numpy as np


def _slice(x: np.ndarray, starts: Any, ends: Any, axes: Any, steps: Any) -> np.ndarray:
    cut = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        # An end below -size means "through the first element" with a negative step.
        cut[axis] = slice(start, None if step < 0 and end < -x.shape[axis] else end, step)
    return x[tuple(cut)]


def _pad(x: np.ndarray, pads: np.ndarray, value: np.ndarray, **_: Any) -> np.ndarray:
    return np.pad(x, list(zip(pads[: x.ndim], pads[x.ndim :], strict=True)), constant_values=value)


def _divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f":
        return x / y
    quotient = x // y
    # ONNX rounds toward zero, NumPy down.
    return quotient + ((quotient < 0) & (quotient * y != x))


def _cast(x: np.ndarray, to: str) -> np.ndarray:
    return x.astype(to)


def _shift(x: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
    return np.left_shift(x, y) if direction == "LEFT" else np.right_shift(x, y)


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: np.ndarray, axes: np.ndarray, keepdims: int = 1) -> np.ndarray:
        return function(x, axis=tuple(int(axis) for axis in axes), keepdims=bool(keepdims))

    return run


# Functions whose last bit differs between libraries (Exp, Sin, ...) are left to the runtime.
FOLDED: dict[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Add": np.add,
    "And": np.logical_and,
    "BitCast": lambda x, to: x.view(to),
    "BitShift": _shift,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseNot": np.bitwise_not,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Cast": _cast,
    "Clip": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "Concat": lambda *x, axis: np.concatenate(x, axis),
    "Div": _divide,
    "Equal": np.equal,
    "Expand": lambda x, shape: np.broadcast_to(x, shape),
    "Floor": np.floor,
    "Gather": lambda x, i, axis=0: np.take(x, i, axis),
    "GatherElements": lambda x, i, axis=0: np.take_along_axis(x, i, axis),
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Or": np.logical_or,
    "Pad": _pad,
    "ReduceMax": _reduced(np.max),
    "ReduceMin": _reduced(np.min),
    "ReduceSum": _reduced(np.sum),
    "Reshape": lambda x, shape, allowzero=0: np.reshape(x, shape),
    "Slice": _slice,
    "Sqrt": np.sqrt,
    "Sub": np.subtract,
    "Transpose": lambda x, perm: np.transpose(x, perm),
    "Where": np.where,
    "Xor": np.logical_xor,
}
