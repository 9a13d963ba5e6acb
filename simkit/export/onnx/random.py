"""Random keys and bits, equal to JAX's bit for bit: JAX's generators, converted like any other function."""

from typing import Any

import numpy as np

from simkit.export.onnx import tracing
from simkit.export.onnx.convert import run
from simkit.export.onnx.equations import Aval, Equation
from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.values import Value, joined, real, split

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


@primitive("random_wrap", whole=True)
def random_wrap(graph: Graph, equation: Equation, data: Value) -> list[Value]:
    """Keys from their words."""
    return [keys_of(graph, data.parts[0], equation.params["impl"])]


@primitive("random_unwrap", whole=True)
def random_unwrap(graph: Graph, equation: Equation, keys: Value) -> list[Value]:
    """The words of keys."""
    return [real(words_of(graph, keys))]


@primitive("random_bits", "random_split", "random_fold_in", "random_seed", whole=True)
def random(graph: Graph, equation: Equation, *values: Value) -> list[Value]:
    """Bits or keys derived from keys, and keys from seeds."""
    generator = equation.params.get("impl") or next(value.key for value in values if value.key is not None)
    shape = np.broadcast_shapes(*(aval.shape for aval in equation.inputs))
    whole = []
    for value, aval in zip(values, equation.inputs, strict=True):
        if aval.key is None:
            whole.append(real(graph.expand(value.parts[0], shape)))
        else:
            wide = Value(tuple(graph.expand(part, shape) for part in value.parts), value.key)
            whole.append(real(words_of(graph, wide)))
    (result,) = run(graph, tracing.random_program(equation, generator), whole)
    if equation.out.key is None:
        return [result]
    return [keys_of(graph, result.parts[0], generator)]


def words_of(graph: Graph, keys: Value) -> Tensor:
    """Return the words of keys, uint32 ``(..., words)``."""
    return joined(graph, Value(keys.parts, keys.key))


def keys_of(graph: Graph, words: Tensor, generator: Any) -> Value:
    """Return keys from their words, uint32 ``(..., words)``."""
    return split(graph, words, Aval(words.shape[:-1], words.dtype, generator))


@primitive("iota_2x32_shape", whole=True)
def iota_2x32_shape(graph: Graph, equation: Equation) -> list[Value]:
    """The flat index of each element, its high and its low 32 bits."""
    shape = equation.params["shape"]
    number = np.arange(int(np.prod(shape)), dtype=np.uint64).reshape(shape)
    return [real(graph.constant((part & 0xFFFFFFFF).astype(np.uint32))) for part in (number >> np.uint64(32), number)]


@primitive("threefry2x32")
def threefry(graph: Graph, equation: Equation, *words: Tensor) -> list[Tensor]:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011, doi:10.1145/2063384.2063405): key words, then counter words."""

    def add(a: Tensor, b: Tensor) -> Tensor:
        return graph.elementwise("Add", a, b)

    def constant(number: int) -> Tensor:
        return graph.constant(number, np.uint32)

    def rotated(x: Tensor, distance: int) -> Tensor:
        left = graph.elementwise("BitShift", x, constant(distance), direction="LEFT")
        right = graph.elementwise("BitShift", x, constant(32 - distance), direction="RIGHT")
        return graph.elementwise("BitwiseOr", left, right)

    shape = equation.out.shape
    key, other, x, y = words
    parity = graph.elementwise("BitwiseXor", graph.elementwise("BitwiseXor", key, other), constant(0x1BD11BDA))
    schedule = [key, other, parity]
    x, y = add(x, key), add(y, other)
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x = add(x, y)
            y = graph.elementwise("BitwiseXor", rotated(y, distance), x)
        x = add(x, schedule[(group + 1) % 3])
        y = add(y, add(schedule[(group + 2) % 3], constant(group + 1)))
    return [graph.expand(x, shape), graph.expand(y, shape)]
