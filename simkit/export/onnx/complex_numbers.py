"""Complex numbers and Fourier transforms."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from simkit.export.onnx.convert import Value, inline, joined, real, split
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.linear import padded, product
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.registry import REAL, complex_primitive
from simkit.export.onnx.tracing import Aval, Equation


@complex_primitive("add", "sub", "add_any", "neg", "reduce_sum", "cumsum")
def part_by_part(graph: Graph, equation: Equation, *values: Value) -> list[Value]:
    """Linear operations."""
    parts = zip(*(value.parts for value in values), strict=True)
    return [Value(tuple(REAL[equation.name].convert(graph, equation, *each) for each in parts))]


@complex_primitive("mul", "square")
def mul(graph: Graph, equation: Equation, x: Value, *others: Value) -> list[Value]:
    """``(a + ib)(c + id)``."""
    return [_times(graph, x, *(others or (x,)))]


@complex_primitive("integer_pow")
def integer_pow(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """``x^n`` by ``|n| - 1`` products."""
    exponent = equation.params["y"]
    ones = graph.expand(graph.constant(1, x.parts[0].dtype), x.parts[0].shape)
    unity = Value((ones, _zeros(graph, ones)))
    result = functools.reduce(functools.partial(_times, graph), [x] * abs(exponent)) if exponent else unity
    return [result if exponent >= 0 else _divided(graph, unity, result)]


@complex_primitive("div")
def div(graph: Graph, equation: Equation, x: Value, y: Value) -> list[Value]:
    """``x / y``, scaled by the larger part of y against overflow (Smith 1962, doi:10.1145/368637.368661)."""
    return [_divided(graph, x, y)]


@complex_primitive("complex")
def make(graph: Graph, equation: Equation, x: Value, y: Value) -> list[Value]:
    """A complex number of its parts, either of which may be a scalar."""
    return [Value(tuple(graph.expand(each.parts[0], equation.out.shape) for each in (x, y)))]


@complex_primitive("real", "imag")
def part(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """The real or the imaginary part."""
    return [real(x.parts[equation.name == "imag"])]


@complex_primitive("conj")
def conj(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """The conjugate; of a real number, the complex number without imaginary part."""
    first, *second = x.parts
    return [Value((first, graph.elementwise("Neg", second[0]) if second else _zeros(graph, first)))]


def of_parts(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function written with JAX, from real and imaginary parts to those of the result."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        @complex_primitive(*names)
        @functools.wraps(function)
        def convert(graph: Graph, equation: Equation, *values: Value) -> list[Value]:
            return [Value(tuple(inline(graph, function, *(part for value in values for part in value.parts))))]

        return function

    return register


@of_parts("abs")
def modulus(a: Any, b: Any) -> Any:
    """The modulus, scaled by the larger part so that no square overflows."""
    a, b = jnp.abs(a), jnp.abs(b)
    large, small = jnp.maximum(a, b), jnp.minimum(a, b)
    ratio = jnp.where(large > 0, small / jnp.where(large > 0, large, 1), 0)
    return (jnp.where(jnp.isinf(large), large, large * jnp.sqrt(1 + ratio * ratio)),)


@of_parts("exp")
def exp(a: Any, b: Any) -> Any:
    """``exp(a) (cos b + i sin b)``."""
    return jnp.exp(a) * jnp.cos(b), jnp.exp(a) * jnp.sin(b)


@of_parts("log")
def log(a: Any, b: Any) -> Any:
    """``log |x| + i arg x``."""
    return jnp.log(modulus(a, b)[0]), jnp.arctan2(b, a)


@of_parts("sqrt")
def sqrt(a: Any, b: Any) -> Any:
    """The root whose real part is not negative."""
    large = jnp.sqrt((modulus(a, b)[0] + jnp.abs(a)) / 2)
    other = jnp.where(large > 0, jnp.abs(b) / (2 * jnp.where(large > 0, large, 1)), 0)
    first, second = jnp.where(a >= 0, large, other), jnp.where(a >= 0, other, large)
    return first, jnp.where(b < 0, -second, second)


@of_parts("is_finite")
def is_finite(a: Any, b: Any) -> Any:
    """Whether both parts are finite."""
    return (jnp.isfinite(a) & jnp.isfinite(b),)


@complex_primitive("convert_element_type")
def convert(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """Conversion from or to real numbers, and between precisions."""
    target = np.dtype(equation.params["new_dtype"])
    if target.kind != "c":
        return [real(graph.cast(x.parts[0], target))]
    parts = [graph.cast(each, np.float32 if target == np.complex64 else np.float64) for each in x.parts]
    return [Value((*parts, *([_zeros(graph, parts[0])] if len(parts) == 1 else [])))]


@complex_primitive("eq", "ne")
def equal(graph: Graph, equation: Equation, x: Value, y: Value) -> list[Value]:
    """Whether both parts, or all words of random keys, are equal."""
    parts = [graph.elementwise("Equal", a, b) for a, b in zip(x.parts, y.parts, strict=True)]
    both = functools.reduce(functools.partial(graph.elementwise, "And"), parts)
    return [real(both if equation.name == "eq" else graph.elementwise("Not", both))]


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

    return Value(tuple(inline(graph, quotient, *x.parts, c, d)))


def _zeros(graph: Graph, like: Tensor) -> Tensor:
    return graph.expand(graph.constant(0, like.dtype), like.shape)


# Most numbers of a transform's matrices: those of larger ones are larger than most models.
LARGEST_MATRIX = 2**21
# Shortest transform in two stages, which are faster there, and smallest factor of its length.
SHORTEST_FACTORED, SMALLEST_FACTOR = 128, 8
_KINDS = ("fft", "ifft", "rfft", "irfft")


@complex_primitive("fft")
def fft(graph: Graph, equation: Equation, x: Value) -> list[Value]:
    """Transforms along the last axes in turn, the real one first (forward) or last (inverse)."""
    kind = str(equation.params["fft_type"])
    kind = _KINDS[int(kind)] if kind.isdigit() else kind.rpartition(".")[2].lower()
    lengths = [int(length) for length in equation.params["fft_lengths"]]
    steps = list(zip(range(len(equation.out.shape) - len(lengths), len(equation.out.shape)), lengths, strict=True))
    parts, sign = list(x.parts), 1 if kind.startswith("i") else -1
    *others, (last, length) = steps
    half = length // 2 + 1
    if kind == "rfft":
        parts = transform(graph, parts, last, length, sign, half)
    for axis, count in others if "r" in kind else steps:
        parts = transform(graph, parts, axis, count, sign, count)
    if kind != "irfft":
        return [Value(tuple(parts))]
    # Each frequency counts twice, for itself and its conjugate, except 0 and, for even lengths, length / 2.
    weight = np.full([half if axis == last else 1 for axis in range(last + 1)], 2.0)
    weight[..., 0] = 1.0
    if length % 2 == 0:
        weight[..., -1] = 1.0
    factor = graph.constant(weight.astype(parts[0].dtype))
    parts = [graph.elementwise("Mul", each, factor) for each in parts]
    return [real(transform(graph, parts, last, length, sign, length, 1)[0])]


def transform(
    graph: Graph, parts: Sequence[Tensor], axis: int, length: int, sign: int, wanted: int, count: int = 2
) -> list[Tensor]:
    """Return ``sum_j x_j exp(sign 2 pi i j k / n)``, divided by ``n`` if ``sign`` is positive.

    Of many points ``n = n1 n2`` in two stages (Cooley and Tukey 1965, doi:10.2307/2003354): with ``j = n2 j1 + j2`` and
    ``k = k1 + n1 k2``, the sum over ``j1`` depends on ``j2`` and ``k1`` alone. The sum over ``j2`` that follows has one
    matrix for each ``k1``, which includes the twiddle factors. Real and imaginary parts are one vector, so that each
    stage is one product.

    Args:
        graph: under construction.
        parts: the real part, and the imaginary one unless it is zero; numbers that are left out at the end are zero.
        axis: to transform.
        length: number of points n.
        sign: -1 forward, 1 inverse.
        wanted: number of frequencies k that are returned, from 0 on.
        count: number of parts of the result: 1 for the real part alone, 2 for both.
    """
    first = max((n for n in range(1, math.isqrt(length) + 1) if length % n == 0), default=1)
    n1 = first if first >= SMALLEST_FACTOR and length >= SHORTEST_FACTORED else 1
    n2, size = length // n1, parts[0].shape[axis]
    if 4 * length * n2 > LARGEST_MATRIX:
        return _fast(graph, parts, axis, length, sign, wanted)[:count]
    rows, columns = (size, wanted) if n1 == 1 else (n2, n2)
    scale, dtype = 1.0 if sign < 0 else 1.0 / length, parts[0].dtype
    frequency = np.arange(n1)[:, None, None] + n1 * np.arange(columns)[:, None]
    turns = (np.arange(rows) * frequency % length) / length
    inner = _rotations(np.outer(np.arange(n1), np.arange(n1)) / n1 * sign).transpose(2, 0, 1, 3)[:, :, : len(parts)]
    outer = scale * _rotations(sign * turns).transpose(2, 0, 3, 1, 4)[:, :count]

    def transformed(*parts: Any) -> Any:
        x = jnp.stack([jnp.moveaxis(part, axis, 0) for part in parts])
        others = x.shape[2:]
        if n1 > 1:
            x = padded(x, 0, [(0, 0), (0, length - size), *[(0, 0)] * len(others)])
            x = x.reshape(len(parts), n1, n2, -1)
            # (k1, part, part, j1) and (part, j1, j2, ...).
            x = lax.dot_general(np.asarray(inner, dtype), x, (((2, 3), (0, 1)), ((), ())))
        x = x.reshape(n1, -1, rows, math.prod(others))
        # (k1, part, k2, part, j2) and (k1, part, j2, ...).
        matrices = np.asarray(outer[:, :, :, : x.shape[1]], dtype)
        x = lax.dot_general(matrices, x, (((3, 4), (1, 2)), ((0,), (0,))))
        x = x.reshape(n1, count, columns, *others)
        x = x.transpose(1, *range(3, 3 + axis), 2, 0, *range(3 + axis, x.ndim))
        x = x.reshape(count, *others[:axis], n1 * columns, *others[axis:])
        return [lax.slice_in_dim(part, 0, wanted, axis=axis) for part in x]

    return inline(graph, transformed, *parts)


def _rotations(turns: np.ndarray) -> np.ndarray:
    """Return the factors ``exp(2 pi i turns)`` as matrices of real and imaginary parts, (2, 2, ...)."""
    c, s = np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)
    return np.array([[c, -s], [s, c]])


def _fast(graph: Graph, parts: Sequence[Tensor], axis: int, length: int, sign: int, wanted: int) -> list[Tensor]:
    """Return a transform by the runtime's forward DFT kernel; its inverse one scales by 1/n in single precision."""
    dtype, widths = parts[0].dtype, [(0, (length - n) * (a == axis)) for a, n in enumerate(parts[0].shape)]
    # In double precision: the kernel computes its waves by recurrence, and loses digits in single precision.
    wide = [graph.cast(inline(graph, lambda x: padded(x, 0, widths), part)[0], np.float64) for part in parts]
    wide = [*wide, _zeros(graph, wide[0])][:2]
    # The inverse transform of a + ib is that of b + ia, forward, with its parts exchanged, over n.
    both = joined(graph, Value(tuple(wide[::-sign])))
    inputs = [both, None, graph.constant(np.int64(axis))]
    result = graph.op("DFT", inputs, both.shape, np.float64, inverse=0, onesided=0)
    results = split(graph, result, Aval(both.shape[:-1], np.dtype(np.complex128))).parts[::-sign]

    def scaled(part: Any) -> Any:
        return lax.slice_in_dim(part / (1 if sign < 0 else length), 0, wanted, axis=axis).astype(dtype)

    return [inline(graph, scaled, part)[0] for part in results]
