"""Values of a program as tensors: one for real arrays, two for complex ones, one for each word of random keys."""

import dataclasses
from typing import Any

import numpy as np

from simkit.export.onnx.equations import Aval
from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.onnx.tracing import known_array

_PARTS = {"complex64": np.dtype(np.float32), "complex128": np.dtype(np.float64)}


@dataclasses.dataclass(frozen=True)
class Value:
    """An array of a program.

    Attributes:
        parts: one tensor of a real array, the real and imaginary part, or the words of random keys; of equal shapes.
        key: the random number generator of keys, ``None`` for other arrays.
    """

    parts: tuple[Tensor, ...]
    key: Any = None

    @property
    def single(self) -> bool:
        """Whether the value is one real tensor."""
        return len(self.parts) == 1 and self.key is None


def real(tensor: Tensor) -> Value:
    """Return the value of a real tensor."""
    return Value((tensor,))


def parts_of(aval: Aval) -> tuple[int, np.dtype]:
    """Return the number of tensors of a value, and their type."""
    if aval.key is not None:
        return int(np.prod(aval.key.key_shape)), np.dtype(np.uint32)
    if aval.dtype.name in _PARTS:
        return 2, _PARTS[aval.dtype.name]
    return 1, aval.dtype


def constant(graph: Graph, value: Any) -> Value:
    """Return a constant of a program as a value."""
    array, key = known_array(value)
    if key is not None:
        words = array.reshape(*array.shape[:-1], -1)
        return Value(tuple(graph.constant(words[..., i]) for i in range(words.shape[-1])), key)
    if array.dtype.name in _PARTS:
        return Value((graph.constant(np.real(array)), graph.constant(np.imag(array))))
    return real(graph.constant(array))


def joined(graph: Graph, value: Value) -> Tensor:
    """Return a value as one tensor; several parts lie along a new last axis."""
    if value.single:
        return value.parts[0]
    shape = value.parts[0].shape
    columns = [graph.reshape(part, (*shape, 1)) for part in value.parts]
    return graph.op("Concat", columns, (*shape, len(columns)), columns[0].dtype, axis=len(shape))


def split(graph: Graph, tensor: Tensor, aval: Aval) -> Value:
    """Return the value of a tensor from `joined`."""
    count, _ = parts_of(aval)
    if count == 1 and aval.key is None:
        return real(tensor)
    axis = len(tensor.shape) - 1
    indices = [graph.constant(np.int64(i)) for i in range(count)]
    return Value(
        tuple(graph.op("Gather", [tensor, i], tensor.shape[:-1], tensor.dtype, axis=axis) for i in indices), aval.key
    )
