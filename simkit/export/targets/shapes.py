"""Replacements of operators that move elements to constant positions: Expand, Tile, Slice, Pad."""

import numpy as np

from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.targets.registry import replaces

type Inputs = list[Tensor]
type Shape = tuple[int, ...]


@replaces("Expand", "Reshape", "Tile")
def tiled(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """Copies along the axes of size 1 that grow."""
    own = (1,) * (len(shape) - len(inputs[0].shape)) + inputs[0].shape
    counts = [new // old for old, new in zip(own, shape, strict=True)]
    return graph.op("Tile", [graph.reshape(inputs[0], own), graph.vector(counts)], shape, dtype)


@replaces("Expand", "Reshape", "Gather")
def repeated(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """The only element along each axis that grows, gathered several times."""
    own = (1,) * (len(shape) - len(inputs[0].shape)) + inputs[0].shape
    result = graph.reshape(inputs[0], own)
    for axis, size in enumerate(shape):
        if own[axis] != size:
            grown = (*result.shape[:axis], size, *result.shape[axis + 1 :])
            result = graph.op("Gather", [result, graph.vector([0] * size)], grown, dtype, axis=axis)
    return result


@replaces("Tile", "Concat")
def copies(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor | None:
    """Concatenations of the array with itself."""
    counts = inputs[1].value
    if counts is None:
        return None
    result = inputs[0]
    for axis, count in enumerate(counts.tolist()):
        if count != 1:
            grown = (*result.shape[:axis], result.shape[axis] * count, *result.shape[axis + 1 :])
            result = graph.op("Concat", [result] * count, grown, dtype, axis=axis)
    return result


@replaces("Slice", "Gather")
def picked(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor | None:
    """The rows of constant indices, axis by axis."""
    x = inputs[0]
    known = [tensor.value for tensor in inputs[1:] if tensor is not None]
    if len(known) < 2 or any(value is None for value in known):
        return None
    starts, ends = (value.tolist() for value in known[:2] if value is not None)
    axes = known[2].tolist() if len(known) > 2 and known[2] is not None else list(range(len(starts)))
    steps = known[3].tolist() if len(known) > 3 and known[3] is not None else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = x.shape[axis]
        stop = None if step < 0 and end < -size else end
        rows = np.arange(size)[slice(start, stop, step)]
        if len(rows) != size or step != 1:
            cut = (*x.shape[:axis], len(rows), *x.shape[axis + 1 :])
            x = graph.op("Gather", [x, graph.vector(rows.tolist())], cut, dtype, axis=axis)
    return x


@replaces("Pad", "Concat")
def padded(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, mode: str = "constant") -> Tensor | None:
    """Concatenations with constant arrays."""
    x, pads, filler = [*inputs, None][:3]
    assert x is not None
    if pads is None or pads.value is None or mode != "constant" or (filler is not None and filler.value is None):
        return None
    number = 0 if filler is None or filler.value is None else filler.value
    sides = pads.value.reshape(2, -1).tolist()
    if min(map(min, sides)) < 0:
        return None
    for axis, (before, after) in enumerate(zip(*sides, strict=True)):
        parts = [
            x if size is None else graph.known(np.full((*x.shape[:axis], size, *x.shape[axis + 1 :]), number, dtype))
            for size in (before, None, after)
            if size != 0
        ]
        if len(parts) > 1:
            grown = (*x.shape[:axis], before + x.shape[axis] + after, *x.shape[axis + 1 :])
            x = graph.op("Concat", parts, grown, dtype, axis=axis)
    return x
