"""Arithmetic, comparisons, bits of integers and numbers, and random keys."""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from ml_dtypes import finfo

from simkit.errors import UserError
from simkit.export.onnx import tracing
from simkit.export.onnx.convert import Value, inline, joined, real, run, split
from simkit.export.onnx.elementary import formula
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.tracing import SHORT, Aval, Equation

# Operators of primitives that are one: that of numbers, and that of booleans where it is another.
OPERATORS = {
    **{"sub": ("Sub",), "mul": ("Mul", "And"), "max": ("Max", "Or"), "min": ("Min", "And")},
    **dict.fromkeys(("add", "add_any"), ("Add", "Or")),
    **{"and": ("BitwiseAnd", "And"), "or": ("BitwiseOr", "Or"), "xor": ("BitwiseXor", "Xor")},
    **{"not": ("BitwiseNot", "Not"), "floor": ("Floor",), "ceil": ("Ceil",), "sqrt": ("Sqrt",)},
    **{"exp": ("Exp",), "log": ("Log",), "sin": ("Sin",), "cos": ("Cos",), "tanh": ("Tanh",)},
}
# The same for comparisons, which are false where either number is NaN.
COMPARISONS = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}


@primitive(*OPERATORS)
def operator(graph: Graph, equation: Equation, *tensors: Tensor) -> Tensor:
    """``x + y``, ``exp(x)`` and the like."""
    names = OPERATORS[equation.name]
    return graph.elementwise(names[-1] if tensors[0].dtype == bool else names[0], *tensors)


@primitive("ne")
def unequal(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """``x != y``."""
    if x.dtype == bool:
        return graph.elementwise("Xor", x, y)
    return graph.elementwise("Not", graph.elementwise("Equal", x, y))


@primitive(*COMPARISONS)
def comparison(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """``x < y`` and the like."""
    return graph.elementwise(COMPARISONS[equation.name], x, y)


@primitive("select_n", each=True)
def select(graph: Graph, equation: Equation, which: Tensor, *cases: Tensor) -> Tensor:
    """Element by element, the case of index ``which``."""
    if which.dtype == bool:
        return choose(graph, which, *reversed(cases)) if len(cases) == 2 else cases[0]

    def step(chosen: Tensor, case: tuple[int, Tensor]) -> Tensor:
        is_case = graph.elementwise("Equal", which, case[0])
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


@primitive("neg")
def neg(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """``-x``, modulo 2^bits for unsigned integers."""
    if x.dtype.kind == "u":
        return graph.elementwise("Sub", 0, x)
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
    large = graph.elementwise("Greater", graph.elementwise("Abs", x), 0)
    return graph.elementwise("Where", large, signs, x)


@primitive("round")
def rounded(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """To the nearest integer; halves to the even one, or away from zero."""
    nearest = graph.elementwise("Round", x)
    if int(equation.params["rounding_method"]) == 1:
        return nearest
    away = graph.elementwise("Add", x, graph.elementwise("Mul", graph.elementwise("Sign", x), 0.5))
    distance = graph.elementwise("Abs", graph.elementwise("Sub", x, nearest))
    tie = graph.elementwise("Equal", distance, 0.5)
    return graph.elementwise("Where", tie, away, nearest)


@primitive("div", "rem")
def divide(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """``x / y``, or ``x - y * trunc(x / y)`` with the sign of ``x``.

    Integers are divided toward zero; where ``y = 0`` all bits of the quotient are set, and the remainder is ``x``.
    """
    kind, attributes = ("Div", {}) if equation.name == "div" else ("Mod", {"fmod": 1})
    if x.dtype.kind == "f" or _never_traps(y):
        return graph.elementwise(kind, x, y, **attributes)
    # Processors may trap on 0, and on -1, by which -2^(bits - 1) overflows. The divisor in their place does not depend
    # on the dividend, so that all results by the same divisor share its nodes.
    zero = graph.elementwise("Equal", y, 0)
    minus = graph.elementwise("Equal", y, -1) if y.dtype.kind == "i" else None
    bad = zero if minus is None else graph.elementwise("Or", zero, minus)
    safe = graph.elementwise("Where", bad, 1, y)
    result = graph.elementwise(kind, x, safe, **attributes)
    if kind == "Mod":  # the remainder by 1 is that by -1
        return graph.elementwise("Where", zero, x, result)
    if minus is not None:
        result = graph.elementwise("Where", minus, graph.elementwise("Neg", x), result)
    return graph.elementwise("Where", zero, graph.constant(np.array(-1).astype(x.dtype)), result)


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
    small = graph.elementwise("Less", graph.elementwise("Abs", rounded), float(finfo(narrow).tiny))
    zero = graph.elementwise("Mul", rounded, 0)
    return graph.elementwise("Where", small, zero, rounded)


@primitive("is_finite")
def is_finite(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Whether ``x`` is neither infinite nor NaN: only then ``x - x = 0``."""
    return graph.elementwise("Equal", graph.elementwise("Sub", x, x), 0)


_TOTAL = {"lt_to": "Less", "le_to": "LessOrEqual"}


_DIRECTIONS = {"shift_left": "LEFT", "shift_right_logical": "RIGHT"}


@primitive(*_DIRECTIONS)
def shift(graph: Graph, equation: Equation, x: Tensor, distance: Tensor) -> Tensor:
    """``x << distance`` and ``x >> distance`` with zeros moving in; 0 where the distance is at least the width."""
    width, kind, direction = 8 * x.dtype.itemsize, x.dtype, _DIRECTIONS[equation.name]
    x, distance = (bit_cast(graph, each, np.dtype(f"uint{width}")) for each in (x, distance))
    bits = (distance.narrow or distance).value
    if bits is not None and (bits < width).all():
        return bit_cast(graph, graph.elementwise("BitShift", x, distance, direction=direction), kind)
    inside = graph.elementwise("Less", distance, width)
    safe = graph.elementwise("Where", inside, distance, 0)
    result = graph.elementwise("BitShift", x, safe, direction=direction)
    return bit_cast(graph, graph.elementwise("Where", inside, result, 0), kind)


@formula("shift_right_arithmetic")
def shift_right_arithmetic(x: Any, distance: Any) -> Any:
    """``x >> distance`` with copies of the highest bit moving in: ``~(~x >> distance)`` where it is set."""
    is_set = x.astype(f"int{8 * x.dtype.itemsize}") < 0
    result = lax.shift_right_logical(jnp.where(is_set, ~x, x), distance)
    return jnp.where(is_set, ~result, result)


@formula("population_count")
def population_count(x: Any) -> Any:
    """Number of set bits, summed in pairs, fours and eights (Warren, Hacker's Delight, 2nd edition, section 5-1)."""
    width = 8 * x.dtype.itemsize
    count, distance = x.astype(f"uint{width}"), 1
    while distance < width:
        mask = np.asarray(sum(((1 << distance) - 1) << bit for bit in range(0, width, 2 * distance)), count.dtype)
        count, distance = (count & mask) + ((count >> distance) & mask), 2 * distance
    return count.astype(x.dtype)


@formula("clz")
def leading_zeros(x: Any) -> Any:
    """Number of zero bits above the highest set bit."""
    width = 8 * x.dtype.itemsize
    bits, distance = x.astype(f"uint{width}"), 1
    while distance < width:
        bits, distance = bits | (bits >> distance), 2 * distance
    return lax.population_count(~bits).astype(x.dtype)


@primitive("bitcast_convert_type")
def bitcast_convert_type(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """The same bits as another type; a wider one takes several numbers, the lowest bits first."""
    x = graph.cast(x, SHORT) if equation.inputs[0].short else x
    target = SHORT if equation.out.short else np.dtype(equation.params["new_dtype"])
    bits, size = bit_cast(graph, x, np.dtype(f"uint{8 * x.dtype.itemsize}")), x.dtype.itemsize
    if target.itemsize < size:

        def parted(bits: Any) -> Any:
            shifts = np.arange(size // target.itemsize, dtype=bits.dtype) * (8 * target.itemsize)
            return (bits[..., None] >> shifts).astype(f"uint{8 * target.itemsize}")

        bits = inline(graph, parted, bits)[0]
    elif target.itemsize > size:

        def united(bits: Any) -> Any:
            # The shifted numbers have no bit in common, so that their sum is their union.
            wide = bits.astype(f"uint{8 * target.itemsize}")
            return (wide << (np.arange(wide.shape[-1], dtype=wide.dtype) * (8 * size))).sum(-1, dtype=wide.dtype)

        bits = inline(graph, united, bits)[0]
    return graph.cast(bit_cast(graph, bits, target), equation.out.dtype if equation.out.short else target)


def bit_cast(graph: Graph, x: Tensor, dtype: np.dtype) -> Tensor:
    """Return the same bits as another type of equal width."""
    if x.dtype == dtype:
        return x
    if x.dtype.kind in "iu" and dtype.kind in "iu":
        return graph.cast(x, dtype)
    return graph.elementwise("BitCast", x, dtype=dtype, to=dtype.name)


def ordered_bits(graph: Graph, x: Tensor) -> Tensor:
    """Return signed integers in the order of floating-point numbers, -0 below 0 and NaN above all.

    Args:
        graph: under construction.
        x: floating-point numbers.
    """
    integer = np.dtype(f"int{8 * x.dtype.itemsize}")
    bits = bit_cast(graph, x, integer)
    negative = graph.elementwise("Less", bits, 0)
    # Negative numbers with larger bit patterns are smaller.
    flipped = graph.elementwise("BitwiseXor", bits, np.iinfo(integer).max)
    return graph.elementwise("Where", negative, flipped, bits)


@primitive(*_TOTAL, "eq_to")
def total_order(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """The order of IEEE 754 in which -0 is below 0 and NaN is above all; of other types the plain order."""
    operator = _TOTAL.get(equation.name, "Equal")
    if x.dtype.kind != "f":
        return graph.elementwise(operator, x, y)
    return graph.elementwise(operator, ordered_bits(graph, x), ordered_bits(graph, y))


@primitive("convert_element_type")
def convert_element_type(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Conversion to another type; to integers toward zero, clipped to their range, with 0 for NaN."""
    target = np.dtype(equation.params["new_dtype"])
    if target.kind == "b" and x.dtype.kind != "b":
        return graph.elementwise("Not", graph.elementwise("Equal", x, 0))
    if x.dtype.kind != "f" or target.kind not in "iu":
        return graph.cast(x, target)
    limits = np.iinfo(target)
    exact = graph.cast(x, np.float64)
    exact = graph.elementwise("Where", graph.elementwise("Equal", exact, exact), exact, 0.0)
    if target.itemsize < 8:
        return graph.cast(graph.elementwise("Clip", exact, float(limits.min), float(limits.max)), target)
    # The largest double below the limit, which has no double of its own.
    top = np.nextafter(float(limits.max), 0.0)
    inside = graph.cast(graph.elementwise("Clip", exact, float(limits.min), top), target)
    beyond = graph.elementwise("Greater", exact, top)
    return choose(graph, beyond, graph.constant(limits.max, target), inside)


@primitive("nextafter")
def next_after(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """The neighbor of ``x`` toward ``y``; numbers of bfloat16 are those of float32 whose last 16 bits are zero."""
    return inline(graph, neighbor, x, y, step=1 << 16 if equation.out.short else 1)[0]


def neighbor(x: Any, y: Any, *, step: int) -> Any:
    """Return ``x`` moved toward ``y`` by its bits (positive numbers have the order of their bit patterns)."""
    integer = jnp.dtype(f"int{8 * x.dtype.itemsize}")
    bits = lax.bitcast_convert_type(x, integer)
    away = (y > x) == (x > 0)
    moved = lax.bitcast_convert_type(bits + jnp.where(away, step, -step).astype(integer), x.dtype)
    least = lax.bitcast_convert_type(jnp.full_like(bits, step), x.dtype)
    moved = jnp.where(x == 0, jnp.where(y > 0, least, -least), moved)
    return jnp.where(jnp.isnan(x) | jnp.isnan(y), x + y, jnp.where(x == y, y, moved))


@primitive("random_wrap", whole=True)
def random_wrap(graph: Graph, equation: Equation, data: Value) -> list[Value]:
    """Keys from their words."""
    return [keys_of(graph, data.parts[0], equation.params["impl"])]


@primitive("random_unwrap", whole=True)
def random_unwrap(graph: Graph, equation: Equation, keys: Value) -> list[Value]:
    """The words of keys."""
    return [real(joined(graph, keys))]


@primitive("random_bits", "random_split", "random_fold_in", "random_seed", whole=True)
def random(graph: Graph, equation: Equation, *values: Value) -> list[Value]:
    """Bits or keys derived from keys, and keys from seeds."""
    generator = equation.params.get("impl") or next(value.key for value in values if value.key is not None)
    shape = np.broadcast_shapes(*(aval.shape for aval in equation.inputs))
    wide = [Value(tuple(graph.expand(part, shape) for part in value.parts), value.key) for value in values]
    whole = [real(joined(graph, value)) for value in wide]
    (result,) = run(graph, tracing.random_program(equation, generator), whole)
    if equation.out.key is None:
        return [result]
    return [keys_of(graph, result.parts[0], generator)]


def keys_of(graph: Graph, words: Tensor, generator: Any) -> Value:
    """Return keys from their words, uint32 ``(..., words)``."""
    return split(graph, words, Aval(words.shape[:-1], words.dtype, generator))


@primitive("iota_2x32_shape", whole=True)
def iota_2x32_shape(graph: Graph, equation: Equation) -> list[Value]:
    """The flat index of each element, its high and its low 32 bits."""
    shape = equation.params["shape"]
    number = np.arange(int(np.prod(shape)), dtype=np.uint64).reshape(shape)
    return [real(graph.constant((part & 0xFFFFFFFF).astype(np.uint32))) for part in (number >> np.uint64(32), number)]
