"""Replacements of operators that a target lacks by others, where these are exact and simple, and a graph with them.

Extremes, arithmetic of integers, comparisons and logic.
"""

import dataclasses
import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from simkit.export.onnx.graph import Graph
from simkit.export.onnx.model import onnx_package
from simkit.export.onnx.nodes import Tensor

type Inputs = list[Tensor]
type Shape = tuple[int, ...]
type Make = Callable[..., Tensor | None]

# Operators whose results are booleans.
_LOGICAL = ["And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Or", "Xor"]


@dataclasses.dataclass(frozen=True)
class Replacement:
    """An equivalent of an operator, made of others.

    Attributes:
        needs: operators that it is made of.
        make: ``(graph, inputs, shape, dtype, **attributes) -> tensor``, or ``None`` if it does not apply; shape and
            dtype are those of the output.
    """

    needs: tuple[str, ...]
    make: Make


# By operator, in the order in which they are tried.
REPLACEMENTS: dict[str, list[Replacement]] = {}


@functools.cache
def possible(operator: str, names: frozenset[str], busy: frozenset[str] = frozenset()) -> list[Replacement]:
    """Return the replacements of an operator that lead to operators of a target.

    Args:
        operator: of ONNX.
        names: operators of the target.
        busy: operators that are being replaced, which would be circular.
    """
    busy |= {operator}
    return [
        replacement
        for replacement in REPLACEMENTS.get(operator, ())
        if all(need in names or (need not in busy and possible(need, names, busy)) for need in replacement.needs)
    ]


class Operations:
    """Elementwise operators of tensors and numbers."""

    def __init__(self, graph: Graph) -> None:
        """Store the graph to which the operators are added."""
        self._graph = graph

    def __call__(self, operator: str, *operands: Tensor | float) -> Tensor:
        """Return the result of an operator; numbers take the type of the first tensor, and -1 has all bits set."""
        like = next(operand.dtype for operand in operands if isinstance(operand, Tensor))
        tensors = [
            operand if isinstance(operand, Tensor) else self._graph.constant(np.asarray(operand).astype(like))
            for operand in operands
        ]
        return self._graph.elementwise(operator, *tensors, dtype=bool if operator in _LOGICAL else None)

    def number(self, x: Tensor, like: Tensor) -> Tensor:
        """Return booleans as 0 and 1 in the type of another tensor."""
        return self._graph.cast(x, like.dtype)

    def logical(self, operator: str, *booleans: Tensor) -> Tensor:
        """Return whether the result of an operator of booleans, as 0 and 1, is not 0."""
        numbers = [self._graph.cast(each, np.float32) for each in booleans]
        return self._graph.cast(self._graph.elementwise(operator, *numbers), bool)


def _is_number(of: Operations, x: Tensor) -> Tensor:
    return of("Or", of("Less", x, np.inf), of("Less", -np.inf, x))


# Operator, the operators that it is made of, the kinds of NumPy types for which the rule holds, and the rule. Those of
# floating-point numbers hold for NaN, infinities and the signs of zeros.
RULES: tuple[tuple[str, str, str, Callable[..., Tensor]], ...] = (
    ("Max", "Min Neg", "f", lambda of, a, b: of("Neg", of("Min", of("Neg", a), of("Neg", b)))),
    ("Min", "Max Neg", "f", lambda of, a, b: of("Neg", of("Max", of("Neg", a), of("Neg", b)))),
    # With all bits set, -1 - a mirrors the numbers of any type of integers without overflow.
    ("Max", "Min Sub", "iu", lambda of, a, b: of("Sub", -1, of("Min", of("Sub", -1, a), of("Sub", -1, b)))),
    ("Min", "Max Sub", "iu", lambda of, a, b: of("Sub", -1, of("Max", of("Sub", -1, a), of("Sub", -1, b)))),
    ("Max", "Greater Where", "iu", lambda of, a, b: of("Where", of("Greater", a, b), a, b)),
    ("Min", "Less Where", "iu", lambda of, a, b: of("Where", of("Less", a, b), a, b)),
    # A comparison with NaN is false and takes b: right if that is the NaN.
    (
        "Max",
        "Greater Equal Where",
        "f",
        lambda of, a, b: of("Where", of("Equal", a, a), of("Where", of("Greater", a, b), a, b), a),
    ),
    (
        "Min",
        "Less Equal Where",
        "f",
        lambda of, a, b: of("Where", of("Equal", a, a), of("Where", of("Less", a, b), a, b), a),
    ),
    ("Abs", "Neg Max", "fi", lambda of, x: of("Max", x, of("Neg", x))),
    ("Neg", "Mul", "fi", lambda of, x: of("Mul", x, -1)),
    ("Neg", "Sub", "fi", lambda of, x: of("Sub", -0.0, x)),
    ("Add", "Neg Sub", "fi", lambda of, a, b: of("Sub", a, of("Neg", b))),
    ("Sub", "Neg Add", "fi", lambda of, a, b: of("Add", a, of("Neg", b))),
    (
        "Sign",
        "Greater Less Cast Sub",
        "fi",
        lambda of, x: of("Sub", of.number(of("Greater", x, 0), x), of.number(of("Less", x, 0), x)),
    ),
    ("Ceil", "Neg Floor", "f", lambda of, x: of("Neg", of("Floor", of("Neg", x)))),
    ("Greater", "Less", "fiu", lambda of, a, b: of("Less", b, a)),
    ("Less", "Greater", "fiu", lambda of, a, b: of("Greater", b, a)),
    ("LessOrEqual", "GreaterOrEqual", "fiu", lambda of, a, b: of("GreaterOrEqual", b, a)),
    ("GreaterOrEqual", "LessOrEqual", "fiu", lambda of, a, b: of("LessOrEqual", b, a)),
    ("GreaterOrEqual", "Greater Equal Or", "fiu", lambda of, a, b: of("Or", of("Greater", a, b), of("Equal", a, b))),
    ("LessOrEqual", "Less Equal Or", "fiu", lambda of, a, b: of("Or", of("Less", a, b), of("Equal", a, b))),
    (
        "Less",
        "LessOrEqual Not And",
        "fiu",
        lambda of, a, b: of("And", of("LessOrEqual", a, b), of("Not", of("LessOrEqual", b, a))),
    ),
    ("Equal", "Not Xor", "b", lambda of, a, b: of("Not", of("Xor", a, b))),
    (
        "Equal",
        "LessOrEqual And",
        "fiu",
        lambda of, a, b: of("And", of("LessOrEqual", a, b), of("LessOrEqual", b, a)),
    ),
    ("Equal", "Less Not Or", "iu", lambda of, a, b: of("Not", of("Or", of("Less", a, b), of("Less", b, a)))),
    (
        "Equal",
        "Less Not And Or",
        "f",
        lambda of, a, b: of(
            "And",
            of("And", _is_number(of, a), _is_number(of, b)),
            of("Not", of("Or", of("Less", a, b), of("Less", b, a))),
        ),
    ),
    ("IsNaN", "Equal Not", "f", lambda of, x: of("Not", of("Equal", x, x))),
    ("IsInf", "Equal Or", "f", lambda of, x: of("Or", of("Equal", x, np.inf), of("Equal", x, -np.inf))),
    ("Not", "Equal", "b", lambda of, x: of("Equal", x, False)),
    ("And", "Cast Mul", "b", lambda of, a, b: of.logical("Mul", a, b)),
    ("And", "Not Or", "b", lambda of, a, b: of("Not", of("Or", of("Not", a), of("Not", b)))),
    ("Or", "Cast Add", "b", lambda of, a, b: of.logical("Add", a, b)),
    ("Or", "Not And", "b", lambda of, a, b: of("Not", of("And", of("Not", a), of("Not", b)))),
    ("Xor", "Cast Sub", "b", lambda of, a, b: of.logical("Sub", a, b)),
    ("Xor", "Not Equal", "b", lambda of, a, b: of("Not", of("Equal", a, b))),
)


def replaces(operator: str, *needs: str) -> Callable[[Make], Make]:
    """Register a function as a replacement of an operator; replacements are tried in the order of registration.

    Args:
        operator: of ONNX.
        *needs: operators that the replacement is made of; a target must have these, or replacements of them.
    """

    def register(function: Make) -> Make:
        REPLACEMENTS.setdefault(operator, []).append(Replacement(needs, function))
        possible.cache_clear()
        return function

    return register


def _by_rule(kinds: str, rule: Callable[..., Tensor]) -> Make:
    """Return the replacement of an elementwise operator by a rule; of more than two arrays, pair by pair."""

    def make(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor | None:
        if inputs[0].dtype.kind not in kinds:
            return None
        apply = functools.partial(rule, Operations(graph))
        return functools.reduce(apply, inputs) if len(inputs) > 2 else apply(*inputs)

    return make


for _operator, _needs, _kinds, _rule in RULES:
    replaces(_operator, *_needs.split())(_by_rule(_kinds, _rule))


@replaces("Clip", "Max", "Min")
def _clip(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``min(max(x, low), high)``; each bound may be left out."""
    result = inputs[0]
    for operator, bound in zip(("Max", "Min"), inputs[1:], strict=False):
        if bound is not None:
            result = graph.elementwise(operator, result, bound)
    return result


@replaces("Reciprocal", "Div")
def _reciprocal(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
    """``1 / x``."""
    # Not by `elementwise`, which turns 1 / x into Reciprocal again.
    return graph.op("Div", [graph.constant(1, dtype), inputs[0]], shape, dtype)


@replaces("BitShift", "Cast", "Mul", "Div")
def _shift(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, direction: str) -> Tensor | None:
    """A product with a power of two, or a quotient, for unsigned integers and a constant distance."""
    x, distance = inputs
    bits = (distance.narrow or distance).value
    if bits is None or dtype.itemsize > 4:
        return None
    power = graph.constant(np.exp2(bits).astype(np.int64))
    wide = graph.cast(x, np.int64)
    return graph.cast(graph.elementwise("Mul" if direction == "LEFT" else "Div", wide, power), dtype)


@replaces("ReduceMin", "Not", "ReduceMax")
def _all(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, keepdims: int = 1) -> Tensor | None:
    """Of booleans: ``not any(not x)``."""
    if dtype.kind != "b":
        return None
    false = graph.elementwise("Not", inputs[0], dtype=bool)
    any_false = graph.op("ReduceMax", [false, inputs[1]], shape, bool, keepdims=keepdims)
    return graph.elementwise("Not", any_false, dtype=bool)


@replaces("ReduceMax", "Cast", "ReduceSum")
def _any(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, keepdims: int = 1) -> Tensor | None:
    """Of booleans: whether their sum is not 0."""
    if dtype.kind != "b":
        return None
    numbers = graph.cast(inputs[0], np.float32)
    return graph.cast(graph.op("ReduceSum", [numbers, inputs[1]], shape, np.float32, keepdims=keepdims), bool)


def sufficient(lacking: Collection[str], names: frozenset[str]) -> dict[str, str]:
    """Return for each operator that a target lacks another one with which it may be replaced, ``""`` if none helps.

    Args:
        lacking: operators of ONNX that are neither in the target nor were replaced.
        names: operators of the target.
    """
    needs = {
        need for operator in lacking for replacement in REPLACEMENTS.get(operator, ()) for need in replacement.needs
    }
    # A replacement that is possible already did not apply to the types or attributes.
    helped = {
        other: {
            operator
            for operator in lacking
            if operator != other and len(possible(operator, names | {other})) > len(possible(operator, names))
        }
        for other in sorted({*needs, *lacking} - names)
    }
    # Of several, one that is lacking itself, since the program needs it anyway, and one that helps most.
    best = sorted(helped, key=lambda other: (other not in lacking, -len(helped[other])))
    return {operator: next((other for other in best if operator in helped[other]), "") for operator in lacking}


class TargetGraph(Graph):
    """Builds a model of a target's operators; an operator without a replacement is added as it is."""

    def __init__(self, names: frozenset[str], opset: int) -> None:
        """Begin empty.

        Args:
            names: of the target's operators.
            opset: its version of ONNX.
        """
        super().__init__()
        self.names, self.opset = names, opset
        self._busy: list[str] = []

    def node(
        self, operator: str, inputs: Sequence[Tensor | None], outputs: Sequence[tuple[Sequence[int], Any]], **attrs: Any
    ) -> list[Tensor]:
        """Return the outputs of an operator or its replacement; arguments as for `Graph.node`."""
        if self._has(operator, inputs) or len(outputs) != 1:
            return super().node(operator, inputs, outputs, **attrs)
        if folded := self._folded(operator, inputs, outputs, attrs):
            return folded
        shape, dtype = outputs[0]
        for replacement in possible(operator, self.names, frozenset(self._busy)):
            self._busy.append(operator)
            made = replacement.make(self, list(inputs), tuple(int(n) for n in shape), np.dtype(dtype), **attrs)
            self._busy.pop()
            if made is not None:
                assert made.shape == tuple(shape) and made.dtype == dtype, (operator, made.shape, shape)
                return [made]
        return super().node(operator, inputs, outputs, **attrs)

    def _has(self, operator: str, inputs: Sequence[Tensor | None]) -> bool:
        """Return whether the target has an operator for the types of its inputs."""
        types = tuple("" if tensor is None else tensor.dtype.name for tensor in inputs)
        return operator in self.names and _takes(operator, types, self.opset)


@functools.cache
def _takes(operator: str, types: tuple[str, ...], opset: int) -> bool:
    """Return whether a version of ONNX defines an operator for types of inputs; ``""`` is an input that is left out."""
    schema = onnx_package().defs.get_schema(operator, opset, "")
    constraints = {constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints}
    names = {"float32": "float", "float64": "double"}
    for index, name in enumerate(types):
        formal = schema.inputs[min(index, len(schema.inputs) - 1)].type_str
        if name and f"tensor({names.get(name, name)})" not in constraints.get(formal, (formal,)):
            return False
    return True
