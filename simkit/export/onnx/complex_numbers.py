"""Complex numbers and Fourier transforms."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from simkit.export.onnx.convert import Value, inline, joined, real, split
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.linear import contracted, matrix, product
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.registry import REAL, complex_primitive
from simkit.export.onnx.shapes import sliced
from simkit.export.onnx.tracing import Aval, Equation

_OPERATORS = {"add": "Add", "sub": "Sub", "add_any": "Add"}


def composed(graph: Graph, function: Any, *tensors: Tensor) -> Value:
    """Return the pair ``(real, imaginary)`` of a JAX function of real arrays as a value."""
    return Value(tuple(inline(graph, function, *tensors)))


@complex_primitive(*_OPERATORS)
def add(graph: Graph, equation: Equation, x: Value, y: Value) -> list[Value]:
    """Part by part."""
    operator = _OPERATORS[equation.name]
    return [Value(tuple(graph.elementwise(operator, a, b) for a, b in zip(x.parts, y.parts, strict=True)))]


@complex_primitive("neg")
def neg(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """Part by part."""
    return [Value(tuple(graph.elementwise("Neg", part) for part in x.parts))]


@complex_primitive("mul")
def mul(graph: Graph, equation: Equation, x: Value, y: Value) -> list[Value]:
    """``(a + ib)(c + id)``."""
    return [_times(graph, x, y)]


@complex_primitive("square")
def square(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """``x^2``."""
    return [_times(graph, x, x)]


@complex_primitive("integer_pow")
def integer_pow(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """``x^n`` by ``|n| - 1`` products."""
    exponent = equation.params["y"]
    ones = graph.expand(graph.constant(1, x.parts[0].dtype), x.parts[0].shape)
    unity = Value((ones, graph.expand(graph.constant(0, ones.dtype), ones.shape)))
    result = x if exponent else unity
    for _ in range(abs(exponent) - 1):
        result = _times(graph, result, x)
    return [result if exponent >= 0 else _divided(graph, unity, result)]


@complex_primitive("div")
def div(graph: Graph, equation: Equation, x: Value, y: Value) -> list[Value]:
    """``x / y``, scaled by the larger part of y against overflow (Smith 1962, doi:10.1145/368637.368661)."""
    return [_divided(graph, x, y)]


@complex_primitive("complex")
def make(graph: Graph, equation: Equation, x: Value, y: Value) -> list[Value]:
    """A complex number of its parts, either of which may be a scalar."""
    shape = equation.out.shape
    return [Value((graph.expand(x.parts[0], shape), graph.expand(y.parts[0], shape)))]


@complex_primitive("real")
def real_part(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """The real part."""
    return [real(x.parts[0])]


@complex_primitive("imag")
def imaginary_part(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """The imaginary part."""
    return [real(x.parts[1])]


@complex_primitive("conj")
def conj(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """The conjugate; of a real number, the complex number without imaginary part."""
    if len(x.parts) == 1:
        return [Value((x.parts[0], _zeros(graph, x.parts[0])))]
    return [Value((x.parts[0], graph.elementwise("Neg", x.parts[1])))]


@complex_primitive("abs")
def absolute(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """The modulus, scaled by the larger part so that no square overflows."""

    def modulus(a: Any, b: Any) -> Any:

        a, b = jnp.abs(a), jnp.abs(b)
        large, small = jnp.maximum(a, b), jnp.minimum(a, b)
        ratio = jnp.where(large > 0, small / jnp.where(large > 0, large, 1), 0)
        return (jnp.where(jnp.isinf(large), large, large * jnp.sqrt(1 + ratio * ratio)),)

    return [composed(graph, modulus, *x.parts)]


@complex_primitive("exp")
def exp(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """``exp(a) (cos b + i sin b)``."""

    def polar(a: Any, b: Any) -> Any:

        return jnp.exp(a) * jnp.cos(b), jnp.exp(a) * jnp.sin(b)

    return [composed(graph, polar, *x.parts)]


@complex_primitive("log")
def log(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """``log |x| + i arg x``."""
    modulus = absolute(graph, equation, x)[0].parts[0]

    def parts(modulus: Any, a: Any, b: Any) -> Any:

        return jnp.log(modulus), jnp.arctan2(b, a)

    return [composed(graph, parts, modulus, *x.parts)]


@complex_primitive("sqrt")
def sqrt(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """The root whose real part is not negative."""
    modulus = absolute(graph, equation, x)[0].parts[0]

    def root(modulus: Any, a: Any, b: Any) -> Any:

        large = jnp.sqrt((modulus + jnp.abs(a)) / 2)
        other = jnp.where(large > 0, jnp.abs(b) / (2 * jnp.where(large > 0, large, 1)), 0)
        first, second = jnp.where(a >= 0, large, other), jnp.where(a >= 0, other, large)
        return first, jnp.where(b < 0, -second, second)

    return [composed(graph, root, modulus, *x.parts)]


@complex_primitive("convert_element_type")
def convert(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """Conversion from or to real numbers, and between precisions."""
    target = np.dtype(equation.params["new_dtype"])
    if target.kind != "c":
        return [real(graph.cast(x.parts[0], target))]
    part = np.float32 if target == np.complex64 else np.float64
    parts = [graph.cast(each, part) for each in x.parts]
    return [Value((*parts, *([_zeros(graph, parts[0])] if len(parts) == 1 else [])))]


@complex_primitive("eq", "ne")
def equal(graph: Graph, equation: Equation, x: Value, y: Value) -> list[Value]:
    """Whether both parts, or all words of random keys, are equal."""
    parts = [graph.elementwise("Equal", a, b, dtype=bool) for a, b in zip(x.parts, y.parts, strict=True)]
    both = parts[0]
    for part in parts[1:]:
        both = graph.elementwise("And", both, part)
    return [real(both if equation.name == "eq" else graph.elementwise("Not", both))]


@complex_primitive("is_finite")
def is_finite(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """Whether both parts are finite."""
    zero = graph.constant(0, x.parts[0].dtype)
    a, b = (graph.elementwise("Equal", graph.elementwise("Sub", p, p), zero, dtype=bool) for p in x.parts)
    return [real(graph.elementwise("And", a, b))]


@complex_primitive("reduce_sum", "cumsum")
def reduce_sum(graph: Graph, equation: Equation, x: Value, *_: Value) -> list[Value]:
    """Part by part."""
    return [Value(tuple(REAL[equation.name].convert(graph, equation, part) for part in x.parts))]


@complex_primitive("dot_general")
def dot_general(graph: Graph, equation: Equation, x: Value, y: Value) -> list[Value]:
    """Four real products, or two if one factor is real."""
    terms, batch = equation.params["dimension_numbers"]

    def times(a: Tensor, b: Tensor) -> Tensor:
        return product(graph, a, b, terms, batch)

    if len(x.parts) == 1 or len(y.parts) == 1:
        return [Value(tuple(times(a, b) for a in x.parts for b in y.parts))]
    (a, b), (c, d) = x.parts, y.parts
    first = graph.elementwise("Sub", times(a, c), times(b, d))
    return [Value((first, graph.elementwise("Add", times(a, d), times(b, c))))]


def _times(graph: Graph, x: Value, y: Value) -> Value:
    (a, b), (c, d) = x.parts, y.parts

    def mul(p: Tensor, q: Tensor) -> Tensor:
        return graph.elementwise("Mul", p, q)

    for (p, q), (r, zero) in (((a, b), (c, d)), ((c, d), (a, b))):
        # A factor whose imaginary part is known to be zero.
        if (imaginary := (zero.narrow or zero).value) is not None and not imaginary.any():
            return Value((mul(p, r), mul(q, r)))
    return Value((graph.elementwise("Sub", mul(a, c), mul(b, d)), graph.elementwise("Add", mul(a, d), mul(b, c))))


def _divided(graph: Graph, x: Value, y: Value) -> Value:
    (c, d) = y.parts
    imaginary = (d.narrow or d).value
    if imaginary is not None and not imaginary.any():
        return Value(tuple(graph.elementwise("Div", part, c) for part in x.parts))

    def quotient(a: Any, b: Any, c: Any, d: Any) -> Any:

        swap = jnp.abs(d) > jnp.abs(c)
        large, small = jnp.where(swap, d, c), jnp.where(swap, c, d)
        ratio = small / large
        scale = large + small * ratio
        first = jnp.where(swap, a * ratio + b, a + b * ratio)
        second = jnp.where(swap, b * ratio - a, b - a * ratio)
        return first / scale, second / scale

    return composed(graph, quotient, *x.parts, c, d)


def _zeros(graph: Graph, like: Tensor) -> Tensor:
    return graph.expand(graph.constant(0, like.dtype), like.shape)


# Longest transform by one matrix: for longer ones the matrix is larger than most models, and the DFT kernel in double
# precision is faster.
LARGEST_MATRIX = 512
# Shortest transform in two stages, which are faster there if the length has two factors between these limits.
SHORTEST_FACTORED, SMALLEST_FACTOR, LARGEST_FACTOR = 128, 8, 64
_KINDS = ("fft", "ifft", "rfft", "irfft")


@complex_primitive("fft")
def fft(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """Transforms along the last axes in turn, the real one first (forward) or last (inverse)."""
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
        axis: to transform.
        length: number of points n.
        sign: -1 forward, 1 inverse.
    """
    a, b = x.parts
    if (first := _factor(length)) is not None:
        return Value(tuple(_factored(graph, x.parts, axis, (first, length // first), sign, 2)))
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
    """Return the first ``n // 2 + 1`` frequencies of the transform of real numbers."""
    half = length // 2 + 1
    ends = [half if a == axis else n for a, n in enumerate(x.shape)]
    if (first := _factor(length)) is not None:
        parts = _factored(graph, [x], axis, (first, length // first), -1, 2)
        return Value(tuple(sliced(graph, part, [0] * len(ends), ends) for part in parts))
    if length > LARGEST_MATRIX:
        whole = _fast(graph, Value((x, graph.expand(graph.constant(0, x.dtype), x.shape))), axis, -1)
        return Value(tuple(sliced(graph, part, [0] * len(ends), ends) for part in whole.parts))
    cosine, sine = _waves(length, half, length)
    return Value(tuple(contracted(graph, x, matrix(graph, wave, x), axis) for wave in (cosine, -sine)))


def backward_real(graph: Graph, x: Value, axis: int, length: int) -> Tensor:
    """Return the real numbers of which the first ``n // 2 + 1`` frequencies are given."""
    half = length // 2 + 1
    # Each frequency counts twice, for itself and its conjugate, except 0 and, for even n, n / 2.
    weight = np.full((half, 1), 2.0)
    weight[0] = 1.0
    if length % 2 == 0:
        weight[-1] = 1.0
    if (first := _factor(length)) is not None:
        parts = [_weighted(graph, part, axis, weight, length) for part in x.parts]
        return _factored(graph, parts, axis, (first, length // first), 1, 1)[0]
    cosine, sine = (wave * weight / length for wave in _waves(half, length, length))
    a, b = x.parts
    first = contracted(graph, a, matrix(graph, cosine, a), axis)
    return graph.elementwise("Sub", first, contracted(graph, b, matrix(graph, sine, b), axis))


def _weighted(graph: Graph, x: Tensor, axis: int, weight: np.ndarray, length: int) -> Tensor:
    """Return half a transform times the weights (half, 1) of its frequencies, padded with zeros to ``length``."""
    along = [-1 if a == axis else 1 for a in range(len(x.shape))]
    x = graph.elementwise("Mul", x, matrix(graph, weight.reshape(along), x))
    rest = [length - n if a == axis else n for a, n in enumerate(x.shape)]
    zeros = graph.expand(graph.constant(0, x.dtype), rest)
    whole = [length if a == axis else n for a, n in enumerate(x.shape)]
    return graph.op("Concat", [x, zeros], whole, x.dtype, axis=axis)


def _factor(length: int) -> int | None:
    """Return the largest factor of a length up to its square root, or ``None`` where two stages are not faster."""
    if length < SHORTEST_FACTORED:
        return None
    first = max(n for n in range(1, int(length**0.5) + 1) if length % n == 0)
    return first if first >= SMALLEST_FACTOR and length // first <= LARGEST_FACTOR else None


def _factored(
    graph: Graph, parts: Sequence[Tensor], axis: int, lengths: tuple[int, int], sign: int, count: int
) -> list[Tensor]:
    """Return a transform of ``n = n1 n2`` points in two stages (Cooley and Tukey 1965, doi:10.2307/2003354).

    With ``j = n2 j1 + j2`` and ``k = k1 + n1 k2``, the sum over ``j1`` depends on ``j2`` and ``k1`` alone. The sum over
    ``j2`` that follows has one matrix for each ``k1``, which includes the twiddle factors. Real and imaginary parts
    are one vector, so that each stage is one product.

    Args:
        graph: under construction.
        parts: the real part, and the imaginary one unless it is zero.
        axis: to transform.
        lengths: n1 and n2.
        sign: -1 forward, 1 inverse.
        count: number of parts of the result: 1 for the real part alone, 2 for both.
    """
    n1, n2 = lengths
    shape, count_of_parts = parts[0].shape, len(parts)
    front = int(np.prod(shape[axis + 1 :])) < SMALLEST_FACTOR
    order = [axis] + [a for a in range(len(shape)) if a != axis] if front else list(range(len(shape)))
    moved = [shape[a] for a in order]
    outer, inner = (
        (1, int(np.prod(moved[1:]))) if front else (int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :])))
    )
    columns = [graph.reshape(graph.transpose(part, order), (outer, n1, n2 * inner)) for part in parts]
    points = _concatenated(graph, columns, 1)
    turns = np.arange(n1)[:, None] * np.arange(n1) / n1
    rotations = matrix(graph, _rotations(sign * turns)[: count_of_parts * n1].T, points)
    stage = graph.typed("MatMul", [rotations, points], (outer, 2 * n1, n2 * inner))
    halves = [graph.reshape(part, (outer, n1, n2, inner)) for part in _halves(graph, stage, 1)]
    points = _concatenated(graph, halves, 2)
    k = np.arange(n1)[:, None, None] + n1 * np.arange(n2)
    turns = (np.arange(n2)[:, None] * k % (n1 * n2)) / (n1 * n2)
    scale = 1.0 if sign < 0 else 1.0 / (n1 * n2)
    rotations = matrix(graph, np.swapaxes(scale * _rotations(sign * turns)[..., : count * n2], 1, 2), points)
    stage = graph.typed("MatMul", [rotations, points], (outer, n1, count * n2, inner))
    back = [order.index(a) for a in range(len(shape))]
    results = _halves(graph, stage, 2) if count == 2 else [stage]
    return [graph.transpose(graph.reshape(graph.transpose(part, (0, 2, 1, 3)), moved), back) for part in results]


def _concatenated(graph: Graph, parts: Sequence[Tensor], axis: int) -> Tensor:
    """Return the concatenation of arrays of one shape."""
    if len(parts) == 1:
        return parts[0]
    shape = [len(parts) * n if a == axis else n for a, n in enumerate(parts[0].shape)]
    return graph.op("Concat", list(parts), shape, parts[0].dtype, axis=axis)


def _halves(graph: Graph, x: Tensor, axis: int) -> list[Tensor]:
    """Return the first and the second half of an array along an axis."""
    shape = [n // 2 if a == axis else n for a, n in enumerate(x.shape)]
    return list(graph.node("Split", [x], [(shape, x.dtype), (shape, x.dtype)], axis=axis, num_outputs=2))


def _rotations(turns: np.ndarray) -> np.ndarray:
    """Return the matrices (..., 2 j, 2 k) of the factors exp(2 pi i turns), for vectors of real, then imaginary parts.

    Args:
        turns: fractions of a full turn, (..., j, k).
    """
    c, s = np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)
    return np.concatenate([np.concatenate([c, s], -1), np.concatenate([-s, c], -1)], -2)


def _waves(rows: int, columns: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return cosines and sines of ``2 pi j k / n``, (rows, columns), from angles reduced to one turn."""
    angles = 2 * np.pi * ((np.arange(rows)[:, None] * np.arange(columns)) % length) / length
    return np.cos(angles), np.sin(angles)


def _fast(graph: Graph, x: Value, axis: int, sign: int) -> Value:
    """Return a transform by the runtime's forward DFT kernel; its inverse one scales by 1/n in single precision."""
    if sign > 0:
        # The inverse transform of a + ib is that of b + ia, forward, with its parts exchanged, over n.
        swapped = _fast(graph, Value(x.parts[::-1]), axis, -1).parts[::-1]
        scale = matrix(graph, np.asarray(1.0 / x.parts[0].shape[axis]), x.parts[0])
        return Value(tuple(graph.elementwise("Mul", part, scale) for part in swapped))
    dtype = x.parts[0].dtype
    # In double precision: the kernel computes its waves by recurrence, and loses digits in single precision.
    wide = Value(tuple(graph.cast(part, np.float64) for part in x.parts))
    both = joined(graph, wide)
    inputs = [both, None, graph.constant(np.int64(axis))]
    result = graph.op("DFT", inputs, both.shape, np.float64, inverse=0, onesided=0)
    parts = split(graph, result, Aval(both.shape[:-1], np.dtype(np.complex128))).parts
    return Value(tuple(graph.cast(part, dtype) for part in parts))
