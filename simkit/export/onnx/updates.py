"""Writing at computed places: scatters in all their modes and combinations, dynamic update slices."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from simkit.export.onnx.comparisons import choose
from simkit.export.onnx.equations import Equation
from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.onnx.indexing import Windows, clipped_starts, rows
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.shapes import joined, sliced

_REDUCTIONS = {
    "scatter": "none",
    "scatter-add": "add",
    "scatter-sub": "add",
    "scatter-mul": "mul",
    "scatter-min": "min",
    "scatter-max": "max",
}


@primitive(*(name.replace("-", separator) for name in _REDUCTIONS for separator in "-_"), each=True)
def scatter(graph: Graph, equation: Equation, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Windows of ``x`` set to updates, or combined with them, one after the other."""
    params = equation.params
    reduction = _REDUCTIONS[equation.name.replace("_", "-")]
    if math.prod(updates.shape) == 0 or math.prod(x.shape) == 0:
        return x
    if equation.name.endswith("sub"):
        updates = graph.elementwise("Neg", updates)
    numbers = params["dimension_numbers"]
    batching = tuple(numbers.operand_batching_dims)
    squeezed = tuple(numbers.inserted_window_dims)
    window_axes = list(numbers.update_window_dims)
    kept = [axis for axis in range(len(x.shape)) if axis not in squeezed and axis not in batching]
    stored = dict(zip(kept, (updates.shape[axis] for axis in window_axes), strict=True))
    windows = Windows(
        x.shape,
        tuple(stored.get(axis, 1) for axis in range(len(x.shape))),
        tuple(numbers.scatter_dims_to_operand_dims),
        batching,
        tuple(numbers.scatter_indices_batching_dims),
        squeezed,
    )
    clips = "CLIP" in str(params["mode"]).upper()
    number, inside = rows(graph, windows, indices, clip=clips)
    batch, whole, addressed = indices.shape[:-1], windows.whole, windows.addressed
    # Updates as (batch..., window in the operand's order), then with the addressed dimensions first.
    others = [axis for axis in range(len(updates.shape)) if axis not in window_axes]
    updates = graph.transpose(updates, [*others, *window_axes])
    updates = graph.reshape(updates, (*batch, *windows.sizes))
    updates = graph.transpose(updates, [*range(len(batch)), *(len(batch) + axis for axis in (*addressed, *whole))])
    # Each element's own number: that of its row, and its place within.
    extent = [x.shape[axis] for axis in whole]
    size, length = math.prod(extent), math.prod(x.shape)
    within = np.arange(size).reshape(extent)[tuple(slice(0, windows.sizes[axis]) for axis in whole)]
    element = graph.reshape(number, (*number.shape, *[1] * len(whole)))
    if size > 1:
        element = graph.elementwise("Mul", element, graph.constant(np.int64(size)))
        element = graph.elementwise("Add", element, graph.constant(within.astype(np.int64)))
    element = graph.expand(element, updates.shape)
    order = [*addressed, *whole]
    flat = graph.reshape(graph.transpose(x, order), (length,))
    dropped = False
    if inside is not None and _some_outside(inside):
        outside = graph.reshape(inside, (*batch, *[1] * len(x.shape)))
        # One element more takes what is dropped.
        element = graph.elementwise("Where", outside, element, graph.constant(np.int64(length)))
        flat = joined(graph, [flat, graph.constant(np.zeros(1, x.dtype))], 0)
        dropped = True
    count = math.prod(updates.shape)
    inputs = [flat, graph.reshape(element, (count,)), graph.reshape(updates, (count,))]
    result = scattered(graph, inputs, reduction)
    if dropped:
        result = sliced(graph, result, [0], [length])
    result = graph.reshape(result, [x.shape[axis] for axis in order])
    back = [order.index(axis) for axis in range(len(order))]
    return graph.transpose(result, back)


def scattered(graph: Graph, inputs: list[Tensor], reduction: str) -> Tensor:
    """Return a vector with elements set or combined; one runtime kernel goes through them in order.

    Args:
        graph: under construction.
        inputs: the vector, int64 places and updates.
        reduction: of ONNX's ScatterElements.
    """
    x, places, updates = inputs
    if x.dtype == bool:
        names = {"add": "max", "mul": "min"}
        wide = [graph.cast(x, np.int32), places, graph.cast(updates, np.int32)]
        return graph.cast(scattered(graph, wide, names.get(reduction, reduction)), bool)
    return graph.typed("ScatterElements", [x, places, updates], x.shape, axis=0, reduction=reduction)


def _some_outside(inside: Tensor) -> bool:
    value = (inside.narrow or inside).value
    return value is None or not value.all()


@primitive("dynamic_update_slice", each=True)
def dynamic_update_slice(graph: Graph, equation: Equation, x: Tensor, update: Tensor, *starts: Tensor) -> Tensor:
    """``x`` with a window replaced, at a computed place: between what is beside it, or by elements."""
    limits = [n - m for n, m in zip(x.shape, update.shape, strict=True)]
    places = clipped_starts(graph, starts, limits)
    axes = [axis for axis, limit in enumerate(limits) if limit]
    if not axes:
        return update
    if 0 in update.shape:
        return x
    if len(axes) == 1:
        return _between(graph, x, update, axes[0], places[axes[0]])
    strides = [math.prod(x.shape[axis + 1 :]) for axis in range(len(x.shape))]
    inside = sum(np.arange(m).reshape(_row(update.shape, a)) * strides[a] for a, m in enumerate(update.shape))
    element: Any = graph.constant(np.asarray(inside, np.int64))
    for axis in axes:
        offset = graph.elementwise("Mul", places[axis], graph.constant(np.int64(strides[axis])))
        element = graph.elementwise("Add", element, offset)
    count, length = math.prod(update.shape), math.prod(x.shape)
    inputs = [graph.reshape(x, (length,)), graph.reshape(element, (count,)), graph.reshape(update, (count,))]
    return graph.reshape(scattered(graph, inputs, "none"), x.shape)


def _between(graph: Graph, x: Tensor, update: Tensor, axis: int, place: Tensor) -> Tensor:
    size = update.shape[axis]
    known = place.value
    if known is not None:
        begin, end = int(known), int(known) + size
        lower = [begin if a == axis else n for a, n in enumerate(x.shape)]
        upper = [end if a == axis else 0 for a in range(len(x.shape))]
        parts = [sliced(graph, x, [0] * len(lower), lower), update, sliced(graph, x, upper, x.shape)]
        return joined(graph, parts, axis)
    # Elements by their place along the axis: those of the window read from the update, the others stay.
    if size == 1:
        row = graph.constant(np.arange(x.shape[axis]).reshape(_row(x.shape, axis)))
        here = graph.elementwise("Equal", row, place, dtype=bool)
        return graph.expand(choose(graph, here, update, x), x.shape)
    begin = graph.reshape(place, (1,))
    end = graph.elementwise("Add", begin, graph.constant(np.array([size], np.int64)))
    axes = graph.vector([axis])
    shape = list(x.shape)
    shape[axis] = -1  # known only when it runs
    before = graph.op("Slice", [x, graph.vector([0]), begin, axes], shape, x.dtype)
    behind = graph.op("Slice", [x, end, graph.vector([x.shape[axis]]), axes], shape, x.dtype)
    return graph.op("Concat", [before, update, behind], x.shape, x.dtype, axis=axis)


def _row(shape: Sequence[int], axis: int) -> list[int]:
    return [n if each == axis else 1 for each, n in enumerate(shape)]
