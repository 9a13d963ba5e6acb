"""Replacements of gathers and scatters by comparisons of indices and sums over masks.

Their cost is the number of indices times the number of elements along the indexed axes. An element that is not finite
makes everything that is read from its array NaN, since 0 times infinity is NaN. Where an element is set several times,
the last update counts: unless indices are constants, or distinct for certain, each pair of them is compared.
"""

import math

import numpy as np

from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.targets.products import ones
from simkit.export.targets.registry import replaces

type Inputs = list[Tensor]
type Shape = tuple[int, ...]


@replaces("GatherND", "Reshape", "Mul", "ReduceSum", "Gather")
def gather_several(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, batch_dims: int = 0) -> Tensor | None:
    """A Gather of the rows of the flattened array."""
    x, indices = inputs
    if batch_dims:
        return None
    depth = indices.shape[-1]
    flat = _flat_indices(graph, indices, x.shape[:depth])
    table = graph.reshape(x, (math.prod(x.shape[:depth]), *x.shape[depth:]))
    return graph.reshape(graph.op("Gather", [table, flat], (flat.shape[0], *x.shape[depth:]), dtype, axis=0), shape)


@replaces("Gather", "Equal", "Cast", "MatMul", "Transpose", "Reshape", finite=True)
def gather(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, axis: int = 0) -> Tensor:
    """A product with the matrix that has a one in each row, in the column of the index."""
    x, indices = inputs
    axis %= len(x.shape)
    count, size = math.prod(indices.shape), x.shape[axis]
    if dtype.kind == "b":
        numbers = gather(graph, [graph.cast(x, np.float32), indices], shape, np.dtype(np.float32), axis)
        return graph.cast(numbers, bool)
    mask = graph.cast(_mask(graph, graph.reshape(indices, (count, 1)), size), dtype)
    order = [axis, *(each for each in range(len(x.shape)) if each != axis)]
    rest = [x.shape[each] for each in order[1:]]
    table = graph.reshape(graph.transpose(x, order), (size, math.prod(rest)))
    rows = graph.reshape(graph.typed("MatMul", [mask, table], (count, math.prod(rest))), (*indices.shape, *rest))
    dims, before = len(indices.shape), axis
    back = [*range(dims, dims + before), *range(dims), *range(dims + before, dims + len(rest))]
    return graph.transpose(rows, back)


@replaces("GatherElements", "Equal", "Cast", "Mul", "ReduceSum", "Reshape", finite=True)
def gather_elements(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, axis: int = 0) -> Tensor:
    """A sum of products with a mask along the axis."""
    x, indices = inputs
    axis %= len(x.shape)
    if dtype.kind == "b":
        numbers = gather_elements(graph, [graph.cast(x, np.float32), indices], shape, np.dtype(np.float32), axis)
        return graph.cast(numbers, bool)
    size, last = x.shape[axis], len(shape)
    mask = graph.cast(_mask(graph, graph.reshape(indices, (*shape, 1)), size), dtype)
    # The axis is moved to the end, with size 1 in its place: (..., 1, ..., size).
    order = [*(each for each in range(last) if each != axis), axis]
    spread = [1 if each == axis else x.shape[each] for each in range(last)]
    elements = graph.reshape(graph.transpose(x, order), (*spread, size))
    masked = graph.elementwise("Mul", mask, elements)
    return graph.typed("ReduceSum", [masked, graph.vector([last])], shape, keepdims=0)


_SCATTERING = ("Equal", "Cast", "MatMul", "Mul", "Add", "Sub", "Reshape", "Transpose")


@replaces("ScatterElements", *_SCATTERING, finite=True)
def scatter_distinct_elements(
    graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, axis: int = 0, reduction: str = "none"
) -> Tensor | None:
    """Sums over masks, for vectors: updates that are added, or set at indices that are constants or distinct."""
    if reduction == "none" and not _has_known_order(inputs[1], shape[0]):
        return None
    return scatter_elements(graph, inputs, shape, dtype, axis, reduction)


@replaces("ScatterElements", "Less", *_SCATTERING, finite=True)
def scatter_elements(
    graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, axis: int = 0, reduction: str = "none"
) -> Tensor | None:
    """Sums over masks, for vectors: updates that are added, or of which the last one is set."""
    x, indices, updates = inputs
    if len(shape) != 1 or reduction not in ("none", "add") or dtype.kind == "b":
        return None
    return _scattered(graph, x, indices, updates, reduction)


@replaces("ScatterND", *_SCATTERING, "ReduceSum", finite=True)
def scatter_distinct(
    graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, reduction: str = "none"
) -> Tensor | None:
    """Sums over masks of the rows of the flattened array: added, or set at indices that are constants."""
    if reduction == "none" and inputs[1].value is None and math.prod(inputs[1].shape[:-1]) > 1:
        return None
    return scatter_several(graph, inputs, shape, dtype, reduction)


@replaces("ScatterND", "Less", *_SCATTERING, "ReduceSum", finite=True)
def scatter_several(
    graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, reduction: str = "none"
) -> Tensor | None:
    """Sums over masks of the rows of the flattened array: added, or set to the last update."""
    x, indices, updates = inputs
    if reduction not in ("none", "add") or dtype.kind == "b":
        return None
    depth = indices.shape[-1]
    flat = _flat_indices(graph, indices, shape[:depth])
    size, width = math.prod(shape[:depth]), math.prod(shape[depth:])
    table, rows = graph.reshape(x, (size, width)), graph.reshape(updates, (flat.shape[0], width))
    return graph.reshape(_scattered(graph, table, flat, rows, reduction), shape)


def _scattered(graph: Graph, x: Tensor, indices: Tensor, updates: Tensor, reduction: str) -> Tensor:
    """Return ``x`` with updates added to its rows, or set in them.

    Args:
        graph: under construction.
        x: (rows,) or (rows, width).
        indices: row of each update, (updates,).
        updates: (updates,) or (updates, width).
        reduction: ``"add"`` or ``"none"``, with which the last update of a row is set.
    """
    count, size = indices.shape[0], x.shape[0]
    width = math.prod(x.shape[1:])
    mask = graph.cast(_mask(graph, graph.reshape(indices, (count, 1)), size), x.dtype)
    if reduction == "none" and not _are_distinct(indices, size):
        last = graph.cast(_are_last(graph, indices, size), x.dtype)
        mask = graph.elementwise("Mul", mask, graph.reshape(last, (count, 1)))
    spread = graph.transpose(mask, (1, 0))
    added = graph.typed("MatMul", [spread, graph.reshape(updates, (count, width))], (size, width))
    added = graph.reshape(added, x.shape)
    if reduction == "add":
        return graph.elementwise("Add", x, added)
    written = graph.typed("MatMul", [spread, ones(graph, (count, 1), x.dtype)], (size, 1))
    rest = graph.elementwise("Sub", graph.constant(1, x.dtype), written)
    kept = graph.elementwise("Mul", x, graph.reshape(rest, (size, *(1,) * (len(x.shape) - 1))))
    return graph.elementwise("Add", kept, added)


def _has_known_order(indices: Tensor, size: int) -> bool:
    """Return whether no update has to be compared with later ones when the model runs."""
    return indices.value is not None or _are_distinct(indices, size)


def _are_distinct(indices: Tensor, size: int) -> bool:
    """Return whether indices of rows differ from each other for certain: constants, or these moved by one number."""
    if math.prod(indices.shape) < 2:
        return True
    if indices.value is not None:
        return len(np.unique(indices.value % size)) == indices.value.size
    if indices.maker is None:
        return False
    inputs = [tensor for tensor in indices.maker.inputs if tensor is not None]
    if indices.maker.operator == "Reshape":
        return _are_distinct(inputs[0], size)
    if indices.maker.operator != "Add":
        return False
    one, other = inputs if math.prod(inputs[0].shape) == 1 else inputs[::-1]
    return math.prod(one.shape) == 1 and _are_distinct(other, size)


def _are_last(graph: Graph, indices: Tensor, size: int) -> Tensor:
    """Return whether no later update has the same index, bool (updates,)."""
    if indices.value is not None:
        places = (indices.value % size).tolist()
        final = {place: number for number, place in enumerate(places)}
        return graph.known(np.array([final[place] == number for number, place in enumerate(places)]))
    count = indices.shape[0]
    column, row = (graph.reshape(indices, shape) for shape in ((count, 1), (1, count)))
    # Compared when the model runs, since a constant triangle would be as large as the mask.
    order = [graph.known(np.arange(count).reshape(shape)) for shape in ((count, 1), (1, count))]
    factors = graph.elementwise("Equal", column, row, dtype=bool), graph.elementwise("Less", *order, dtype=bool)
    overwritten = graph.elementwise("Mul", *(graph.cast(each, np.float32) for each in factors))
    number = graph.typed("MatMul", [overwritten, ones(graph, (count, 1), np.dtype(np.float32))], (count, 1))
    return graph.reshape(graph.elementwise("Equal", number, graph.constant(0, np.float32), dtype=bool), (count,))


def _mask(graph: Graph, indices: Tensor, size: int) -> Tensor:
    """Return whether indices (..., 1) equal 0, 1, ..., bool (..., size)."""
    if indices.value is not None:
        return graph.constant((indices.value % size) == np.arange(size))
    row = graph.constant(np.arange(size, dtype=indices.dtype))
    return graph.elementwise("Equal", indices, row, dtype=bool)


def _flat_indices(graph: Graph, indices: Tensor, sizes: Shape) -> Tensor:
    """Return indices (..., axes) along several axes as indices of the flattened axes, int64 (n,)."""
    strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    count = math.prod(indices.shape[:-1])
    flat = graph.reshape(graph.cast(indices, np.int64), (count, len(sizes)))
    weighted = graph.elementwise("Mul", flat, graph.constant(np.asarray(strides, np.int64)))
    return graph.typed("ReduceSum", [weighted, graph.vector([1])], (count,), keepdims=0)
