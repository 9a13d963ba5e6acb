"""Replacements of comparisons, boolean operators, and reductions by logic and extremes."""

import math

import numpy as np

from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.targets.registry import replaces

type Inputs = list[Tensor]
type Shape = tuple[int, ...]


@replaces("Greater", "Less")
def greater(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``b < a``."""
    return graph.elementwise("Less", inputs[1], inputs[0], dtype=bool)


@replaces("Less", "Greater")
def less(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``b > a``."""
    return graph.elementwise("Greater", inputs[1], inputs[0], dtype=bool)


@replaces("LessOrEqual", "GreaterOrEqual")
def less_or_equal(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``b >= a``."""
    return graph.elementwise("GreaterOrEqual", inputs[1], inputs[0], dtype=bool)


@replaces("GreaterOrEqual", "LessOrEqual")
def turned_greater_or_equal(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``b <= a``."""
    return graph.elementwise("LessOrEqual", inputs[1], inputs[0], dtype=bool)


@replaces("Less", "LessOrEqual", "Not", "And")
def less_by_parts(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``a <= b and not b <= a``, false for NaN."""
    a, b = inputs
    forward, back = (graph.elementwise("LessOrEqual", *pair, dtype=bool) for pair in ((a, b), (b, a)))
    return graph.elementwise("And", forward, graph.elementwise("Not", back), dtype=bool)


@replaces("Equal", "Not", "Xor")
def same_truth(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor | None:
    """Of booleans: ``not (a xor b)``."""
    if inputs[0].dtype.kind != "b":
        return None
    return graph.elementwise("Not", graph.elementwise("Xor", *inputs))


@replaces("Equal", "LessOrEqual", "And")
def equal_by_order(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``a <= b and b <= a``, false for NaN."""
    a, b = inputs
    sides = [graph.elementwise("LessOrEqual", *pair, dtype=bool) for pair in ((a, b), (b, a))]
    return graph.elementwise("And", *sides, dtype=bool)


@replaces("Equal", "Less", "Not", "And", "Or")
def equal_by_strict_order(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``not (a < b or b < a)``, and false for NaN: of numbers that are in ``x < inf or -inf < x``."""
    a, b = inputs
    different = [graph.elementwise("Less", *pair, dtype=bool) for pair in ((a, b), (b, a))]
    result = graph.elementwise("Not", graph.elementwise("Or", *different, dtype=bool))
    for x in [a] if a is b else [a, b]:
        value = (x.narrow or x).value
        if x.dtype.kind != "f" or (value is not None and not np.isnan(value).any()):
            continue
        ends = (x, graph.constant(np.inf, x.dtype)), (graph.constant(-np.inf, x.dtype), x)
        is_number = graph.elementwise("Or", *(graph.elementwise("Less", *pair, dtype=bool) for pair in ends))
        result = is_number if a is b else graph.elementwise("And", result, is_number)
    return result


@replaces("GreaterOrEqual", "Greater", "Equal", "Or")
def greater_or_equal(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``a > b or a = b``, false for NaN."""
    sides = [graph.elementwise(name, *inputs, dtype=bool) for name in ("Greater", "Equal")]
    return graph.elementwise("Or", *sides, dtype=bool)


@replaces("LessOrEqual", "Less", "Equal", "Or")
def less_or_equal_by_parts(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``a < b or a = b``, false for NaN."""
    sides = [graph.elementwise(name, *inputs, dtype=bool) for name in ("Less", "Equal")]
    return graph.elementwise("Or", *sides, dtype=bool)


@replaces("IsNaN", "Equal", "Not")
def is_nan(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``not x = x``."""
    return graph.elementwise("Not", graph.elementwise("Equal", inputs[0], inputs[0], dtype=bool), dtype=bool)


@replaces("IsInf", "Equal", "Or")
def is_infinite(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``x = inf or x = -inf``."""
    x = inputs[0]
    ends = [graph.elementwise("Equal", x, graph.constant(number, x.dtype), dtype=bool) for number in (np.inf, -np.inf)]
    return graph.elementwise("Or", *ends, dtype=bool)


@replaces("Not", "Cast", "Sub")
def negation(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``1 - x``."""
    rest = graph.elementwise("Sub", graph.constant(1, np.float32), graph.cast(inputs[0], np.float32))
    return graph.cast(rest, bool)


@replaces("Not", "Equal")
def equal_to_false(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``x = false``."""
    return graph.elementwise("Equal", inputs[0], graph.constant(False))


@replaces("And", "Cast", "Mul")
def both(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``a b``."""
    return graph.cast(graph.elementwise("Mul", *(graph.cast(t, np.float32) for t in inputs)), bool)


@replaces("And", "Not", "Or")
def not_either_not(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``not (not a or not b)``."""
    return graph.elementwise("Not", graph.elementwise("Or", *(graph.elementwise("Not", x) for x in inputs)))


@replaces("Or", "Cast", "Add")
def either(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``a + b``, which is true unless it is 0."""
    return graph.cast(graph.elementwise("Add", *(graph.cast(t, np.float32) for t in inputs)), bool)


@replaces("Or", "Not", "And")
def not_both_not(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``not (not a and not b)``."""
    return graph.elementwise("Not", graph.elementwise("And", *(graph.elementwise("Not", x) for x in inputs)))


@replaces("Xor", "Cast", "Sub")
def one_of(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``a - b``, which is true unless it is 0."""
    return graph.cast(graph.elementwise("Sub", *(graph.cast(t, np.float32) for t in inputs)), bool)


@replaces("Xor", "Not", "Equal")
def unequal_truth(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``not a = b``."""
    return graph.elementwise("Not", graph.elementwise("Equal", *inputs))


@replaces("ReduceMin", "Not", "ReduceMax")
def all_of(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, keepdims: int = 1) -> Tensor | None:
    """Of booleans: ``not any(not x)``."""
    if dtype.kind != "b":
        return None
    false = graph.elementwise("Not", inputs[0], dtype=bool)
    any_false = graph.op("ReduceMax", [false, inputs[1]], shape, bool, keepdims=keepdims)
    return graph.elementwise("Not", any_false, dtype=bool)


@replaces("ReduceMax", "Cast", "ReduceSum")
def any_of(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, keepdims: int = 1) -> Tensor | None:
    """Of booleans: whether their sum is not 0."""
    if dtype.kind != "b":
        return None
    numbers = graph.cast(inputs[0], np.float32)
    return graph.cast(graph.op("ReduceSum", [numbers, inputs[1]], shape, np.float32, keepdims=keepdims), bool)


@replaces("ReduceMax", "Max", "Transpose", "Reshape", "Slice")
def greatest(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, keepdims: int = 1) -> Tensor | None:
    """The greater elements of two halves, until one element is left."""
    return _halved(graph, "Max", inputs, shape)


@replaces("ReduceMin", "Min", "Transpose", "Reshape", "Slice")
def least(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, keepdims: int = 1) -> Tensor | None:
    """The smaller elements of two halves, until one element is left."""
    return _halved(graph, "Min", inputs, shape)


def _halved(graph: Graph, operator: str, inputs: Inputs, shape: Shape) -> Tensor | None:
    x, axes = inputs
    if axes.value is None or x.dtype.kind == "b" or 0 in x.shape:
        return None
    reduced = sorted(int(axis) % len(x.shape) for axis in axes.value)
    kept = [axis for axis in range(len(x.shape)) if axis not in reduced]
    rows, size = (math.prod(x.shape[axis] for axis in own) for own in (kept, reduced))
    result = graph.reshape(graph.transpose(x, [*kept, *reduced]), (rows, size))
    while size > 1:
        half = size // 2
        # The halves of an odd number of elements overlap by one.
        sides = [
            graph.op("Slice", [result, *map(graph.vector, ([a], [b], [1], [1]))], (rows, b - a), x.dtype)
            for a, b in ((0, size - half), (half, size))
        ]
        result, size = graph.elementwise(operator, *sides), size - half
    return graph.reshape(result, shape)
