"""Reductions, cumulative operations and sorting."""

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from simkit.errors import UserError
from simkit.export.onnx.arithmetic import choose, powers_of_two
from simkit.export.onnx.bits import ordered_bits
from simkit.export.onnx.convert import inline
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.shapes import concatenated, reversed_along, sliced
from simkit.export.onnx.tracing import Equation

_REDUCED = {
    "reduce_sum": "ReduceSum",
    "reduce_prod": "ReduceProd",
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
}
_LOGICAL = {"reduce_and": "ReduceMin", "reduce_or": "ReduceMax"}
# Longest sum of floats in one node: onnxruntime adds one number after the other, which in single precision loses three
# digits over a million; XLA adds in parts.
LONGEST_SUM = 1024
_CUMULATIVE = {"cummax": "Max", "cummin": "Min"}


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
        return (
            _by_product(graph, x, axes, shape) if operator == "ReduceSum" else _by_halves(graph, x, axes, "Mul", shape)
        )
    if extreme and x.dtype.name in ("uint16", "int16", "uint32"):
        wide = np.int64 if x.dtype.itemsize == 4 else np.int32
        return graph.cast(
            graph.op(operator, [graph.cast(x, wide), graph.vector(axes)], shape, wide, keepdims=0), x.dtype
        )
    if operator == "ReduceSum" and x.dtype.itemsize < 8 and math.prod(x.shape[axis] for axis in axes) > LONGEST_SUM:
        for axis in sorted(axes, reverse=True):
            x = _sum_in_parts(graph, x, axis)
        return x
    result = graph.typed(operator, [x, graph.vector(axes)], shape, keepdims=0)
    if extreme and x.dtype.kind == "f":
        nan = graph.typed("ReduceMax", [_is_nan(graph, x), graph.vector(axes)], shape, keepdims=0)
        return graph.elementwise("Where", nan, graph.constant(np.nan, x.dtype), result)
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
        return _by_halves(graph, x, axes, "BitwiseAnd" if equation.name.endswith("and") else "BitwiseOr", shape)
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
    name = "Xor" if x.dtype == bool else "BitwiseXor"
    return _by_halves(graph, x, _axes(equation), name, equation.out.shape)


def _flat(graph: Graph, x: Tensor, axes: list[int], shape: tuple[int, ...]) -> Tensor:
    """Return an array of (others, reduced) elements."""
    others = [axis for axis in range(len(x.shape)) if axis not in axes]
    sizes = math.prod(shape), math.prod(x.shape[axis] for axis in axes)
    return graph.reshape(graph.transpose(x, [*others, *axes]), sizes)


def _by_product(graph: Graph, x: Tensor, axes: list[int], shape: tuple[int, ...]) -> Tensor:
    """Return the sum of integers over axes, modulo 2 to the power of their bits, as a product with ones."""
    flat = _flat(graph, x, axes, shape)
    ones = graph.constant(np.ones((flat.shape[1], 1), x.dtype))
    return graph.reshape(graph.typed("MatMul", [flat, ones], (flat.shape[0], 1)), shape)


def _by_halves(graph: Graph, x: Tensor, axes: list[int], operator: str, shape: tuple[int, ...]) -> Tensor:
    """Return a reduction over axes, by the operator on two halves until one element is left."""
    flat = _flat(graph, x, axes, shape)
    count = flat.shape[0]
    while flat.shape[1] > 1:
        size = flat.shape[1]
        half = size // 2
        low, high = sliced(graph, flat, [0, 0], [count, half]), sliced(graph, flat, [0, half], [count, 2 * half])
        rest = sliced(graph, flat, [0, 2 * half], [count, size])
        flat = concatenated(graph, [graph.elementwise(operator, low, high), rest], 1)
    if flat.shape[1] == 0:
        return graph.expand(graph.constant(-1 if operator == "BitwiseAnd" else 0, x.dtype), shape)
    return graph.reshape(flat, shape)


@primitive("argmax", "argmin")
def index_of_extreme(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """The index of the first largest or smallest element, or of the first NaN if there is one."""
    (axis,) = _axes(equation)
    operator = "ArgMax" if equation.name == "argmax" else "ArgMin"
    shape = equation.out.shape
    if x.dtype == np.uint64:
        raise UserError(f"{graph.origin}: {equation.name} of uint64 has no ONNX form; use int64")
    wide = graph.cast(x, np.int64 if x.dtype.kind in "bu" else np.int32 if x.dtype.name == "int16" else x.dtype)
    result = graph.typed(operator, [wide], shape, np.int64, **_at(axis))
    if x.dtype.kind == "f":
        nan = graph.cast(_is_nan(graph, x), np.int32)
        first = graph.op("ArgMax", [nan], shape, np.int64, **_at(axis))
        any_nan = graph.op("ReduceMax", [nan, graph.vector([axis])], shape, np.int32, keepdims=0)
        result = choose(graph, graph.cast(any_nan, bool), first, result)
    return graph.cast(result, equation.params["index_dtype"])


@primitive("cumsum", "cumprod")
def cumulative_sum(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Cumulative sums and products along an axis."""
    operator = "CumSum" if equation.name == "cumsum" else "CumProd"
    axis, backward = equation.params["axis"], int(equation.params["reverse"])
    if 0 in x.shape:
        return x
    return graph.typed(operator, [x, graph.constant(np.int64(axis))], x.shape, reverse=backward)


@primitive(*_CUMULATIVE)
def cumulative_extreme(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Cumulative extremes, over 2, 4, 8, ... elements in turn (Hillis and Steele 1986, doi:10.1145/7902.7903)."""
    return doubled(graph, x, equation, lambda a, b: graph.elementwise(_CUMULATIVE[equation.name], a, b))


@primitive("cumlogsumexp")
def cumulative_log_sum_exp(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """``log(cumsum(exp(x)))`` without overflow, over 2, 4, 8, ... elements in turn."""

    def combine(a: Tensor, b: Tensor) -> Tensor:

        return inline(graph, jnp.logaddexp, a, b)[0]

    return doubled(graph, x, equation, combine)


def doubled(graph: Graph, x: Tensor, equation: Equation, combine: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Return a cumulative reduction by an associative function, combining elements 1, 2, 4, ... apart.

    Args:
        graph: under construction.
        x: to reduce.
        equation: with the axis and the direction.
        combine: ``(earlier, later) -> result``.
    """
    axis, size = equation.params["axis"], x.shape[equation.params["axis"]]
    if equation.params["reverse"]:
        x = reversed_along(graph, x, [axis])

    def part(begin: int, end: int) -> Tensor:
        starts = [begin if a == axis else 0 for a in range(len(x.shape))]
        return sliced(graph, x, starts, [end if a == axis else n for a, n in enumerate(x.shape)])

    for distance in powers_of_two(size):
        x = concatenated(graph, [part(0, distance), combine(part(0, size - distance), part(distance, size))], axis)
    return reversed_along(graph, x, [axis]) if equation.params["reverse"] else x


def _is_nan(graph: Graph, x: Tensor) -> Tensor:
    return graph.elementwise("IsNaN", x, dtype=bool)


def _at(axis: int) -> dict[str, int]:
    return {"axis": axis, "keepdims": 0, "select_last_index": 0}


def _limit(dtype: np.dtype, smallest: bool) -> object:
    """Return the identity of a minimum (``smallest``), the largest number of the type, or that of a maximum."""
    if dtype.kind == "f":
        return np.inf if smallest else -np.inf
    if dtype.kind == "b":
        return smallest
    return np.iinfo(dtype).max if smallest else np.iinfo(dtype).min


def sortable(graph: Graph, x: Tensor) -> Tensor:
    """Return signed integers in JAX's order of elements: -0 equals 0, and every NaN is last.

    Args:
        graph: under construction.
        x: keys to sort by.

    Raises:
        UserError: if the keys are uint64, which no kernel sorts.
    """
    if x.dtype == np.uint64:
        raise UserError(f"{graph.origin}: a sort of uint64 has no ONNX form; sort int64")
    if x.dtype.name in ("float16", "bfloat16"):
        x = graph.cast(x, np.float32)
    if x.dtype.kind != "f":
        return graph.cast(x, np.int64 if x.dtype.name in ("uint32", "int64") else np.int32)
    zero = graph.constant(0, x.dtype)
    x = graph.elementwise("Where", graph.elementwise("Equal", x, zero, dtype=bool), zero, x)
    x = graph.elementwise("Where", graph.elementwise("IsNaN", x, dtype=bool), graph.constant(np.nan, x.dtype), x)
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
