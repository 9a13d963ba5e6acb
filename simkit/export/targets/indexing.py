"""Replacements of reading and writing at computed places, by comparisons of places and sums over masks.

Their cost is the number of places read or written times the number of elements that they are read from or written to.
What is not finite in an array makes all that is read from it no number: 0 times infinity is none.
"""

import math

import numpy as np

from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.targets.registry import replaces

type Inputs = list[Tensor]
type Shape = tuple[int, ...]


@replaces("GatherND", "Reshape", "Mul", "ReduceSum", "Gather")
def gather_several(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, batch_dims: int = 0) -> Tensor | None:
    """Rows of the flattened array, by one number for each."""
    x, places = inputs
    if batch_dims:
        return None
    depth = places.shape[-1]
    number = _numbers(graph, places, x.shape[:depth])
    table = graph.reshape(x, (math.prod(x.shape[:depth]), *x.shape[depth:]))
    return graph.reshape(graph.op("Gather", [table, number], (number.shape[0], *x.shape[depth:]), dtype, axis=0), shape)


@replaces("Gather", "Equal", "Cast", "MatMul", "Transpose", "Reshape")
def gather(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, axis: int = 0) -> Tensor:
    """A product with the matrix that has a one in each row, at its place."""
    x, places = inputs
    axis %= len(x.shape)
    count, size = math.prod(places.shape), x.shape[axis]
    if dtype.kind == "b":
        numbers = gather(graph, [graph.cast(x, np.float32), places], shape, np.dtype(np.float32), axis)
        return graph.cast(numbers, bool)
    chosen = graph.cast(_same(graph, graph.reshape(places, (count, 1)), size), dtype)
    order = [axis, *(each for each in range(len(x.shape)) if each != axis)]
    rest = [x.shape[each] for each in order[1:]]
    table = graph.reshape(graph.transpose(x, order), (size, math.prod(rest)))
    rows = graph.reshape(graph.typed("MatMul", [chosen, table], (count, math.prod(rest))), (*places.shape, *rest))
    dims, before = len(places.shape), axis
    back = [*range(dims, dims + before), *range(dims), *range(dims + before, dims + len(rest))]
    return graph.transpose(rows, back)


@replaces("GatherElements", "Equal", "Cast", "Mul", "ReduceSum", "Reshape")
def gather_elements(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, axis: int = 0) -> Tensor:
    """A sum over a mask along the axis."""
    x, places = inputs
    axis %= len(x.shape)
    if dtype.kind == "b":
        numbers = gather_elements(graph, [graph.cast(x, np.float32), places], shape, np.dtype(np.float32), axis)
        return graph.cast(numbers, bool)
    size, last = x.shape[axis], len(shape)
    mask = graph.cast(_same(graph, graph.reshape(places, (*shape, 1)), size), dtype)
    # Elements along the axis become the last one: (.., 1, .., size).
    order = [*(each for each in range(last) if each != axis), axis]
    spread = [1 if each == axis else x.shape[each] for each in range(last)]
    read = graph.reshape(graph.transpose(x, order), (*spread, size))
    masked = graph.elementwise("Mul", mask, read)
    return graph.typed("ReduceSum", [masked, graph.vector([last])], shape, keepdims=0)


@replaces("ScatterElements", "Equal", "Cast", "MatMul", "Mul", "Add", "Sub", "Reshape")
def scatter_elements(
    graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, axis: int = 0, reduction: str = "none"
) -> Tensor | None:
    """Sums over masks: of a vector, whose elements are added to, or set at places that differ from each other."""
    x, places, updates = inputs
    if len(shape) != 1 or reduction not in ("none", "add") or dtype.kind == "b":
        return None
    count, size = places.shape[0], shape[0]
    mask = graph.cast(_same(graph, graph.reshape(places, (count, 1)), size), dtype)
    return _scattered(graph, x, mask, updates, reduction)


@replaces("ScatterND", "Equal", "Cast", "MatMul", "Mul", "Add", "Sub", "Reshape", "ReduceSum")
def scatter_several(
    graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, reduction: str = "none"
) -> Tensor | None:
    """Sums over masks of the flattened array, row by row; rows that are set differ from each other."""
    x, places, updates = inputs
    if reduction not in ("none", "add") or dtype.kind == "b":
        return None
    depth = places.shape[-1]
    number = _numbers(graph, places, shape[:depth])
    size, width = math.prod(shape[:depth]), math.prod(shape[depth:])
    mask = graph.cast(_same(graph, graph.reshape(number, (number.shape[0], 1)), size), dtype)
    table, rows = graph.reshape(x, (size, width)), graph.reshape(updates, (number.shape[0], width))
    return graph.reshape(_scattered(graph, table, mask, rows, reduction), shape)


def _scattered(graph: Graph, x: Tensor, mask: Tensor, updates: Tensor, reduction: str) -> Tensor:
    """Return ``x`` with rows added or set, by the mask (updates, rows)."""
    count, size = mask.shape
    width = math.prod(x.shape[1:])
    spread = graph.transpose(mask, (1, 0))
    added = graph.typed("MatMul", [spread, graph.reshape(updates, (count, width))], (size, width))
    added = graph.reshape(added, x.shape)
    if reduction == "add":
        return graph.elementwise("Add", x, added)
    from simkit.export.targets.products import ones

    written = graph.typed("MatMul", [spread, ones(graph, (count, 1), x.dtype)], (size, 1))
    rest = graph.elementwise("Sub", graph.constant(1, x.dtype), written)
    kept = graph.elementwise("Mul", x, graph.reshape(rest, (size, *(1,) * (len(x.shape) - 1))))
    return graph.elementwise("Add", kept, added)


def _same(graph: Graph, places: Tensor, size: int) -> Tensor:
    """Return whether each place, with a last axis of 1, is each number below the size."""
    row = graph.constant(np.arange(size, dtype=places.dtype))
    if places.value is not None:
        return graph.constant((places.value % size) == np.arange(size))
    return graph.elementwise("Equal", places, row, dtype=bool)


def _numbers(graph: Graph, places: Tensor, sizes: Shape) -> Tensor:
    """Return places along several axes as numbers of the flattened array, int64 (n,)."""
    strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    count = math.prod(places.shape[:-1])
    flat = graph.reshape(graph.cast(places, np.int64), (count, len(sizes)))
    weighted = graph.elementwise("Mul", flat, graph.constant(np.asarray(strides, np.int64)))
    return graph.typed("ReduceSum", [weighted, graph.vector([1])], (count,), keepdims=0)
