"""Bits of integers and numbers, and random keys."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from simkit.export.onnx import tracing
from simkit.export.onnx.arithmetic import choose, powers_of_two, scalar
from simkit.export.onnx.convert import Value, inline, joined, real, run, split
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.tracing import Aval, Equation

_TOTAL = {"lt_to": "Less", "le_to": "LessOrEqual"}


def shifted(graph: Graph, x: Tensor, distance: Tensor, direction: str) -> Tensor:
    """Return integers shifted with zeros moving in, unsigned; 0 where the distance is at least their width.

    Args:
        graph: under construction.
        x: integers.
        distance: number of bits, of the same type.
        direction: ``"LEFT"`` or ``"RIGHT"``.
    """
    width = 8 * x.dtype.itemsize
    unsigned = np.dtype(f"uint{width}")
    x, distance = bit_cast(graph, x, unsigned), bit_cast(graph, distance, unsigned)
    bits = (distance.narrow or distance).value
    if bits is not None and (bits < width).all():
        return graph.elementwise("BitShift", x, distance, direction=direction)
    inside = graph.elementwise("Less", distance, scalar(graph, width, distance), dtype=bool)
    safe = graph.elementwise("Where", inside, distance, scalar(graph, 0, distance))
    result = graph.elementwise("BitShift", x, safe, direction=direction)
    return graph.elementwise("Where", inside, result, scalar(graph, 0, result))


@primitive("shift_left")
def shift_left(graph: Graph, equation: Equation, x: Tensor, distance: Tensor) -> Tensor:
    """``x << distance``."""
    return bit_cast(graph, shifted(graph, x, distance, "LEFT"), x.dtype)


@primitive("shift_right_logical")
def shift_right_logical(graph: Graph, equation: Equation, x: Tensor, distance: Tensor) -> Tensor:
    """``x >> distance``, zeros moving in."""
    return bit_cast(graph, shifted(graph, x, distance, "RIGHT"), x.dtype)


@primitive("shift_right_arithmetic")
def shift_right_arithmetic(graph: Graph, equation: Equation, x: Tensor, distance: Tensor) -> Tensor:
    """``x >> distance`` with copies of the highest bit moving in: ``~(~x >> distance)`` where it is set."""
    if x.dtype.kind == "u":
        signed = np.dtype(f"int{8 * x.dtype.itemsize}")
        parts = [bit_cast(graph, part, signed) for part in (x, distance)]
        return bit_cast(graph, shift_right_arithmetic(graph, equation, *parts), x.dtype)
    negative = graph.elementwise("Less", x, scalar(graph, 0, x), dtype=bool)
    positive = choose(graph, negative, graph.elementwise("BitwiseNot", x), x)
    result = shift_right_logical(graph, equation, positive, distance)
    return choose(graph, negative, graph.elementwise("BitwiseNot", result), result)


@primitive("population_count")
def population_count(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Number of set bits, summed in pairs, fours and eights (Warren, Hacker's Delight, 2nd edition, section 5-1)."""
    width = 8 * x.dtype.itemsize
    count = bit_cast(graph, x, np.dtype(f"uint{width}"))
    for distance in powers_of_two(width):
        mask = sum(((1 << distance) - 1) << bit for bit in range(0, width, 2 * distance))
        high = graph.elementwise("BitShift", count, scalar(graph, distance, count), direction="RIGHT")
        low, high = (graph.elementwise("BitwiseAnd", part, scalar(graph, mask, count)) for part in (count, high))
        count = graph.elementwise("Add", low, high)
    return bit_cast(graph, count, x.dtype)


@primitive("clz")
def leading_zeros(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Number of zero bits above the highest set bit."""
    width = 8 * x.dtype.itemsize
    bits = bit_cast(graph, x, np.dtype(f"uint{width}"))
    for distance in powers_of_two(width):
        high = graph.elementwise("BitShift", bits, scalar(graph, distance, bits), direction="RIGHT")
        bits = graph.elementwise("BitwiseOr", bits, high)
    return population_count(graph, equation, bit_cast(graph, graph.elementwise("BitwiseNot", bits), x.dtype))


@primitive("bitcast_convert_type")
def bitcast_convert_type(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """The same bits as another type; a wider one takes several numbers, the lowest bits first."""
    target = np.dtype(equation.params["new_dtype"])
    if target.itemsize == x.dtype.itemsize:
        return bit_cast(graph, x, target)
    if target.itemsize < x.dtype.itemsize:
        bits = bit_cast(graph, x, np.dtype(f"uint{8 * x.dtype.itemsize}"))
        width = 8 * target.itemsize
        parts = []
        for index in range(x.dtype.itemsize // target.itemsize):
            part = shifted(graph, bits, scalar(graph, width * index, bits), "RIGHT")
            part = graph.elementwise("BitwiseAnd", part, scalar(graph, (1 << width) - 1, bits))
            parts.append(graph.reshape(graph.cast(part, f"uint{width}"), (*x.shape, 1)))
        joined = graph.op("Concat", parts, (*x.shape, len(parts)), parts[0].dtype, axis=len(x.shape))
        return bit_cast(graph, joined, target)
    wide = np.dtype(f"uint{8 * target.itemsize}")
    bits = graph.cast(bit_cast(graph, x, np.dtype(f"uint{8 * x.dtype.itemsize}")), wide)
    distances = np.arange(x.shape[-1], dtype=wide) * (8 * x.dtype.itemsize)
    moved = graph.cast(shifted(graph, bits, graph.constant(distances), "LEFT"), np.int64)
    axes = graph.vector([len(x.shape) - 1])
    # The shifted numbers have no bit in common, so that their sum modulo 2^64 is their union.
    union = graph.typed("ReduceSum", [moved, axes], x.shape[:-1], keepdims=0)
    return bit_cast(graph, graph.cast(union, wide), target)


def bit_cast(graph: Graph, x: Tensor, dtype: np.dtype) -> Tensor:
    """Return the same bits as another type of equal width."""
    if x.dtype == dtype:
        return x
    if x.dtype.kind in "iu" and dtype.kind in "iu":
        return graph.cast(x, dtype)
    return graph.elementwise("BitCast", x, dtype=dtype, to=dtype.name)


def ordered_bits(graph: Graph, x: Tensor) -> Tensor:
    """Return signed integers in the order of floating-point numbers, -0 below 0 and NaN above all.

    Args:
        graph: under construction.
        x: floating-point numbers.
    """
    integer = np.dtype(f"int{8 * x.dtype.itemsize}")
    bits = bit_cast(graph, x, integer)
    negative = graph.elementwise("Less", bits, scalar(graph, 0, bits), dtype=bool)
    # Negative numbers with larger bit patterns are smaller.
    flipped = graph.elementwise("BitwiseXor", bits, scalar(graph, np.iinfo(integer).max, bits))
    return graph.elementwise("Where", negative, flipped, bits)


@primitive(*_TOTAL, "eq_to")
def total_order(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """The order of IEEE 754 in which -0 is below 0 and NaN is above all; of other types the plain order."""
    operator = _TOTAL.get(equation.name, "Equal")
    if x.dtype.kind != "f":
        return graph.elementwise(operator, x, y, dtype=bool)
    return graph.elementwise(operator, ordered_bits(graph, x), ordered_bits(graph, y), dtype=bool)


@primitive("convert_element_type")
def convert_element_type(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Conversion to another type; to integers toward zero, clipped to their range, with 0 for NaN."""
    target = np.dtype(equation.params["new_dtype"])
    if target.kind == "b" and x.dtype.kind != "b":
        return graph.elementwise("Not", graph.elementwise("Equal", x, scalar(graph, 0, x), dtype=bool))
    if x.dtype.kind != "f" or target.kind not in "iu":
        return graph.cast(x, target)
    limits = np.iinfo(target)
    exact = graph.cast(x, np.float64)
    is_number = graph.elementwise("Equal", exact, exact, dtype=bool)
    exact = graph.elementwise("Where", is_number, exact, graph.constant(0.0, np.float64))
    if target.itemsize < 8:
        low, high = (graph.constant(float(limit), np.float64) for limit in (limits.min, limits.max))
        return graph.cast(graph.elementwise("Clip", exact, low, high), target)
    # The largest double below the limit, which has no double of its own.
    top = np.nextafter(float(limits.max), 0.0)
    low, high = graph.constant(float(limits.min), np.float64), graph.constant(top, np.float64)
    inside = graph.cast(graph.elementwise("Clip", exact, low, high), target)
    beyond = graph.elementwise("Greater", exact, high, dtype=bool)
    return choose(graph, beyond, graph.constant(limits.max, target), inside)


@primitive("nextafter")
def next_after(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """The neighbor of ``x`` toward ``y``, by its bits (positive numbers have the order of their bit patterns)."""

    def neighbor(x: Any, y: Any) -> Any:

        integer = jnp.dtype(f"int{8 * x.dtype.itemsize}")
        bits = lax.bitcast_convert_type(x, integer)
        away = (y > x) == (x > 0)
        moved = lax.bitcast_convert_type(bits + jnp.where(away, 1, -1).astype(integer), x.dtype)
        least = lax.bitcast_convert_type(jnp.ones_like(bits), x.dtype)
        moved = jnp.where(x == 0, jnp.where(y > 0, least, -least), moved)
        return jnp.where(jnp.isnan(x) | jnp.isnan(y), x + y, jnp.where(x == y, y, moved))

    return inline(graph, neighbor, x, y)[0]


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
