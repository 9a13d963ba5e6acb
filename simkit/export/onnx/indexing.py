"""Shapes (reshape, slice, concatenate, pad, ...), and gathers, slices and updates at computed indices."""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from simkit.errors import UserError
from simkit.export.onnx.arithmetic import choose
from simkit.export.onnx.convert import Value, constant, inline, parts_of
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.tracing import Aval, Equation, applies_function


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
    return [zeros(graph, equation.out)]


def zeros(graph: Graph, aval: Aval) -> Value:
    """Return a value of zeros."""
    count, dtype = parts_of(aval)
    return Value((graph.expand(graph.constant(0, dtype), aval.shape),) * count, aval.key)


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


@dataclasses.dataclass(frozen=True)
class Windows:
    """Windows of an operand at computed starts, which gathers read and scatters write.

    Attributes:
        shape: of the operand.
        sizes: of a window, along each axis of the operand.
        starts: axis of the operand for each component of an index.
        batching: batch axes of the operand: the start of a window is the index of its batch member.
        index_batching: axes of the indices that correspond to ``batching``.
        squeezed: axes of size 1 that a window is stored without.
    """

    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    starts: tuple[int, ...]
    batching: tuple[int, ...]
    index_batching: tuple[int, ...]
    squeezed: tuple[int, ...]

    @property
    def addressed(self) -> list[int]:
        """Axes along which windows have different starts."""
        return sorted({*self.starts, *self.batching})

    @property
    def whole(self) -> list[int]:
        """Axes along which every window begins at 0."""
        return [axis for axis in range(len(self.shape)) if axis not in self.addressed]

    @property
    def kept(self) -> list[int]:
        """Axes that a window is stored with."""
        return [axis for axis in range(len(self.shape)) if axis not in self.squeezed and axis not in self.batching]


def rows(indices: Any, *, windows: Windows) -> tuple[Any, Any]:
    """Return the indices of the rows of windows, and which windows are inside of the operand; a function for JAX.

    A row is the part of the operand at one position along the addressed axes; rows are numbered in C order.

    Args:
        indices: integers ``(batch..., components)``.
        windows: the windows.

    Returns:
        Row indices, int64 ``(batch..., size of the window along each addressed axis)``, always within bounds; and bool
        ``(batch...)``.
    """
    batch, addressed = indices.shape[:-1], windows.addressed
    strides = {axis: math.prod(windows.shape[a] for a in addressed if a > axis) for axis in addressed}
    limits = np.array([windows.shape[axis] - windows.sizes[axis] for axis in windows.starts], np.int64)
    wide = indices.astype(jnp.int64)
    clipped = jnp.minimum(jnp.maximum(wide, 0), limits)
    parts = [clipped[..., place] * strides[axis] for place, axis in enumerate(windows.starts)]
    number = sum(parts, jnp.zeros(batch, jnp.int64)).reshape(*batch, *[1] * len(addressed))
    # Constant part of the row index: of the batch members, and of the offsets within a window.
    full = (*batch, *(windows.sizes[axis] for axis in addressed))
    ranges = {len(batch) + place: strides[axis] for place, axis in enumerate(addressed) if axis not in windows.batching}
    ranges |= {of: strides[axis] for axis, of in zip(windows.batching, windows.index_batching, strict=True)}
    fixed = sum(np.arange(full[axis]).reshape(_row(full, axis)) * stride for axis, stride in ranges.items())
    return jnp.broadcast_to(number + np.asarray(fixed, np.int64), full), (clipped == wide).all(-1)


def elements(indices: Any, *, windows: Windows) -> tuple[Any, Any]:
    """Return the flat indices of the elements of windows, with the addressed axes first, and the second of `rows`."""
    row, inside = rows(indices, windows=windows)
    extent = [windows.shape[axis] for axis in windows.whole]
    within = np.arange(math.prod(extent)).reshape(extent)[tuple(slice(0, windows.sizes[a]) for a in windows.whole)]
    return row.reshape(*row.shape, *[1] * len(extent)) * math.prod(extent) + within, inside


@primitive("gather", each=True)
def gather(graph: Graph, equation: Equation, x: Tensor, indices: Tensor) -> Tensor:
    """Windows at computed starts."""
    params = equation.params
    numbers = params["dimension_numbers"]
    windows = Windows(
        x.shape,
        tuple(params["slice_sizes"]),
        tuple(numbers.start_index_map),
        tuple(numbers.operand_batching_dims),
        tuple(numbers.start_indices_batching_dims),
        tuple(numbers.collapsed_slice_dims),
    )
    batch = indices.shape[:-1]
    if math.prod(equation.out.shape) == 0:
        return graph.expand(graph.constant(0, x.dtype), equation.out.shape)
    fills = "FILL" in str(params["mode"]).upper()
    addressed, whole = windows.addressed, windows.whole
    ends = [windows.sizes[axis] if axis in whole else size for axis, size in enumerate(x.shape)]
    x = sliced(graph, x, [0] * len(ends), ends)
    offsets = list(numbers.offset_dims)
    others = [axis for axis in range(len(equation.out.shape)) if axis not in offsets]
    # numpy.take: one axis is indexed, and the axes of the indices replace it in the result.
    is_plain = (
        len(addressed) == 1
        and addressed[0] not in windows.kept
        and others == [*range(addressed[0], addressed[0] + len(batch))]
    )
    if is_plain and windows.starts == (addressed[0],) and not fills:
        index = _inside(graph, graph.reshape(indices, batch), x.shape[addressed[0]])
        return graph.op("Gather", [x, index], equation.out.shape, x.dtype, axis=addressed[0])
    number, inside = inline(graph, rows, indices, windows=windows)
    if is_plain:
        index = graph.reshape(number, batch)
        result = graph.op("Gather", [x, index], equation.out.shape, x.dtype, axis=addressed[0])
    else:
        result = _ordered(graph, windows, x, number, equation.out.shape, offsets)
    if not fills:
        return result
    sizes = [equation.out.shape[axis] if axis in others else 1 for axis in range(len(equation.out.shape))]
    fill = graph.constant(_fill(params.get("fill_value"), x.dtype), x.dtype)
    return graph.expand(choose(graph, graph.reshape(inside, sizes), result, fill), result.shape)


def _inside(graph: Graph, index: Tensor, size: int) -> Tensor:
    """Return an index clipped to the bounds of Gather, which counts negative indices from the end itself."""
    original = _before_wrapping(index, size)
    first = 0 if original is index else -size
    kept = original if original.dtype.name in ("int32", "int64") else graph.cast(original, np.int64)
    indices = (kept.narrow or kept).value
    if indices is not None and indices.min() >= first and indices.max() < size:
        return kept
    return graph.elementwise("Clip", kept, first, size - 1)


def _before_wrapping(index: Tensor, size: int) -> Tensor:
    """Return ``i`` for an index computed as ``where(i < 0, i + size, i)``, any other index itself."""
    wrapped = _inputs(index, "Where")
    if len(wrapped) == 3:
        added, test = _inputs(wrapped[1], "Add"), _inputs(wrapped[0], "Less")
        if len(added) == len(test) == 2 and wrapped[2] is added[0] is test[0]:
            bound, zero = ((each[1].narrow or each[1]).value for each in (added, test))
            if bound is not None and zero is not None and (bound == size).all() and not zero.any():
                return wrapped[2]
    return index


def _inputs(tensor: Tensor, operator: str) -> list[Tensor]:
    """Return the inputs of the node that computes a tensor if it is the given operator, else none."""
    if tensor.maker is None or tensor.maker.operator != operator:
        return []
    return [each for each in tensor.maker.inputs if each is not None]


def _ordered(
    graph: Graph, windows: Windows, x: Tensor, number: Tensor, shape: Sequence[int], offsets: Sequence[int]
) -> Tensor:
    """Return rows by their indices, with the axes of the windows at ``offsets`` of the result."""
    addressed, whole = windows.addressed, windows.whole
    batch = number.shape[: len(number.shape) - len(addressed)]
    rest = [windows.sizes[axis] for axis in whole]
    table = graph.transpose(x, [*addressed, *whole])
    table = graph.reshape(table, (math.prod(x.shape[axis] for axis in addressed), *rest))
    result = graph.op("Gather", [table, number], (*number.shape, *rest), x.dtype, axis=0)
    # From (batch..., addressed sizes..., whole sizes...) to the operand's order of axes, without the squeezed ones.
    position = {axis: len(batch) + i for i, axis in enumerate([*addressed, *whole])}
    window = [position[axis] for axis in windows.kept]
    squeezed = [position[axis] for axis in position if axis not in windows.kept]
    result = graph.transpose(result, [*range(len(batch)), *window, *squeezed])
    result = graph.reshape(result, (*batch, *(windows.sizes[axis] for axis in windows.kept)))
    others = [axis for axis in range(len(shape)) if axis not in offsets]
    order = [0] * len(shape)
    for source, target in enumerate([*others, *offsets]):
        order[target] = source
    return graph.transpose(result, order)


def _fill(value: object, dtype: np.dtype) -> object:
    if value is not None:
        return value
    if dtype.kind == "f":
        return np.nan
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max


def clipped_starts(graph: Graph, starts: Sequence[Tensor], limits: Sequence[int]) -> list[Tensor]:
    """Return the start of a window along each axis, int64 scalars clipped such that the window is inside.

    Args:
        graph: under construction.
        starts: integers.
        limits: largest start along each axis.
    """
    return [
        graph.elementwise("Min", graph.elementwise("Max", graph.cast(start, np.int64), 0), limit)
        if limit
        else graph.constant(0, np.int64)
        for start, limit in zip(starts, limits, strict=True)
    ]


@primitive("dynamic_slice", each=True)
def dynamic_slice(graph: Graph, equation: Equation, x: Tensor, *starts: Tensor) -> Tensor:
    """A window of fixed size at a computed start."""
    sizes = equation.params["slice_sizes"]
    limits = [n - size for n, size in zip(x.shape, sizes, strict=True)]
    clipped = clipped_starts(graph, starts[: len(sizes)], limits)
    axes = [axis for axis, limit in enumerate(limits) if limit]
    if not axes:
        return x
    if all(start.value is not None for start in clipped):
        constants = [int(start.value) for start in clipped if start.value is not None]
        return sliced(graph, x, constants, [a + size for a, size in zip(constants, sizes, strict=True)])
    if len(axes) == 1 and sizes[axes[0]] == 1:
        index = graph.reshape(clipped[axes[0]], (1,))
        return graph.op("Gather", [x, index], sizes, x.dtype, axis=axes[0])
    columns = [graph.reshape(clipped[axis], (1,)) for axis in axes]
    begin = columns[0] if len(axes) == 1 else graph.op("Concat", columns, (len(axes),), np.int64, axis=0)
    end = graph.elementwise("Add", begin, graph.constant(np.array([sizes[axis] for axis in axes], np.int64)))
    steps = graph.vector([1] * len(axes))
    return graph.op("Slice", [x, begin, end, graph.vector(axes), steps], sizes, x.dtype)


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
    element, inside = inline(graph, elements, indices, windows=windows)
    batch, whole, addressed = indices.shape[:-1], windows.whole, windows.addressed
    # Updates as (batch..., window in the operand's axes), then with the addressed axes of the window first.
    others = [axis for axis in range(len(updates.shape)) if axis not in window_axes]
    updates = graph.transpose(updates, [*others, *window_axes])
    updates = graph.reshape(updates, (*batch, *windows.sizes))
    updates = graph.transpose(updates, [*range(len(batch)), *(len(batch) + axis for axis in (*addressed, *whole))])
    length = math.prod(x.shape)
    order = [*addressed, *whole]
    flat = graph.reshape(graph.transpose(x, order), (length,))
    known_inside = (inside.narrow or inside).value
    is_inside = known_inside is not None and known_inside.all()
    if drops := "CLIP" not in str(params["mode"]).upper() and not is_inside:
        kept_updates = graph.reshape(inside, (*batch, *[1] * len(x.shape)))
        # Updates out of bounds are written to one more element, which is cut off.
        element = graph.elementwise("Where", kept_updates, element, length)
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
        offset = graph.elementwise("Mul", starts[axis], strides[axis])
        element = graph.elementwise("Add", element, offset)
    count, length = math.prod(update.shape), math.prod(x.shape)
    inputs = [graph.reshape(x, (length,)), graph.reshape(element, (count,)), graph.reshape(update, (count,))]
    return graph.reshape(scattered(graph, inputs, "none"), x.shape)


def _between(graph: Graph, x: Tensor, update: Tensor, axis: int, start: Tensor) -> Tensor:
    """Return ``x`` with ``update`` in place of its elements from ``start`` on along an axis."""
    size = update.shape[axis]
    constant = start.value
    if constant is not None:
        begin, end = int(constant), int(constant) + size
        lower = [begin if a == axis else n for a, n in enumerate(x.shape)]
        upper = [end if a == axis else 0 for a in range(len(x.shape))]
        parts = [sliced(graph, x, [0] * len(lower), lower), update, sliced(graph, x, upper, x.shape)]
        return concatenated(graph, parts, axis)
    if size == 1:
        index = graph.constant(np.arange(x.shape[axis]).reshape(_row(x.shape, axis)))
        replaced = graph.elementwise("Equal", index, start)
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
