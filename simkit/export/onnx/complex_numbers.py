"""Complex arithmetic on pairs of real and imaginary parts."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from simkit.export.onnx.convert import inline
from simkit.export.onnx.equations import Equation
from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.onnx.linear import product
from simkit.export.onnx.registry import REAL, complex_primitive
from simkit.export.onnx.values import Value, real

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
    one = Value((ones, graph.expand(graph.constant(0, ones.dtype), ones.shape)))
    result = x if exponent else one
    for _ in range(abs(exponent) - 1):
        result = _times(graph, result, x)
    return [result if exponent >= 0 else _divided(graph, one, result)]


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
        if (known := (zero.narrow or zero).value) is not None and not known.any():
            return Value((mul(p, r), mul(q, r)))
    return Value((graph.elementwise("Sub", mul(a, c), mul(b, d)), graph.elementwise("Add", mul(a, d), mul(b, c))))


def _divided(graph: Graph, x: Value, y: Value) -> Value:
    (c, d) = y.parts
    known = (d.narrow or d).value
    if known is not None and not known.any():
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
