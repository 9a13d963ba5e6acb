"""Bits of integers and numbers, and random keys."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from simkit.export.onnx import tracing
from simkit.export.onnx.arithmetic import choose, scalar
from simkit.export.onnx.convert import Value, inline, joined, real, run, split
from simkit.export.onnx.elementary import formula
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.tracing import SHORT, Aval, Equation

_TOTAL = {"lt_to": "Less", "le_to": "LessOrEqual"}


_DIRECTIONS = {"shift_left": "LEFT", "shift_right_logical": "RIGHT"}


@primitive(*_DIRECTIONS)
def shift(graph: Graph, equation: Equation, x: Tensor, distance: Tensor) -> Tensor:
    """``x << distance`` and ``x >> distance`` with zeros moving in; 0 where the distance is at least the width."""
    width, kind, direction = 8 * x.dtype.itemsize, x.dtype, _DIRECTIONS[equation.name]
    x, distance = (bit_cast(graph, each, np.dtype(f"uint{width}")) for each in (x, distance))
    bits = (distance.narrow or distance).value
    if bits is not None and (bits < width).all():
        return bit_cast(graph, graph.elementwise("BitShift", x, distance, direction=direction), kind)
    inside = graph.elementwise("Less", distance, scalar(graph, width, distance), dtype=bool)
    safe = graph.elementwise("Where", inside, distance, scalar(graph, 0, distance))
    result = graph.elementwise("BitShift", x, safe, direction=direction)
    return bit_cast(graph, graph.elementwise("Where", inside, result, scalar(graph, 0, result)), kind)


@formula("shift_right_arithmetic")
def shift_right_arithmetic(x: Any, distance: Any) -> Any:
    """``x >> distance`` with copies of the highest bit moving in: ``~(~x >> distance)`` where it is set."""
    is_set = x.astype(f"int{8 * x.dtype.itemsize}") < 0
    result = lax.shift_right_logical(jnp.where(is_set, ~x, x), distance)
    return jnp.where(is_set, ~result, result)


@formula("population_count")
def population_count(x: Any) -> Any:
    """Number of set bits, summed in pairs, fours and eights (Warren, Hacker's Delight, 2nd edition, section 5-1)."""
    width = 8 * x.dtype.itemsize
    count, distance = x.astype(f"uint{width}"), 1
    while distance < width:
        mask = np.asarray(sum(((1 << distance) - 1) << bit for bit in range(0, width, 2 * distance)), count.dtype)
        count, distance = (count & mask) + ((count >> distance) & mask), 2 * distance
    return count.astype(x.dtype)


@formula("clz")
def leading_zeros(x: Any) -> Any:
    """Number of zero bits above the highest set bit."""
    width = 8 * x.dtype.itemsize
    bits, distance = x.astype(f"uint{width}"), 1
    while distance < width:
        bits, distance = bits | (bits >> distance), 2 * distance
    return lax.population_count(~bits).astype(x.dtype)


@primitive("bitcast_convert_type")
def bitcast_convert_type(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """The same bits as another type; a wider one takes several numbers, the lowest bits first."""
    x = graph.cast(x, SHORT) if equation.inputs[0].short else x
    target = SHORT if equation.out.short else np.dtype(equation.params["new_dtype"])
    bits, size = bit_cast(graph, x, np.dtype(f"uint{8 * x.dtype.itemsize}")), x.dtype.itemsize
    if target.itemsize < size:

        def parted(bits: Any) -> Any:
            shifts = np.arange(size // target.itemsize, dtype=bits.dtype) * (8 * target.itemsize)
            return (bits[..., None] >> shifts).astype(f"uint{8 * target.itemsize}")

        bits = inline(graph, parted, bits)[0]
    elif target.itemsize > size:

        def united(bits: Any) -> Any:
            # The shifted numbers have no bit in common, so that their sum is their union.
            wide = bits.astype(f"uint{8 * target.itemsize}")
            return (wide << (np.arange(wide.shape[-1], dtype=wide.dtype) * (8 * size))).sum(-1, dtype=wide.dtype)

        bits = inline(graph, united, bits)[0]
    return graph.cast(bit_cast(graph, bits, target), equation.out.dtype if equation.out.short else target)


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
    """The neighbor of ``x`` toward ``y``; numbers of bfloat16 are those of float32 whose last 16 bits are zero."""
    return inline(graph, neighbor, x, y, step=1 << 16 if equation.out.short else 1)[0]


def neighbor(x: Any, y: Any, *, step: int) -> Any:
    """Return ``x`` moved toward ``y`` by its bits (positive numbers have the order of their bit patterns)."""
    integer = jnp.dtype(f"int{8 * x.dtype.itemsize}")
    bits = lax.bitcast_convert_type(x, integer)
    away = (y > x) == (x > 0)
    moved = lax.bitcast_convert_type(bits + jnp.where(away, step, -step).astype(integer), x.dtype)
    least = lax.bitcast_convert_type(jnp.full_like(bits, step), x.dtype)
    moved = jnp.where(x == 0, jnp.where(y > 0, least, -least), moved)
    return jnp.where(jnp.isnan(x) | jnp.isnan(y), x + y, jnp.where(x == y, y, moved))


@primitive("random_wrap", whole=True)
def random_wrap(graph: Graph, equation: Equation, data: Value) -> list[Value]:
    """Keys from their words."""
    return [keys_of(graph, data.parts[0], equation.params["impl"])]


@primitive("random_unwrap", whole=True)
def random_unwrap(graph: Graph, equation: Equation, keys: Value) -> list[Value]:
    """The words of keys."""
    return [real(joined(graph, keys))]


@primitive("random_bits", "random_split", "random_fold_in", "random_seed", whole=True)
def random(graph: Graph, equation: Equation, *values: Value) -> list[Value]:
    """Bits or keys derived from keys, and keys from seeds."""
    generator = equation.params.get("impl") or next(value.key for value in values if value.key is not None)
    shape = np.broadcast_shapes(*(aval.shape for aval in equation.inputs))
    wide = [Value(tuple(graph.expand(part, shape) for part in value.parts), value.key) for value in values]
    whole = [real(joined(graph, value)) for value in wide]
    (result,) = run(graph, tracing.random_program(equation, generator), whole)
    if equation.out.key is None:
        return [result]
    return [keys_of(graph, result.parts[0], generator)]


def keys_of(graph: Graph, words: Tensor, generator: Any) -> Value:
    """Return keys from their words, uint32 ``(..., words)``."""
    return split(graph, words, Aval(words.shape[:-1], words.dtype, generator))


@primitive("iota_2x32_shape", whole=True)
def iota_2x32_shape(graph: Graph, equation: Equation) -> list[Value]:
    """The flat index of each element, its high and its low 32 bits."""
    shape = equation.params["shape"]
    number = np.arange(int(np.prod(shape)), dtype=np.uint64).reshape(shape)
    return [real(graph.constant((part & 0xFFFFFFFF).astype(np.uint32))) for part in (number >> np.uint64(32), number)]
