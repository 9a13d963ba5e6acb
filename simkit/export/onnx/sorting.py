"""Stable sorts by several keys, and the largest elements."""

import numpy as np

from simkit.errors import UserError
from simkit.export.onnx.bits import ordered_bits
from simkit.export.onnx.equations import Equation
from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.onnx.registry import primitive


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
