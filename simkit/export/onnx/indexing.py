"""Reading at computed places: gathers in all their modes, as one Gather of rows by their number; dynamic slices."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from simkit.export.onnx.comparisons import choose
from simkit.export.onnx.equations import Equation
from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.shapes import sliced


@dataclasses.dataclass(frozen=True)
class Windows:
    """Windows of an operand, each at a computed place: what gathers read and scatters write.

    Attributes:
        shape: of the operand.
        sizes: of a window, in each dimension of the operand.
        starts: which dimension of the operand each component of an index counts along.
        batching: dimensions of the operand along which the window of a batch member is the member itself.
        index_batching: dimensions of the indices that count those members.
        squeezed: dimensions of size 1 that a window is stored without.
    """

    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    starts: tuple[int, ...]
    batching: tuple[int, ...]
    index_batching: tuple[int, ...]
    squeezed: tuple[int, ...]

    @property
    def addressed(self) -> list[int]:
        """Dimensions in which windows lie at different places."""
        return sorted({*self.starts, *self.batching})

    @property
    def whole(self) -> list[int]:
        """Dimensions in which every window is as large as the operand."""
        return [axis for axis in range(len(self.shape)) if axis not in self.addressed]

    @property
    def kept(self) -> list[int]:
        """Dimensions with which a window is stored."""
        return [axis for axis in range(len(self.shape)) if axis not in self.squeezed and axis not in self.batching]


def rows(graph: Graph, windows: Windows, indices: Tensor, clip: bool) -> tuple[Tensor, Tensor | None]:
    """Return the numbers of the rows that windows take, and which windows lie inside (``None`` if that is not asked).

    A row is what lies at one place of the addressed dimensions, in the order of an array.

    Args:
        graph: under construction.
        windows: the windows.
        indices: integers ``(batch..., components)``.
        clip: whether windows outside are moved inside; otherwise they are told.

    Returns:
        Row numbers, int64 ``(batch..., size of the window in each addressed dimension)``, always of rows that exist;
        and bool ``(batch...)``.
    """
    batch = indices.shape[:-1]
    addressed = windows.addressed
    full = (*batch, *(windows.sizes[axis] for axis in addressed))
    strides = {axis: math.prod(windows.shape[a] for a in addressed if a > axis) for axis in addressed}
    limits = np.array([windows.shape[axis] - windows.sizes[axis] for axis in windows.starts], np.int64)
    number: Tensor = graph.constant(np.int64(0))
    inside = None
    if windows.starts:
        places = graph.cast(indices, np.int64)
        clipped = graph.elementwise("Max", places, graph.constant(0, np.int64))
        clipped = graph.elementwise("Min", clipped, graph.constant(limits))
        if not clip:
            unmoved = graph.elementwise("Equal", clipped, places, dtype=bool)
            axes = graph.vector([len(batch)])
            inside = graph.typed("ReduceMin", [unmoved, axes], batch, keepdims=0)
        weights = np.array([strides[axis] for axis in windows.starts], np.int64)
        if len(weights) > 1:
            weighted = graph.elementwise("Mul", clipped, graph.constant(weights))
            number = graph.typed("ReduceSum", [weighted, graph.vector([len(batch)])], batch, keepdims=0)
        else:
            number = graph.elementwise("Mul", graph.reshape(clipped, batch), graph.constant(weights[0]))
        number = graph.reshape(number, (*batch, *[1] * len(addressed)))
    # What does not depend on the indices: the members of batches, and the places within a window.
    fixed = np.zeros([1] * len(full), np.int64)
    for axis, place in zip(windows.batching, windows.index_batching, strict=True):
        shape = [1] * len(full)
        shape[place] = batch[place]
        fixed = fixed + (np.arange(batch[place]) * strides[axis]).reshape(shape)
    for place, axis in enumerate(addressed):
        if axis not in windows.batching and windows.sizes[axis] > 1:
            shape = [1] * len(full)
            shape[len(batch) + place] = windows.sizes[axis]
            fixed = fixed + (np.arange(windows.sizes[axis]) * strides[axis]).reshape(shape)
    if fixed.any():
        number = graph.elementwise("Add", number, graph.constant(fixed))
    return graph.expand(number, full), inside


@primitive("gather", each=True)
def gather(graph: Graph, equation: Equation, x: Tensor, indices: Tensor) -> Tensor:
    """Windows at computed places."""
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
    # The indices' dimensions stand in the result where the addressed one was.
    is_plain = len(addressed) == 1 and addressed[0] not in windows.kept and others == list(_behind(addressed[0], batch))
    if is_plain and windows.starts == (addressed[0],) and not fills:
        index = _inside(graph, graph.reshape(indices, batch), x.shape[addressed[0]])
        return graph.op("Gather", [x, index], equation.out.shape, x.dtype, axis=addressed[0])
    number, inside = rows(graph, windows, indices, clip=not fills)
    if is_plain:
        index = graph.reshape(number, batch)
        result = graph.op("Gather", [x, index], equation.out.shape, x.dtype, axis=addressed[0])
    else:
        result = _ordered(graph, windows, x, number, equation.out.shape, offsets)
    if inside is None:
        return result
    sizes = [equation.out.shape[axis] if axis in others else 1 for axis in range(len(equation.out.shape))]
    fill = graph.constant(_fill(params.get("fill_value"), x.dtype), x.dtype)
    return graph.expand(choose(graph, graph.reshape(inside, sizes), result, fill), result.shape)


def _inside(graph: Graph, index: Tensor, size: int) -> Tensor:
    """Return an index moved to where it is inside, as the operator takes it: it counts negative ones from the end."""
    counted = _counted_from_either_end(index, size)
    first = 0 if counted is index else -size
    kept = counted if counted.dtype.name in ("int32", "int64") else graph.cast(counted, np.int64)
    known = (kept.narrow or kept).value
    if known is not None and known.min() >= first and known.max() < size:
        return kept
    bounds = [graph.constant(bound, kept.dtype) for bound in (first, size - 1)]
    return graph.elementwise("Clip", kept, *bounds)


def _counted_from_either_end(index: Tensor, size: int) -> Tensor:
    """Return an index as it was before a size was added to its negative values, or as it is."""
    wrapped = _inputs(index, "Where")
    if len(wrapped) == 3:
        added, test = _inputs(wrapped[1], "Add"), _inputs(wrapped[0], "Less")
        if len(added) == len(test) == 2 and wrapped[2] is added[0] is test[0]:
            bound, zero = ((each[1].narrow or each[1]).value for each in (added, test))
            if bound is not None and zero is not None and (bound == size).all() and not zero.any():
                return wrapped[2]
    return index


def _inputs(tensor: Tensor, operator: str) -> list[Tensor]:
    if tensor.maker is None or tensor.maker.operator != operator:
        return []
    return [each for each in tensor.maker.inputs if each is not None]


def _behind(axis: int, batch: Sequence[int]) -> range:
    return range(axis, axis + len(batch))


def _ordered(
    graph: Graph, windows: Windows, x: Tensor, number: Tensor, shape: Sequence[int], offsets: Sequence[int]
) -> Tensor:
    """Return rows by their numbers, the dimensions of windows at ``offsets``."""
    addressed, whole = windows.addressed, windows.whole
    batch = number.shape[: len(number.shape) - len(addressed)]
    rest = [windows.sizes[axis] for axis in whole]
    table = graph.transpose(x, [*addressed, *whole])
    table = graph.reshape(table, (math.prod(x.shape[axis] for axis in addressed), *rest))
    result = graph.op("Gather", [table, number], (*number.shape, *rest), x.dtype, axis=0)
    # Now (batch..., addressed sizes..., whole sizes...): bring the window in order and drop what is squeezed.
    place = {axis: len(batch) + i for i, axis in enumerate([*addressed, *whole])}
    window = [place[axis] for axis in windows.kept]
    result = graph.transpose(result, [*range(len(batch)), *window, *(place[a] for a in place if a not in windows.kept)])
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
    """Return the start of a window in each dimension, int64 scalars moved to where the window is inside.

    Args:
        graph: under construction.
        starts: integers.
        limits: the last start inside.
    """
    zero = graph.constant(0, np.int64)
    return [
        graph.elementwise(
            "Min", graph.elementwise("Max", graph.cast(start, np.int64), zero), graph.constant(limit, np.int64)
        )
        if limit
        else zero
        for start, limit in zip(starts, limits, strict=True)
    ]


@primitive("dynamic_slice", each=True)
def dynamic_slice(graph: Graph, equation: Equation, x: Tensor, *starts: Tensor) -> Tensor:
    """A window of fixed size at a computed place."""
    sizes = equation.params["slice_sizes"]
    limits = [n - size for n, size in zip(x.shape, sizes, strict=True)]
    places = clipped_starts(graph, starts[: len(sizes)], limits)
    axes = [axis for axis, limit in enumerate(limits) if limit]
    if not axes:
        return x
    if all(place.value is not None for place in places):
        begin = [int(place.value) for place in places if place.value is not None]
        return sliced(graph, x, begin, [a + size for a, size in zip(begin, sizes, strict=True)])
    if len(axes) == 1 and sizes[axes[0]] == 1:
        index = graph.reshape(places[axes[0]], (1,))
        return graph.op("Gather", [x, index], sizes, x.dtype, axis=axes[0])
    columns = [graph.reshape(places[axis], (1,)) for axis in axes]
    begin_ = columns[0] if len(axes) == 1 else graph.op("Concat", columns, (len(axes),), np.int64, axis=0)
    end = graph.elementwise("Add", begin_, graph.constant(np.array([sizes[axis] for axis in axes], np.int64)))
    ones = [graph.vector(axes), graph.vector([1] * len(axes))]
    return graph.op("Slice", [x, begin_, end, *ones], sizes, x.dtype)
