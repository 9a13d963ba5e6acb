"""Shifts, bit counts, conversions between types, and the bit patterns of numbers."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from simkit.export.onnx.arithmetic import powers_of_two, scalar
from simkit.export.onnx.comparisons import choose
from simkit.export.onnx.convert import inline
from simkit.export.onnx.equations import Equation
from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.onnx.registry import primitive

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
    known = (distance.narrow or distance).value
    if known is not None and (known < width).all():
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
