"""Operations on shapes (reshape, slice, concatenate, pad, ...), and primitives that pass values through."""

import math
from typing import Any

import numpy as np

from simkit.export.onnx.convert import Value, constant, parts_of
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.tracing import Equation


@primitive("optimization_barrier", "copy", "copy_p", "name", "stop_gradient", "device_put", "pvary", whole=True)
def passed_through(graph: Graph, equation: Equation, *values: Value) -> list[Value]:
    """The arguments, unchanged."""
    return list(values)


@primitive("platform_index", whole=True)
def platform_index(graph: Graph, equation: Equation) -> list[Value]:
    """Index of the branch for this platform: that for any, or else that for the CPU."""
    platforms = equation.params["platforms"]
    fit = [index for index, names in enumerate(platforms) if names is None or "cpu" in names]
    return [constant(graph, np.int32(next((index for index in fit if platforms[index] is None), fit[0])))]


@primitive("empty", "empty2", whole=True)
def empty(graph: Graph, equation: Equation, *_: Value) -> list[Value]:
    """An array that the program fills before reading; zeros, as in XLA on a CPU."""
    count, dtype = parts_of(equation.out)
    zero = graph.expand(graph.constant(0, dtype), equation.out.shape)
    return [Value((zero,) * count, equation.out.key)]


@primitive("iota")
def iota(graph: Graph, equation: Equation, *_: Tensor) -> Tensor:
    """0, 1, 2, ... along one axis."""
    shape, axis = equation.out.shape, equation.params["dimension"]
    row = [1] * len(shape)
    row[axis] = shape[axis]
    return graph.expand(graph.constant(np.arange(shape[axis]).astype(equation.out.dtype).reshape(row)), shape)


@primitive("broadcast_in_dim", each=True)
def broadcast_in_dim(graph: Graph, equation: Equation, x: Tensor, *_: Tensor) -> Tensor:
    """``x`` with its axes at ``broadcast_dimensions``, repeated along the others."""
    sizes = {int(axis): size for axis, size in zip(equation.params["broadcast_dimensions"], x.shape, strict=True)}
    shape = equation.out.shape
    return graph.expand(graph.reshape(x, [sizes.get(axis, 1) for axis in range(len(shape))]), shape)


@primitive("reshape", "squeeze", "expand_dims", each=True)
def reshape(graph: Graph, equation: Equation, x: Tensor, *_: Tensor) -> Tensor:
    """The same elements in another shape, read in the order of ``dimensions``."""
    order = equation.params.get("dimensions") if equation.name == "reshape" else None
    return graph.reshape(x if order is None else graph.transpose(x, order), equation.out.shape)


@primitive("transpose", each=True)
def transpose(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Axes in another order."""
    return graph.transpose(x, [int(axis) for axis in equation.params["permutation"]])


@primitive("slice", each=True)
def cut(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """A part with fixed bounds."""
    params = equation.params
    return sliced(graph, x, params["start_indices"], params["limit_indices"], params["strides"])


def sliced(graph: Graph, x: Tensor, starts: Any, ends: Any, steps: Any = None) -> Tensor:
    """Return the part from ``starts`` to ``ends`` along every axis.

    Args:
        graph: under construction.
        x: to slice.
        starts: one per axis.
        ends: one per axis, excluded.
        steps: one per axis, positive; ``None`` for 1.
    """
    steps = steps or [1] * len(x.shape)
    axes = [a for a, n in enumerate(x.shape) if (starts[a], ends[a], steps[a]) != (0, n, 1)]
    if not axes:
        return x
    shape = [max(0, math.ceil((end - start) / step)) for start, end, step in zip(starts, ends, steps, strict=True)]
    if x.narrow is not None:
        small = (1,) * (len(x.shape) - len(x.narrow.shape)) + x.narrow.shape
        if all(small[axis] == 1 for axis in axes) and math.prod(shape):
            kept = [1 if n == 1 else m for n, m in zip(small, shape, strict=True)]
            return graph.expand(graph.reshape(x.narrow, kept), shape)
    vectors = [graph.vector([each[axis] for axis in axes]) for each in (starts, ends)]
    vectors += [graph.vector(axes), graph.vector([steps[axis] for axis in axes])]
    return graph.op("Slice", [x, *vectors], shape, x.dtype)


@primitive("rev", each=True)
def reverse(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Elements in reverse order along axes."""
    return reversed_along(graph, x, [int(axis) for axis in equation.params["dimensions"]])


def reversed_along(graph: Graph, x: Tensor, axes: list[int]) -> Tensor:
    """Return a tensor reversed along axes."""
    axes = [axis for axis in axes if x.shape[axis] > 1]
    if not axes:
        return x
    ends = [-x.shape[axis] - 1 for axis in axes]
    vectors = [graph.vector(each) for each in ([-1] * len(axes), ends, axes, [-1] * len(axes))]
    return graph.op("Slice", [x, *vectors], x.shape, x.dtype)


@primitive("concatenate", each=True)
def concatenate(graph: Graph, equation: Equation, *parts: Tensor) -> Tensor:
    """Concatenation along an axis."""
    return concatenated(graph, parts, equation.params["dimension"])


def concatenated(graph: Graph, parts: Any, axis: int) -> Tensor:
    """Return the concatenation of tensors along an axis."""
    parts = [part for part in parts if part.shape[axis]] or list(parts[:1])
    if len(parts) == 1:
        return parts[0]
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    return graph.op("Concat", parts, shape, parts[0].dtype, axis=axis)


@primitive("stack", each=True)
def stack(graph: Graph, equation: Equation, *parts: Tensor) -> Tensor:
    """Concatenation along a new axis."""
    axis = equation.params["axis"]
    columns = [graph.reshape(part, (*part.shape[:axis], 1, *part.shape[axis:])) for part in parts]
    return concatenated(graph, columns, axis)


@primitive("unstack", each=True)
def unstack(graph: Graph, equation: Equation, x: Tensor) -> list[Tensor]:
    """The rows along an axis."""
    axis = equation.params["axis"]
    return [row(graph, x, axis, index) for index in range(x.shape[axis])]


def row(graph: Graph, x: Tensor, axis: int, index: int) -> Tensor:
    """Return one row of a tensor along an axis, without that axis."""
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    if x.narrow is not None:
        return graph.reshape(_sliced_along(graph, x, axis, index, index + 1), shape)
    return graph.op("Gather", [x, graph.constant(np.int64(index))], shape, x.dtype, axis=axis)


def _sliced_along(graph: Graph, x: Tensor, axis: int, start: int, end: int) -> Tensor:
    """Return the part of a tensor from ``start`` to ``end`` along one axis."""
    starts = [start if each == axis else 0 for each in range(len(x.shape))]
    ends = [end if each == axis else size for each, size in enumerate(x.shape)]
    return sliced(graph, x, starts, ends)


@primitive("split", each=True)
def split(graph: Graph, equation: Equation, x: Tensor) -> list[Tensor]:
    """Parts of given sizes along an axis."""
    axis, begin, parts = equation.params["axis"], 0, []
    for size in equation.params["sizes"]:
        parts.append(_sliced_along(graph, x, axis, begin, begin + size))
        begin += size
    return parts


@primitive("tile", each=True)
def tile(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Repetitions along each axis."""
    reps = equation.params["reps"]
    if all(size == 1 or count == 1 for size, count in zip(x.shape, reps, strict=True)):
        return graph.expand(x, equation.out.shape)
    return graph.op("Tile", [x, graph.vector(reps)], equation.out.shape, x.dtype)


@primitive("pad", each=True)
def pad(graph: Graph, equation: Equation, x: Tensor, value: Tensor) -> Tensor:
    """A value before, after and between the elements; negative widths cut elements off."""
    value = value.narrow or value
    for axis, (_, _, between) in enumerate(equation.params["padding_config"]):
        if between and x.shape[axis] > 1:
            spread = graph.reshape(x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]))
            spread = _padded(graph, spread, value, [(0, between * (a == axis + 1)) for a in range(len(spread.shape))])
            size = x.shape[axis] * (1 + between)
            whole = graph.reshape(spread, (*x.shape[:axis], size, *x.shape[axis + 1 :]))
            ends = [size - between if a == axis else n for a, n in enumerate(whole.shape)]
            x = sliced(graph, whole, [0] * len(x.shape), ends)
    widths = [(low, high) for low, high, _ in equation.params["padding_config"]]
    # What is cut off on one side may have been added on the other.
    x = _padded(graph, x, value, [(max(0, low), max(0, high)) for low, high in widths])
    starts = [max(0, -low) for low, _ in widths]
    return sliced(graph, x, starts, [n - max(0, -high) for n, (_, high) in zip(x.shape, widths, strict=True)])


def _padded(graph: Graph, x: Tensor, value: Tensor, widths: list[tuple[int, int]]) -> Tensor:
    if not any(low or high for low, high in widths):
        return x
    shape = [n + low + high for n, (low, high) in zip(x.shape, widths, strict=True)]
    if 0 in x.shape:
        return graph.expand(value, shape)
    pads = graph.vector([low for low, _ in widths] + [high for _, high in widths])
    return graph.typed("Pad", [x, pads, value], shape, mode="constant")
