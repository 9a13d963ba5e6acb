"""Scatters in all their modes and reductions, and dynamic update slices."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from simkit.errors import UserError
from simkit.export.onnx.comparisons import choose
from simkit.export.onnx.equations import Equation
from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.onnx.indexing import Windows, clipped_starts, rows
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.shapes import concatenated, sliced
from simkit.export.onnx.tracing import applies_function

_REDUCTIONS = {
    "scatter": "none",
    "scatter-add": "add",
    "scatter-sub": "add",
    "scatter-mul": "mul",
    "scatter-min": "min",
    "scatter-max": "max",
}


_LINEAR = ("scatter", "scatter-add", "scatter-sub")


def _spellings(names: Iterable[str]) -> list[str]:
    return [name.replace("-", separator) for name in names for separator in "-_"]


@primitive(*_spellings(name for name in _REDUCTIONS if name not in _LINEAR))
def scatter_other(graph: Graph, equation: Equation, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Windows of real numbers multiplied with updates, or the larger or smaller of both."""
    return scatter(graph, equation, x, indices, updates)


@primitive(*_spellings(_LINEAR), each=True)
def scatter(graph: Graph, equation: Equation, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Windows of ``x`` set to updates or combined with them, in the order of the updates.

    Raises:
        UserError: if a function is applied to the windows.
    """
    params = equation.params
    reduction = _REDUCTIONS[equation.name.replace("_", "-")]
    if reduction == "none" and applies_function(equation):
        raise UserError(
            f"{graph.origin}: a scatter that applies a function has no ONNX form; write x.at[i].set(f(x[i])) in place "
            "of x.at[i].apply(f)"
        )
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
    row, inside = rows(graph, windows, indices, clip=clips)
    batch, whole, addressed = indices.shape[:-1], windows.whole, windows.addressed
    # Updates as (batch..., window in the operand's axes), then with the addressed axes of the window first.
    others = [axis for axis in range(len(updates.shape)) if axis not in window_axes]
    updates = graph.transpose(updates, [*others, *window_axes])
    updates = graph.reshape(updates, (*batch, *windows.sizes))
    updates = graph.transpose(updates, [*range(len(batch)), *(len(batch) + axis for axis in (*addressed, *whole))])
    # Flat index of each element: row times the size of a row, and offset within the row.
    extent = [x.shape[axis] for axis in whole]
    size, length = math.prod(extent), math.prod(x.shape)
    within = np.arange(size).reshape(extent)[tuple(slice(0, windows.sizes[axis]) for axis in whole)]
    element = graph.reshape(row, (*row.shape, *[1] * len(whole)))
    if size > 1:
        element = graph.elementwise("Mul", element, graph.constant(np.int64(size)))
        element = graph.elementwise("Add", element, graph.constant(within.astype(np.int64)))
    element = graph.expand(element, updates.shape)
    order = [*addressed, *whole]
    flat = graph.reshape(graph.transpose(x, order), (length,))
    drops = inside is not None and _may_be_outside(inside)
    if inside is not None and drops:
        kept_updates = graph.reshape(inside, (*batch, *[1] * len(x.shape)))
        # Updates out of bounds are written to one more element, which is cut off.
        element = graph.elementwise("Where", kept_updates, element, graph.constant(np.int64(length)))
        flat = concatenated(graph, [flat, graph.constant(np.zeros(1, x.dtype))], 0)
    count = math.prod(updates.shape)
    inputs = [flat, graph.reshape(element, (count,)), graph.reshape(updates, (count,))]
    result = scattered(graph, inputs, reduction)
    if drops:
        result = sliced(graph, result, [0], [length])
    result = graph.reshape(result, [x.shape[axis] for axis in order])
    back = [order.index(axis) for axis in range(len(order))]
    return graph.transpose(result, back)


def scattered(graph: Graph, inputs: list[Tensor], reduction: str) -> Tensor:
    """Return a vector with elements set or combined, in the order of the updates, by one ScatterElements.

    Args:
        graph: under construction.
        inputs: the vector (n,), indices int64 (m,) and updates (m,).
        reduction: of ScatterElements: ``"none"``, ``"add"``, ``"mul"``, ``"min"`` or ``"max"``.
    """
    x, indices, updates = inputs
    if x.dtype == bool:
        names = {"add": "max", "mul": "min"}
        wide = [graph.cast(x, np.int32), indices, graph.cast(updates, np.int32)]
        return graph.cast(scattered(graph, wide, names.get(reduction, reduction)), bool)
    return graph.typed("ScatterElements", [x, indices, updates], x.shape, axis=0, reduction=reduction)


def _may_be_outside(inside: Tensor) -> bool:
    value = (inside.narrow or inside).value
    return value is None or not value.all()


@primitive("dynamic_update_slice", each=True)
def dynamic_update_slice(graph: Graph, equation: Equation, x: Tensor, update: Tensor, *starts: Tensor) -> Tensor:
    """``x`` with a window replaced: by Concat along one axis, by ScatterElements along several."""
    limits = [n - m for n, m in zip(x.shape, update.shape, strict=True)]
    starts = tuple(clipped_starts(graph, starts, limits))
    axes = [axis for axis, limit in enumerate(limits) if limit]
    if not axes:
        return update
    if 0 in update.shape:
        return x
    if len(axes) == 1:
        return _between(graph, x, update, axes[0], starts[axes[0]])
    strides = [math.prod(x.shape[axis + 1 :]) for axis in range(len(x.shape))]
    within = sum(np.arange(m).reshape(_row(update.shape, a)) * strides[a] for a, m in enumerate(update.shape))
    element: Any = graph.constant(np.asarray(within, np.int64))
    for axis in axes:
        offset = graph.elementwise("Mul", starts[axis], graph.constant(np.int64(strides[axis])))
        element = graph.elementwise("Add", element, offset)
    count, length = math.prod(update.shape), math.prod(x.shape)
    inputs = [graph.reshape(x, (length,)), graph.reshape(element, (count,)), graph.reshape(update, (count,))]
    return graph.reshape(scattered(graph, inputs, "none"), x.shape)


def _between(graph: Graph, x: Tensor, update: Tensor, axis: int, start: Tensor) -> Tensor:
    """Return ``x`` with ``update`` in place of its elements from ``start`` on along an axis."""
    size = update.shape[axis]
    known = start.value
    if known is not None:
        begin, end = int(known), int(known) + size
        lower = [begin if a == axis else n for a, n in enumerate(x.shape)]
        upper = [end if a == axis else 0 for a in range(len(x.shape))]
        parts = [sliced(graph, x, [0] * len(lower), lower), update, sliced(graph, x, upper, x.shape)]
        return concatenated(graph, parts, axis)
    if size == 1:
        index = graph.constant(np.arange(x.shape[axis]).reshape(_row(x.shape, axis)))
        replaced = graph.elementwise("Equal", index, start, dtype=bool)
        return graph.expand(choose(graph, replaced, update, x), x.shape)
    begin = graph.reshape(start, (1,))
    end = graph.elementwise("Add", begin, graph.constant(np.array([size], np.int64)))
    axes = graph.vector([axis])
    shape = list(x.shape)
    shape[axis] = -1  # depends on the start
    before = graph.op("Slice", [x, graph.vector([0]), begin, axes], shape, x.dtype)
    after = graph.op("Slice", [x, end, graph.vector([x.shape[axis]]), axes], shape, x.dtype)
    return graph.op("Concat", [before, update, after], x.shape, x.dtype, axis=axis)


def _row(shape: Sequence[int], axis: int) -> list[int]:
    """Return a shape with size 1 in every other axis."""
    return [n if each == axis else 1 for each, n in enumerate(shape)]
