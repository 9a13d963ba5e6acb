"""Replacements of arithmetic operators, and of Where, by other arithmetic."""

import functools
from typing import Any

import numpy as np

from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.targets.registry import replaces

type Inputs = list[Tensor]
type Shape = tuple[int, ...]


@replaces("Where", "Cast", "Div", "Sub", "Add")
def not_finite(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor | None:
    """``b + 0 / (1 - m)`` for a constant a that is NaN, and ``b + m / (1 - m)`` for an infinite one; m = 0 or 1."""
    condition, a, b = inputs
    for constant, other, swapped in ((a, b, False), (b, a, True)):
        value = known(constant)
        if value is None or dtype.kind != "f" or value.size != 1 or np.isfinite(value).all():
            continue
        one, number = graph.constant(1, dtype), value.item()
        mask = graph.cast(condition, dtype)
        rest = graph.elementwise("Sub", one, mask)
        mask, rest = (rest, mask) if swapped else (mask, rest)
        numerator = graph.constant(0, dtype) if np.isnan(number) else mask
        added = graph.op("Div", [numerator, rest], rest.shape, dtype)
        result = graph.elementwise("Sub" if number < 0 else "Add", other, added)
        return graph.expand(result, shape)
    return None


@replaces("Where", "Cast", "Mul", "Sub", "Add", finite=True)
def where(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor | None:
    """``m a + (1 - m) b`` with the mask m = 0 or 1: exact if both a and b are finite everywhere."""
    condition, a, b = inputs
    if dtype.kind == "f" and any((value := known(t)) is not None and not np.isfinite(value).all() for t in (a, b)):
        return None
    if dtype.kind == "b":
        wide = [condition, *(graph.cast(tensor, np.float32) for tensor in (a, b))]
        result = where(graph, wide, shape, np.dtype(np.float32))
        return result and graph.cast(result, bool)
    mask = graph.cast(condition, dtype)
    rest = graph.elementwise("Sub", graph.constant(1, dtype), mask)
    return graph.elementwise("Add", graph.elementwise("Mul", mask, a), graph.elementwise("Mul", rest, b))


@replaces("Max", "Min", "Neg")
def maximum_of_floats(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor | None:
    """``-min(-a, -b)``, of floating-point numbers."""
    return _mirrored(graph, "Min", inputs) if dtype.kind == "f" else None


@replaces("Min", "Max", "Neg")
def minimum_of_floats(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor | None:
    """``-max(-a, -b)``, of floating-point numbers."""
    return _mirrored(graph, "Max", inputs) if dtype.kind == "f" else None


@replaces("Max", "Min", "Sub")
def maximum_of_integers(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor | None:
    """``m - min(m - a, m - b)`` with all bits of m set: unlike negation, it does not overflow."""
    return _mirrored(graph, "Min", inputs) if dtype.kind in "iu" else None


@replaces("Min", "Max", "Sub")
def minimum_of_integers(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor | None:
    """``m - max(m - a, m - b)`` with all bits of m set."""
    return _mirrored(graph, "Max", inputs) if dtype.kind in "iu" else None


@replaces("Max", "Greater", "Equal", "Where")
def maximum(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``where(a > b, a, b)``, and NaN where either is NaN."""
    return _extreme(graph, "Greater", inputs)


@replaces("Min", "Less", "Equal", "Where")
def minimum(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``where(a < b, a, b)``, and NaN where either is NaN."""
    return _extreme(graph, "Less", inputs)


@replaces("Clip", "Max", "Min")
def clip(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``min(max(x, low), high)``."""
    result = inputs[0]
    for operator, bound in zip(("Max", "Min"), inputs[1:], strict=False):
        if bound is not None:
            result = graph.elementwise(operator, result, bound)
    return result


@replaces("Abs", "Neg", "Max")
def absolute(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``max(x, -x)``."""
    return graph.elementwise("Max", inputs[0], graph.elementwise("Neg", inputs[0]))


@replaces("Neg", "Mul")
def negative(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``-1 x``."""
    return graph.elementwise("Mul", inputs[0], graph.constant(-1, dtype))


@replaces("Neg", "Sub")
def subtracted(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``-0 - x``, which negates zeros as well."""
    return graph.elementwise("Sub", graph.constant(-0.0 if dtype.kind == "f" else 0, dtype), inputs[0])


@replaces("Add", "Neg", "Sub")
def addition(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor | None:
    """``a - (-b)``."""
    if dtype.kind == "u":
        return None
    return graph.elementwise("Sub", inputs[0], graph.elementwise("Neg", inputs[1]))


@replaces("Sub", "Neg", "Add")
def difference(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor | None:
    """``a + (-b)``."""
    if dtype.kind == "u":
        return None
    return graph.elementwise("Add", inputs[0], graph.elementwise("Neg", inputs[1]))


@replaces("Sign", "Greater", "Less", "Cast", "Sub")
def sign(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``(x > 0) - (x < 0)``, 0 for NaN, which the converter of JAX's sign takes care of."""
    zero = graph.constant(0, dtype)
    above, below = (graph.elementwise(name, inputs[0], zero, dtype=bool) for name in ("Greater", "Less"))
    return graph.elementwise("Sub", graph.cast(above, dtype), graph.cast(below, dtype))


@replaces("Reciprocal", "Div")
def reciprocal(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``1 / x``."""
    # Not by `elementwise`, which turns 1 / x into Reciprocal again.
    return graph.op("Div", [graph.constant(1, dtype), inputs[0]], shape, dtype)


@replaces("Div", "Reciprocal", "Mul")
def quotient(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor | None:
    """``a (1 / b)``, of floating-point numbers."""
    if dtype.kind != "f":
        return None
    return graph.elementwise("Mul", inputs[0], graph.op("Reciprocal", [inputs[1]], inputs[1].shape, dtype))


@replaces("Sqrt", "Pow", "Mul", "Add")
def square_root(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """The power 1/2, and NaN for -inf; the root of -0 is 0."""
    power = graph.elementwise("Pow", inputs[0], graph.constant(0.5, dtype))
    # That of -inf is inf, and inf - inf is NaN. The root of any other number is too large for the term to change it.
    return graph.elementwise(
        "Add", power, graph.elementwise("Mul", inputs[0], graph.constant(np.finfo(dtype).tiny, dtype))
    )


@replaces("Ceil", "Neg", "Floor")
def ceiling(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``-floor(-x)``."""
    return graph.elementwise("Neg", graph.elementwise("Floor", graph.elementwise("Neg", inputs[0])))


@replaces("Round", "Floor", "Greater", "Equal", "And", "Cast", "Mul", "Sub", "Add")
def rounded(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """The nearest integer, halves to the even one."""
    x, half = inputs[0], graph.constant(0.5, dtype)
    below = graph.elementwise("Floor", x)
    rest = graph.elementwise("Sub", x, below)
    halves = graph.elementwise("Floor", graph.elementwise("Mul", below, half))
    twice = graph.elementwise("Mul", halves, graph.constant(2, dtype))
    is_odd = graph.elementwise("Greater", below, twice, dtype=bool)
    is_tie = graph.elementwise("Equal", rest, half, dtype=bool)
    up = graph.elementwise("Greater", rest, half, dtype=bool)
    steps = [graph.cast(up, dtype), graph.cast(graph.elementwise("And", is_tie, is_odd, dtype=bool), dtype)]
    return graph.elementwise("Add", graph.elementwise("Add", below, steps[0]), steps[1])


@replaces("Sigmoid", "Neg", "Exp", "Add", "Reciprocal")
def sigmoid(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``1 / (1 + exp(-x))``."""
    exponential = graph.elementwise("Exp", graph.elementwise("Neg", inputs[0]))
    return graph.elementwise("Reciprocal", graph.elementwise("Add", exponential, graph.constant(1, dtype)))


@replaces("BitShift", "Cast", "Mul", "Div")
def shift(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, direction: str) -> Tensor | None:
    """A product with a power of two, or a quotient, for unsigned integers and a constant distance."""
    x, distance = inputs
    if (bits := known(distance)) is None or dtype.itemsize > 4:
        return None
    power = graph.constant(np.exp2(bits).astype(np.int64))
    wide = graph.cast(x, np.int64)
    return graph.cast(graph.elementwise("Mul" if direction == "LEFT" else "Div", wide, power), dtype)


@replaces("BitCast", "Cast", "Div", "Mul", "Sub", "Add", "Pow")
def bits_as_number(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, to: Any) -> Tensor | None:
    """``(1 + m) 2^e`` of the bits, of which JAX makes random numbers, with their sign; m 2^e of subnormal numbers."""
    x, real = inputs[0], np.dtype(to)
    if x.dtype.kind != "u" or real.kind != "f" or x.dtype.itemsize != real.itemsize or real.itemsize < 4:
        return None
    limits, wide = np.finfo(real), graph.cast(x, np.int64)
    # Of 64 bits, the quotient is taken without a sign, and the difference wraps around.
    half = np.int64(2**31 if real.itemsize == 4 else -(2**63))
    unsigned = wide if real.itemsize == 4 else x
    is_negative = graph.elementwise("Div", unsigned, graph.constant(2 ** (limits.bits - 1), unsigned.dtype))
    above = graph.elementwise("Mul", graph.cast(is_negative, np.int64), graph.constant(half))
    wide = graph.elementwise("Sub", wide, above)
    unit, one = graph.constant(1 << limits.nmant, np.int64), graph.constant(1, real)
    exponent = graph.elementwise("Div", wide, unit)
    mantissa = graph.elementwise("Sub", wide, graph.elementwise("Mul", exponent, unit))
    is_normal = graph.cast(graph.cast(exponent, bool), real)
    raised = graph.elementwise("Sub", graph.cast(exponent, real), graph.constant(limits.maxexp - 2, real))
    power = graph.elementwise("Pow", graph.constant(2, real), graph.elementwise("Sub", raised, is_normal))
    scaled = graph.elementwise("Mul", graph.cast(mantissa, real), graph.constant(2.0**-limits.nmant, real))
    number = graph.elementwise("Mul", graph.elementwise("Add", scaled, is_normal), power)
    signs = graph.elementwise("Mul", graph.cast(is_negative, real), graph.constant(2, real))
    number = graph.elementwise("Mul", number, graph.elementwise("Sub", one, signs))
    # The largest exponent is that of infinity, which the power is, and with a mantissa that of NaN, which 0 / 0 is.
    is_largest = graph.cast(graph.elementwise("Div", exponent, graph.constant(2 * limits.maxexp - 1, np.int64)), real)
    is_nan = graph.elementwise("Mul", is_largest, graph.cast(graph.cast(mantissa, bool), real))
    zero = graph.elementwise("Div", graph.constant(0, real), graph.elementwise("Sub", one, is_nan))
    return graph.elementwise("Sub", number, zero)  # not a sum, in which -0 would lose its sign


def known(tensor: Tensor) -> np.ndarray | None:
    """Return the array of a constant, before its broadcast; ``None`` for other tensors."""
    return (tensor.narrow or tensor).value


def _mirrored(graph: Graph, operator: str, inputs: Inputs) -> Tensor:
    """Return the greatest elements by way of the smallest of the mirrored numbers, or the reverse."""
    dtype = inputs[0].dtype

    def mirrored(x: Tensor) -> Tensor:
        if dtype.kind == "f":
            return graph.elementwise("Neg", x)
        ones = np.iinfo(dtype).max if dtype.kind == "u" else -1
        return graph.elementwise("Sub", graph.constant(ones, dtype), x)

    return mirrored(functools.reduce(lambda a, b: graph.elementwise(operator, a, b), map(mirrored, inputs)))


def _extreme(graph: Graph, operator: str, inputs: Inputs) -> Tensor:
    result = inputs[0]
    for other in inputs[1:]:
        if known(other) is not None:
            result, other = other, result
        # A comparison with NaN is false and takes `other`: right if that is the NaN.
        chosen = graph.elementwise("Where", graph.elementwise(operator, result, other, dtype=bool), result, other)
        value = known(result)
        if result.dtype.kind == "f" and (value is None or np.isnan(value).any()):
            is_number = graph.elementwise("Equal", result, result, dtype=bool)
            chosen = graph.elementwise("Where", is_number, chosen, result)
        result = chosen
    return result
