"""Discrete Fourier transforms, as products with their matrices: exact to rounding, where kernels of DFT are not."""

import numpy as np

from simkit.export.onnx.equations import Equation
from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.onnx.linear import contracted, matrix
from simkit.export.onnx.registry import complex_primitive
from simkit.export.onnx.values import Value, real

# Beyond this length a matrix is larger than most models, and a fast transform, in double precision, is quicker.
LARGEST_MATRIX = 512
# From this length on, two stages with short matrices are quicker than one with a long one, if its factors are alike.
SHORTEST_FACTORED, SMALLEST_FACTOR, LARGEST_FACTOR = 128, 8, 64
_KINDS = ("fft", "ifft", "rfft", "irfft")


@complex_primitive("fft")
def fft(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """Along the last dimensions: one after the other, the real one first (forward) or last (back)."""
    kind = str(equation.params["fft_type"])
    kind = _KINDS[int(kind)] if kind.isdigit() else kind.rpartition(".")[2].lower()
    lengths = [int(length) for length in equation.params["fft_lengths"]]
    rank = len(equation.out.shape)
    axes = list(range(rank - len(lengths), rank))
    if kind == "rfft":
        x = forward_real(graph, x.parts[0], axes[-1], lengths[-1])
        for axis, length in zip(axes[:-1], lengths[:-1], strict=True):
            x = transform(graph, x, axis, length, -1)
        return [x]
    if kind == "irfft":
        for axis, length in zip(axes[:-1], lengths[:-1], strict=True):
            x = transform(graph, x, axis, length, 1)
        return [real(backward_real(graph, x, axes[-1], lengths[-1]))]
    for axis, length in zip(axes, lengths, strict=True):
        x = transform(graph, x, axis, length, -1 if kind == "fft" else 1)
    return [x]


def transform(graph: Graph, x: Value, axis: int, length: int, sign: int) -> Value:
    """Return ``sum_j x_j exp(sign 2 pi i j k / n)``, divided by ``n`` if ``sign`` is positive.

    Args:
        graph: under construction.
        x: complex.
        axis: along which.
        length: n.
        sign: -1 forward, 1 back.
    """
    a, b = x.parts
    if (first := _factor(length)) is not None:
        return _factored(graph, x, axis, (first, length // first), sign)
    if length > LARGEST_MATRIX:
        return _fast(graph, x, axis, sign)
    cosine, sine = _waves(length, length, length)
    scale = 1.0 if sign < 0 else 1.0 / length
    c, s = (matrix(graph, wave * scale, a) for wave in (cosine, sign * sine))

    def times(part: Tensor, waves: Tensor) -> Tensor:
        return contracted(graph, part, waves, axis)

    return Value(
        (
            graph.elementwise("Sub", times(a, c), times(b, s)),
            graph.elementwise("Add", times(a, s), times(b, c)),
        )
    )


def forward_real(graph: Graph, x: Tensor, axis: int, length: int) -> Value:
    """Return the transform of real numbers, without the second half, which mirrors the first."""
    half = length // 2 + 1
    if length > LARGEST_MATRIX:
        from simkit.export.onnx.shapes import sliced

        whole = _fast(graph, Value((x, graph.expand(graph.constant(0, x.dtype), x.shape))), axis, -1)
        ends = [half if a == axis else n for a, n in enumerate(x.shape)]
        return Value(tuple(sliced(graph, part, [0] * len(ends), ends) for part in whole.parts))
    cosine, sine = _waves(length, half, length)
    return Value(tuple(contracted(graph, x, matrix(graph, wave, x), axis) for wave in (cosine, -sine)))


def backward_real(graph: Graph, x: Value, axis: int, length: int) -> Tensor:
    """Return the real numbers of which the first half of a transform is given."""
    half = length // 2 + 1
    # Each frequency stands for itself and its mirror image, but for the first and, of an even number, the last.
    weight = np.full((half, 1), 2.0)
    weight[0] = 1.0
    if length % 2 == 0:
        weight[-1] = 1.0
    cosine, sine = (wave * weight / length for wave in _waves(half, length, length))
    a, b = x.parts
    first = contracted(graph, a, matrix(graph, cosine, a), axis)
    return graph.elementwise("Sub", first, contracted(graph, b, matrix(graph, sine, b), axis))


def _factor(length: int) -> int | None:
    """Return the largest factor of a length up to its square root, or ``None`` where two stages do not pay."""
    if length < SHORTEST_FACTORED:
        return None
    first = max(n for n in range(1, int(length**0.5) + 1) if length % n == 0)
    return first if first >= SMALLEST_FACTOR and length // first <= LARGEST_FACTOR else None


def _factored(graph: Graph, x: Value, axis: int, lengths: tuple[int, int], sign: int) -> Value:
    """Return a transform of ``n = n1 n2`` points in two stages (Cooley and Tukey 1965, doi:10.2307/2003354).

    With ``j = n2 j1 + j2`` and ``k = k1 + n1 k2``, the sum over ``j1`` depends on ``j2`` and ``k1`` alone. The sum over
    ``j2`` that follows takes one matrix for each ``k1``, which holds the factors between the stages too. Real and
    imaginary parts are one vector, so that each stage is one product.
    """
    n1, n2 = lengths
    shape = x.parts[0].shape
    order = [a for a in range(len(shape)) if a != axis] + [axis]
    moved = [shape[a] for a in order]
    rows = int(np.prod(moved[:-1]))
    parts = [graph.reshape(graph.transpose(part, order), (1, rows, n1, n2)) for part in x.parts]
    both = graph.op("Concat", parts, (2, rows, n1, n2), parts[0].dtype, axis=0)
    points = graph.reshape(graph.transpose(both, (1, 3, 0, 2)), (rows * n2, 2 * n1))
    turns = np.arange(n1)[:, None] * np.arange(n1) / n1
    stage = graph.typed("MatMul", [points, matrix(graph, _rotations(sign * turns), points)], points.shape)
    stage = graph.transpose(graph.reshape(stage, (rows, n2, 2, n1)), (3, 0, 2, 1))
    stage = graph.reshape(stage, (n1, rows, 2 * n2))
    k = np.arange(n1)[:, None, None] + n1 * np.arange(n2)
    turns = (np.arange(n2)[:, None] * k % (n1 * n2)) / (n1 * n2)
    scale = 1.0 if sign < 0 else 1.0 / (n1 * n2)
    stage = graph.typed("MatMul", [stage, matrix(graph, scale * _rotations(sign * turns), stage)], stage.shape)
    both = graph.transpose(graph.reshape(stage, (n1, rows, 2, n2)), (2, 1, 3, 0))
    both = graph.reshape(both, (2, *moved))
    back = [order.index(a) for a in range(len(shape))]
    return Value(
        tuple(
            graph.transpose(graph.reshape(graph.op("Gather", [both, place], moved, both.dtype, axis=0), moved), back)
            for place in (graph.constant(np.int64(part)) for part in range(2))
        )
    )


def _rotations(turns: np.ndarray) -> np.ndarray:
    """Return matrices (..., 2 j, 2 k) that turn real and imaginary parts of ``j`` by turns (..., j, k), summed over j."""
    c, s = np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)
    return np.concatenate([np.concatenate([c, s], -1), np.concatenate([-s, c], -1)], -2)


def _waves(rows: int, columns: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return cosines and sines of ``2 pi j k / n``, from angles within one turn."""
    angles = 2 * np.pi * ((np.arange(rows)[:, None] * np.arange(columns)) % length) / length
    return np.cos(angles), np.sin(angles)


def _fast(graph: Graph, x: Value, axis: int, sign: int) -> Value:
    from simkit.export.onnx.equations import Aval
    from simkit.export.onnx.values import joined, split

    own = x.parts[0].dtype
    # In single precision the kernel's error is ten roundings: it computes its waves by recurrence.
    wide = Value(tuple(graph.cast(part, np.float64) for part in x.parts))
    both = joined(graph, wide)
    inputs = [both, None, graph.constant(np.int64(axis))]
    result = graph.op("DFT", inputs, both.shape, np.float64, inverse=int(sign > 0), onesided=0)
    parts = split(graph, result, Aval(both.shape[:-1], np.dtype(np.complex128))).parts
    return Value(tuple(graph.cast(part, own) for part in parts))
