"""Discrete Fourier transforms, as products with their matrices: exact to rounding, where kernels of DFT are not."""

import numpy as np

from simkit.export.onnx.equations import Equation
from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.onnx.linear import contracted, matrix
from simkit.export.onnx.registry import complex_primitive
from simkit.export.onnx.values import Value, real

# Beyond this length a matrix is larger than most models, and a fast transform, in double precision, is quicker.
LARGEST_MATRIX = 512
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
