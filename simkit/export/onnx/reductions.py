"""Reductions, cumulative operations and sorting."""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from simkit.export.onnx.arithmetic import choose, ordered_bits
from simkit.export.onnx.convert import inline
from simkit.export.onnx.elementary import formula
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.indexing import concatenated, sliced
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.tracing import Equation

_REDUCED = {
    "reduce_sum": "ReduceSum",
    "reduce_prod": "ReduceProd",
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
}
_LOWEST = int(np.iinfo(np.int64).min)
_LOGICAL = {"reduce_and": "ReduceMin", "reduce_or": "ReduceMax"}
# Longest sum of floats in one node: onnxruntime adds one number after the other, which in single precision loses three
# digits over a million; XLA adds in parts.
LONGEST_SUM = 1024


def _axes(equation: Equation) -> list[int]:
    return [int(axis) for axis in equation.params["axes"]]


@primitive(*_REDUCED)
def reduce(graph: Graph, equation: Equation, x: Tensor, *_: Tensor) -> Tensor:
    """Sums, products and extremes over axes; an extreme of numbers and NaN is NaN."""
    operator, axes, shape = _REDUCED[equation.name], _axes(equation), equation.out.shape
    extreme = operator in ("ReduceMax", "ReduceMin")
    if all(x.shape[axis] == 1 for axis in axes):
        return graph.reshape(x, shape)
    if 0 in x.shape:
        empty = {"ReduceSum": 0, "ReduceProd": 1}.get(operator)
        value = _limit(x.dtype, operator == "ReduceMin") if empty is None else empty
        return graph.expand(graph.constant(value, x.dtype), shape)
    if not extreme and x.dtype.kind in "iu":
        # ReduceSum and ReduceProd of onnxruntime accumulate in floating point.
        if operator == "ReduceSum":
            return inline(graph, summed, x, axes=tuple(axes))[0]
        return inline(graph, halved, x, combine=jnp.multiply, axes=tuple(axes), empty=1)[0]
    if extreme and x.dtype == np.uint64:
        result = reduce(graph, equation, ordered_integers(graph, x))
        return graph.cast(graph.elementwise("BitwiseXor", result, _LOWEST), x.dtype)
    if operator == "ReduceSum" and x.dtype.itemsize < 8 and math.prod(x.shape[axis] for axis in axes) > LONGEST_SUM:
        for axis in sorted(axes, reverse=True):
            x = _sum_in_parts(graph, x, axis)
        return x
    result = graph.typed(operator, [x, graph.vector(axes)], shape, keepdims=0)
    if extreme and x.dtype.kind == "f":
        nan = graph.typed("ReduceMax", [graph.elementwise("IsNaN", x), graph.vector(axes)], shape, keepdims=0)
        return graph.elementwise("Where", nan, np.nan, result)
    return result


def _sum_in_parts(graph: Graph, x: Tensor, axis: int) -> Tensor:
    """Return the sum along an axis, by sums of at most `LONGEST_SUM` elements and sums of these."""
    before, size, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    if size <= LONGEST_SUM:
        return graph.typed("ReduceSum", [x, graph.vector([axis])], (*before, *after), keepdims=0)
    part = LONGEST_SUM // 2
    count = size // part
    start, end = [0] * len(x.shape), list(x.shape)
    start[axis] = end[axis] = count * part
    whole = graph.reshape(sliced(graph, x, [0] * len(start), end), (*before, count, part, *after))
    sums = _sum_in_parts(graph, whole, axis + 1)
    rest = sliced(graph, x, start, list(x.shape))
    return _sum_in_parts(graph, concatenated(graph, [sums, rest], axis), axis)


@primitive(*_LOGICAL)
def reduce_logical(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """All or any over axes; bitwise for integers."""
    axes, shape = _axes(equation), equation.out.shape
    if all(x.shape[axis] == 1 for axis in axes):
        return graph.reshape(x, shape)
    if x.dtype != bool:
        combine, empty = (jnp.bitwise_and, -1) if equation.name.endswith("and") else (jnp.bitwise_or, 0)
        return inline(graph, halved, x, combine=combine, axes=tuple(axes), empty=empty)[0]
    if 0 in x.shape:
        return graph.expand(graph.constant(equation.name == "reduce_and"), shape)
    return graph.typed(_LOGICAL[equation.name], [x, graph.vector(axes)], shape, keepdims=0)


def any_of(graph: Graph, x: Tensor) -> Tensor:
    """Return whether any element of a bool array is true, as a scalar.

    Args:
        graph: under construction.
        x: bool.
    """
    if 0 in x.shape:
        return graph.constant(False)
    if math.prod(x.shape) == 1:
        return graph.reshape(x, ())
    return graph.typed("ReduceMax", [x, graph.vector(range(len(x.shape)))], (), keepdims=0)


@primitive("reduce_xor")
def reduce_xor(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """The parity of each bit."""
    return inline(graph, halved, x, combine=jnp.bitwise_xor, axes=tuple(_axes(equation)), empty=0)[0]


def summed(x: Any, *, axes: tuple[int, ...]) -> Any:
    """Return the sum of integers over axes, modulo 2 to the power of their bits, as a product with ones."""
    others = [size for axis, size in enumerate(x.shape) if axis not in axes]
    flat = jnp.moveaxis(x, axes, range(-len(axes), 0)).reshape(math.prod(others), -1)
    return (flat @ np.ones((flat.shape[1], 1), x.dtype)).reshape(others)


def halved(x: Any, *, combine: Callable[..., Any], axes: tuple[int, ...], empty: int) -> Any:
    """Return a reduction over axes, by a function of two halves until one element is left."""
    others = [size for axis, size in enumerate(x.shape) if axis not in axes]
    x = jnp.moveaxis(x, axes, range(len(axes))).reshape(-1, *others)
    if not len(x):
        return jnp.full(others, np.asarray(empty).astype(x.dtype))
    while len(x) > 1:
        half = len(x) // 2
        x = jnp.concatenate([combine(x[:half], x[half : 2 * half]), x[2 * half :]])
    return x[0]


@primitive("argmax", "argmin")
def index_of_extreme(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """The index of the first largest or smallest element, or of the first NaN if there is one."""
    (axis,) = _axes(equation)
    operator = "ArgMax" if equation.name == "argmax" else "ArgMin"
    shape = equation.out.shape
    if x.dtype == np.uint64:
        x = ordered_integers(graph, x)
    at = {"axis": axis, "keepdims": 0, "select_last_index": 0}
    result = graph.typed(operator, [x], shape, np.int64, **at)
    if x.dtype.kind == "f":
        nan = graph.elementwise("IsNaN", x)
        first = graph.typed("ArgMax", [nan], shape, np.int64, **at)
        any_nan = graph.typed("ReduceMax", [nan, graph.vector([axis])], shape, keepdims=0)
        result = choose(graph, any_nan, first, result)
    return graph.cast(result, equation.params["index_dtype"])


@primitive("cumsum", "cumprod")
def cumulative_sum(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Cumulative sums and products along an axis."""
    operator = "CumSum" if equation.name == "cumsum" else "CumProd"
    axis, backward = equation.params["axis"], int(equation.params["reverse"])
    if 0 in x.shape:
        return x
    return graph.typed(operator, [x, graph.constant(np.int64(axis))], x.shape, reverse=backward)


for _name, _combine in {"cummax": jnp.maximum, "cummin": jnp.minimum, "cumlogsumexp": jnp.logaddexp}.items():

    @formula(_name, elementwise=False)
    def cumulative(x: Any, *, axis: int, reverse: bool, combine: Callable[..., Any] = _combine) -> Any:
        """The largest or the smallest element so far, or ``log(cumsum(exp(x)))`` without overflow."""
        return lax.associative_scan(combine, x, axis=axis, reverse=reverse)


def _limit(dtype: np.dtype, smallest: bool) -> object:
    """Return the identity of a minimum (``smallest``), the largest number of the type, or that of a maximum."""
    if dtype.kind == "f":
        return np.inf if smallest else -np.inf
    if dtype.kind == "b":
        return smallest
    return np.iinfo(dtype).max if smallest else np.iinfo(dtype).min


def ordered_integers(graph: Graph, x: Tensor) -> Tensor:
    """Return uint64, which no kernel compares, as int64 in the same order: with its highest bit flipped."""
    return graph.elementwise("BitwiseXor", graph.cast(x, np.int64), _LOWEST)


def sortable(graph: Graph, x: Tensor) -> Tensor:
    """Return signed integers in JAX's order of elements: -0 equals 0, and every NaN is last.

    Args:
        graph: under construction.
        x: keys to sort by.
    """
    if x.dtype == np.uint64:
        return ordered_integers(graph, x)
    if x.dtype.name in ("float16", "bfloat16"):
        x = graph.cast(x, np.float32)
    if x.dtype.kind != "f":
        return graph.cast(x, np.int64 if x.dtype.name in ("uint32", "int64") else np.int32)
    x = graph.elementwise("Where", graph.elementwise("Equal", x, 0), 0, x)
    x = graph.elementwise("Where", graph.elementwise("IsNaN", x), np.nan, x)
    return ordered_bits(graph, x)


def order_of(graph: Graph, keys: Tensor, axis: int) -> Tensor:
    """Return the indices that sort integers in ascending order, stable, int64 of the same shape.

    Args:
        graph: under construction.
        keys: integers.
        axis: to sort along.
    """
    size = graph.vector([keys.shape[axis]])
    outputs = [(keys.shape, keys.dtype), (keys.shape, np.int64)]
    return graph.node("TopK", [keys, size], outputs, axis=axis, largest=0, sorted=1)[1]


def taken(graph: Graph, x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Return elements by their indices along an axis, as ``numpy.take_along_axis``."""
    if len(x.shape) == 1:
        return graph.op("Gather", [x, indices], indices.shape, x.dtype, axis=0)
    return graph.op("GatherElements", [x, indices], indices.shape, x.dtype, axis=axis)


@primitive("sort")
def sort(graph: Graph, equation: Equation, *operands: Tensor) -> list[Tensor]:
    """All operands sorted by the first ones, the keys: a stable sort by each key, from the last to the first."""
    axis, count = equation.params["dimension"], equation.params["num_keys"]
    if 0 in operands[0].shape or operands[0].shape[axis] == 1:
        return list(operands)
    order = None
    for key in reversed(operands[:count]):
        values = sortable(graph, key)
        if order is not None:
            values = taken(graph, values, order, axis)
        indices = order_of(graph, values, axis)
        order = indices if order is None else taken(graph, order, indices, axis)
    assert order is not None
    return [taken(graph, operand, order, axis) for operand in operands]


@primitive("top_k")
def top_k(graph: Graph, equation: Equation, x: Tensor) -> list[Tensor]:
    """The largest elements, in descending order, and their indices."""
    count, axis = equation.params["k"], equation.params.get("axis", len(x.shape) - 1)
    keys = sortable(graph, x)
    shape = equation.out.shape
    outputs = [(shape, keys.dtype), (shape, np.int64)]
    indices = graph.node("TopK", [keys, graph.vector([count])], outputs, axis=axis, largest=1, sorted=1)[1]
    return [taken(graph, x, indices, axis), graph.cast(indices, equation.outputs[1].dtype)]
