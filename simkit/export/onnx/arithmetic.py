"""Arithmetic and comparisons of real numbers."""

import functools

import numpy as np
from ml_dtypes import finfo

from simkit.errors import UserError
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.tracing import Equation

_ORDER = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}


@primitive("ne")
def unequal(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """``x != y``."""
    if x.dtype == bool:
        return graph.elementwise("Xor", x, y)
    return graph.elementwise("Not", graph.elementwise("Equal", x, y, dtype=bool))


@primitive(*_ORDER)
def ordered(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """``x < y`` and the like, false where either is NaN."""
    return graph.elementwise(_ORDER[equation.name], x, y, dtype=bool)


@primitive("select_n", each=True)
def select(graph: Graph, equation: Equation, which: Tensor, *cases: Tensor) -> Tensor:
    """Element by element, the case of index ``which``."""
    if which.dtype == bool:
        return choose(graph, which, *reversed(cases)) if len(cases) == 2 else cases[0]

    def step(chosen: Tensor, case: tuple[int, Tensor]) -> Tensor:
        is_case = graph.elementwise("Equal", which, graph.constant(case[0], which.dtype), dtype=bool)
        return choose(graph, is_case, case[1], chosen)

    return functools.reduce(step, list(enumerate(cases))[1:], cases[0])


def choose(graph: Graph, condition: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """Return ``yes`` where a condition is true and ``no`` elsewhere.

    Args:
        graph: under construction.
        condition: bool, of the shape of the others or a scalar.
        yes: elements where it is true.
        no: elements where it is false.
    """
    constant = (condition.narrow or condition).value
    if constant is not None and constant.size == 1:
        return yes if constant.reshape(()) else no
    if yes is no:
        return yes
    if yes.dtype == bool:
        true = graph.elementwise("And", condition, yes)
        return graph.elementwise("Or", true, graph.elementwise("And", graph.elementwise("Not", condition), no))
    return graph.elementwise("Where", condition, yes, no)


@primitive("and", "or", "xor")
def logic(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """Logical for booleans, bitwise for integers."""
    name = equation.name.capitalize()
    return graph.elementwise(name if x.dtype == bool else f"Bitwise{name}", x, y)


@primitive("not")
def negation(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Logical for booleans, bitwise for integers."""
    return graph.elementwise("Not" if x.dtype == bool else "BitwiseNot", x)


_PLAIN = {"sub": "Sub", "add": "Add", "add_any": "Add", "mul": "Mul", "max": "Max", "min": "Min"}
_LOGICAL = {"max": "Or", "min": "And", "add": "Or", "add_any": "Or", "mul": "And"}
_UNARY = {"floor": "Floor", "ceil": "Ceil", "sqrt": "Sqrt"}


@primitive(*_PLAIN)
def binary(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """``x + y`` and the like."""
    if x.dtype == bool:
        return graph.elementwise(_LOGICAL[equation.name], x, y)
    return graph.elementwise(_PLAIN[equation.name], x, y)


@primitive(*_UNARY)
def unary(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """``floor(x)`` and the like."""
    return graph.elementwise(_UNARY[equation.name], x)


@primitive("neg")
def neg(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """``-x``, modulo 2^bits for unsigned integers."""
    if x.dtype.kind == "u":
        return graph.elementwise("Sub", graph.constant(0, x.dtype), x)
    return graph.elementwise("Neg", x)


@primitive("abs")
def absolute(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """``|x|``."""
    return x if x.dtype.kind in "ub" else graph.elementwise("Abs", x)


@primitive("sign")
def sign(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """``-1``, ``0`` or ``1``; zeros keep their sign, and NaN stays."""
    signs = graph.elementwise("Sign", x)
    if x.dtype.kind != "f":
        return signs
    large = graph.elementwise("Greater", graph.elementwise("Abs", x), graph.constant(0, x.dtype), dtype=bool)
    return graph.elementwise("Where", large, signs, x)


@primitive("round")
def rounded(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """To the nearest integer; halves to the even one, or away from zero."""
    nearest = graph.elementwise("Round", x)
    if int(equation.params["rounding_method"]) == 1:
        return nearest
    half = scalar(graph, 0.5, x)
    away = graph.elementwise("Add", x, graph.elementwise("Mul", graph.elementwise("Sign", x), half))
    distance = graph.elementwise("Abs", graph.elementwise("Sub", x, nearest))
    tie = graph.elementwise("Equal", distance, half, dtype=bool)
    return graph.elementwise("Where", tie, away, nearest)


@primitive("div")
def divide(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """``x / y``; integers toward zero, with all bits set where ``y = 0``."""
    if x.dtype.kind == "f" or _never_traps(y):
        return graph.elementwise("Div", x, y)
    zero = bad = graph.elementwise("Equal", y, graph.constant(0, y.dtype), dtype=bool)
    if x.dtype.kind == "i":
        # The only quotient that overflows, -2^(bits - 1) / -1: modulo 2^bits it is the dividend, so divide by 1.
        lowest = graph.elementwise("Equal", x, graph.constant(np.iinfo(x.dtype).min, x.dtype), dtype=bool)
        minus = graph.elementwise("Equal", y, graph.constant(-1, y.dtype), dtype=bool)
        bad = graph.elementwise("Or", zero, graph.elementwise("And", lowest, minus))
    quotient = graph.elementwise("Div", x, graph.elementwise("Where", bad, graph.constant(1, y.dtype), y))
    return graph.elementwise("Where", zero, graph.constant(np.array(-1).astype(x.dtype)), quotient)


@primitive("rem")
def remainder(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """``x - y * trunc(x / y)``, with the sign of ``x``; for integers ``x`` itself where ``y = 0``."""
    if x.dtype.kind == "f" or _never_traps(y):
        return graph.elementwise("Mod", x, y, fmod=1)
    # A divisor of 1 gives the remainder of -1, which is 0, and never traps. The replacement does not depend on the
    # dividend, so that all remainders by the same divisor share its nodes.
    zero = bad = graph.elementwise("Equal", y, graph.constant(0, y.dtype), dtype=bool)
    if y.dtype.kind == "i":
        bad = graph.elementwise("Or", zero, graph.elementwise("Equal", y, graph.constant(-1, y.dtype), dtype=bool))
    rest = graph.elementwise("Mod", x, graph.elementwise("Where", bad, graph.constant(1, y.dtype), y), fmod=1)
    return graph.elementwise("Where", zero, x, rest)


def _never_traps(y: Tensor) -> bool:
    """Return whether an integer divisor is a constant without 0 and -1, on which processors may trap."""
    divisors = (y.narrow or y).value
    return divisors is not None and not np.isin(divisors, (0, -1)).any()


@primitive("pow")
def power(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """``x ** y``."""
    return graph.elementwise("Pow", x, graph.cast(y, x.dtype))


@primitive("integer_pow")
def integer_power(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """``x ** n`` by repeated squaring."""
    exponent = equation.params["y"]
    result, square, left = None, x, abs(exponent)
    while left:
        if left & 1:
            result = square if result is None else graph.elementwise("Mul", result, square)
        left >>= 1
        if left:
            square = graph.elementwise("Mul", square, square)
    unity = graph.constant(1, x.dtype)
    if result is None:
        return graph.expand(unity, x.shape)
    return result if exponent > 0 else graph.elementwise("Div", unity, result)


@primitive("clamp")
def clamp(graph: Graph, equation: Equation, low: Tensor, x: Tensor, high: Tensor) -> Tensor:
    """``x`` within bounds; NaN stays."""
    return graph.elementwise("Min", graph.elementwise("Max", x, low), high)


@primitive("reduce_precision")
def reduce_precision(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """``x`` rounded to a narrower type and cast back.

    Raises:
        UserError: if the bits are those of no type.
    """
    bits = (equation.params["exponent_bits"], equation.params["mantissa_bits"])
    layout = finfo(x.dtype)
    if bits[0] >= layout.nexp and bits[1] >= layout.nmant:
        return x
    narrow = {(8, 23): "float32", (5, 10): "float16", (8, 7): "bfloat16"}.get(bits)
    if narrow is None:
        raise UserError(
            f"{graph.origin}: reduce_precision to {bits[0]} and {bits[1]} bits has no ONNX form; use those of float16 "
            "(5 and 10), bfloat16 (8 and 7) or float32 (8 and 23)"
        )
    rounded = graph.cast(graph.cast(x, narrow), x.dtype)
    # XLA has no subnormal numbers here: they become zero, with the sign.
    tiny = graph.constant(float(finfo(narrow).tiny), x.dtype)
    small = graph.elementwise("Less", graph.elementwise("Abs", rounded), tiny, dtype=bool)
    zero = graph.elementwise("Mul", rounded, graph.constant(0, x.dtype))
    return graph.elementwise("Where", small, zero, rounded)


@primitive("is_finite")
def is_finite(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Whether ``x`` is neither infinite nor NaN: only then ``x - x = 0``."""
    return graph.elementwise("Equal", graph.elementwise("Sub", x, x), graph.constant(0, x.dtype), dtype=bool)


def scalar(graph: Graph, value: float, like: Tensor) -> Tensor:
    """Return a number in the type of a tensor."""
    return graph.constant(value, like.dtype)
