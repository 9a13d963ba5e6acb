"""Replacements by matrix products: sums, cumulative sums, Fourier transforms, contractions."""

import math

import numpy as np

from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.targets.registry import replaces

type Inputs = list[Tensor]
type Shape = tuple[int, ...]


@replaces("CumSum", "MatMul", "Transpose", "Reshape", finite=True)
def cumulative_sum(
    graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, reverse: int = 0, exclusive: int = 0
) -> Tensor | None:
    """A product with a triangular matrix of ones."""
    x, axis = inputs
    if axis.value is None or exclusive:
        return None
    position = int(axis.value.reshape(())) % len(shape)
    triangle = np.tri(shape[position], dtype=dtype)
    return along(graph, x, position, triangle if reverse else triangle.T)


@replaces("ReduceSum", "MatMul", "Transpose", "Reshape")
def total(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, keepdims: int = 1) -> Tensor | None:
    """A product with a vector of ones."""
    x, axes = inputs
    if axes.value is None or 0 in x.shape or not len(axes.value):
        return None
    reduced = sorted(int(axis) % len(x.shape) for axis in axes.value)
    kept = [axis for axis in range(len(x.shape)) if axis not in reduced]
    count = math.prod(x.shape[axis] for axis in reduced)
    flat = graph.reshape(graph.transpose(x, [*kept, *reduced]), (math.prod(x.shape[axis] for axis in kept), count))
    return graph.reshape(graph.typed("MatMul", [flat, ones(graph, (count, 1), dtype)], (flat.shape[0], 1)), shape)


@replaces("DFT", "MatMul", "Transpose", "Reshape", "Gather", "Concat", "Sub", "Add")
def fourier(
    graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, inverse: int = 0, onesided: int = 0
) -> Tensor | None:
    """Products of real and imaginary parts with cosines and sines."""
    x, length, axis = [*inputs, None][:3]
    assert x is not None
    if length is not None or axis is None or axis.value is None or onesided or x.shape[-1] != 2:
        return None
    position = int(axis.value.reshape(())) % len(shape)
    size = shape[position]
    angles = 2 * np.pi * ((np.arange(size)[:, None] * np.arange(size)) % size) / size
    scale = 1.0 / size if inverse else 1.0
    cosine, sine = (np.asarray(wave * scale, dtype) for wave in (np.cos(angles), np.sin(angles)))
    sine = sine if inverse else -sine
    last = len(shape) - 1
    real, imaginary = (
        graph.op("Gather", [x, graph.constant(np.int64(i))], shape[:-1], dtype, axis=last) for i in range(2)
    )
    parts = [
        graph.elementwise("Sub", along(graph, real, position, cosine), along(graph, imaginary, position, sine)),
        graph.elementwise("Add", along(graph, real, position, sine), along(graph, imaginary, position, cosine)),
    ]
    columns = [graph.reshape(part, (*shape[:-1], 1)) for part in parts]
    return graph.op("Concat", columns, shape, dtype, axis=last)


@replaces("Einsum", "MatMul", "Transpose", "Reshape")
def contraction(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, equation: str) -> Tensor | None:
    """One MatMul of two arrays.

    Letters of both arrays and the result are batch axes, those of both arrays alone are contracted, the others rows
    and columns. A letter of one array alone would have to be summed first; such equations are not replaced.
    """
    terms, _, result = equation.replace(" ", "").partition("->")
    names = terms.split(",")
    if len(names) != 2 or "..." in equation or not result or any(len(set(word)) != len(word) for word in names):
        return None
    first, second = names
    both = [letter for letter in first if letter in second]
    members = [letter for letter in both if letter in result]
    summed = [letter for letter in both if letter not in result]
    rows, columns = ([c for c in word if c not in both] for word in names)
    if any(letter not in result for letter in (*rows, *columns)):
        return None
    sizes = {c: n for word, tensor in zip(names, inputs, strict=True) for c, n in zip(word, tensor.shape, strict=True)}
    a = _arranged(graph, inputs[0], first, [members, rows, summed], sizes)
    b = _arranged(graph, inputs[1], second, [members, summed, columns], sizes)
    product = graph.typed("MatMul", [a, b], (a.shape[0], a.shape[1], b.shape[2]))
    order = [*members, *rows, *columns]
    whole = graph.reshape(product, [sizes[letter] for letter in order])
    return graph.transpose(whole, [order.index(letter) for letter in result])


def along(graph: Graph, x: Tensor, axis: int, matrix: np.ndarray) -> Tensor:
    """Return the product of a tensor with a square matrix along an axis.

    Args:
        graph: under construction.
        x: real.
        axis: of the product.
        matrix: (n, n), from the old values in its rows to the new ones in its columns.
    """
    order = [each for each in range(len(x.shape)) if each != axis] + [axis]
    moved = graph.transpose(x, order)
    product = graph.typed("MatMul", [moved, graph.known(matrix)], moved.shape)
    return graph.transpose(product, [order.index(each) for each in range(len(order))])


def ones(graph: Graph, shape: Shape, dtype: np.dtype) -> Tensor:
    """Return a constant of ones in its full shape, not as a broadcast scalar."""
    return graph.known(np.ones(shape, dtype))


def _arranged(graph: Graph, tensor: Tensor, word: str, groups: list[list[str]], sizes: dict[str, int]) -> Tensor:
    """Return a tensor with its axes joined in groups of letters, one axis for each group."""
    moved = graph.transpose(tensor, [word.index(letter) for group in groups for letter in group])
    return graph.reshape(moved, [math.prod(sizes[letter] for letter in group) for group in groups])
