"""Replacements of operators that a target lacks by others, where these are exact and simple, and a graph with them.

Extremes, arithmetic of integers, comparisons and logic.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from simkit.export.onnx.convert import inline
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.model import onnx_package
from simkit.export.onnx.nodes import Tensor

type Inputs = list[Tensor]
type Shape = tuple[int, ...]
type Make = Callable[..., Tensor | None]


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


def _mirrored(x: Any) -> Any:
    """Return ``-1 - x``: with all bits set, -1 mirrors the numbers of any type of integers without overflow."""
    return np.asarray(-1).astype(x.dtype) - x


def _unequal_below(a: Any, b: Any) -> Any:
    return ~((a < b) | (b < a))


# Operator, the operators that it is made of, the kinds of NumPy types for which the rule holds, and the rule, which is
# converted as any function of JAX. Those of floating-point numbers hold for NaN, infinities and the signs of zeros.
RULES: tuple[tuple[str, str, str, Callable[..., Any]], ...] = (
    ("Max", "Min Neg", "f", lambda a, b: -jnp.minimum(-a, -b)),
    ("Min", "Max Neg", "f", lambda a, b: -jnp.maximum(-a, -b)),
    ("Max", "Min Sub", "iu", lambda a, b: _mirrored(jnp.minimum(_mirrored(a), _mirrored(b)))),
    ("Min", "Max Sub", "iu", lambda a, b: _mirrored(jnp.maximum(_mirrored(a), _mirrored(b)))),
    ("Max", "Greater Where", "iu", lambda a, b: jnp.where(a > b, a, b)),
    ("Min", "Less Where", "iu", lambda a, b: jnp.where(a < b, a, b)),
    # A comparison with NaN is false and takes b: right if that is the NaN.
    ("Max", "Greater Equal Where", "f", lambda a, b: jnp.where(a == a, jnp.where(a > b, a, b), a)),
    ("Min", "Less Equal Where", "f", lambda a, b: jnp.where(a == a, jnp.where(a < b, a, b), a)),
    ("Abs", "Neg Max", "fi", lambda x: jnp.maximum(x, -x)),
    ("Neg", "Mul", "fi", lambda x: x * -1),
    ("Neg", "Sub", "fi", lambda x: np.asarray(-0.0).astype(x.dtype) - x),
    ("Add", "Neg Sub", "fi", lambda a, b: a - (-b)),
    ("Sub", "Neg Add", "fi", lambda a, b: a + (-b)),
    ("Sign", "Greater Less Cast Sub", "fi", lambda x: (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)),
    ("Ceil", "Neg Floor", "f", lambda x: -jnp.floor(-x)),
    ("Greater", "Less", "fiu", lambda a, b: b < a),
    ("Less", "Greater", "fiu", lambda a, b: b > a),
    ("LessOrEqual", "GreaterOrEqual", "fiu", lambda a, b: b >= a),
    ("GreaterOrEqual", "LessOrEqual", "fiu", lambda a, b: b <= a),
    ("GreaterOrEqual", "Greater Equal Or", "fiu", lambda a, b: (a > b) | (a == b)),
    ("LessOrEqual", "Less Equal Or", "fiu", lambda a, b: (a < b) | (a == b)),
    ("Less", "LessOrEqual Not And", "fiu", lambda a, b: (a <= b) & ~(b <= a)),
    ("Equal", "Not Xor", "b", lambda a, b: ~(a ^ b)),
    ("Equal", "LessOrEqual And", "fiu", lambda a, b: (a <= b) & (b <= a)),
    ("Equal", "Less Not Or", "iu", _unequal_below),
    (
        "Equal",
        "Less Not And Or",
        "f",
        lambda a, b: ((a < np.inf) | (-np.inf < a)) & ((b < np.inf) | (-np.inf < b)) & _unequal_below(a, b),
    ),
    ("IsNaN", "Equal Not", "f", lambda x: ~(x == x)),
    ("IsInf", "Equal Or", "f", lambda x: (x == np.inf) | (x == -np.inf)),
    ("Not", "Equal", "b", lambda x: x == False),  # noqa: E712
    ("And", "Not Or", "b", lambda a, b: ~(~a | ~b)),
    ("Or", "Not And", "b", lambda a, b: ~(~a & ~b)),
    ("Xor", "Not Equal", "b", lambda a, b: ~(a == b)),
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


def _by_rule(kinds: str, rule: Callable[..., Any]) -> Make:
    """Return the replacement of an elementwise operator by a rule; of more than two arrays, pair by pair."""

    def make(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor | None:
        if inputs[0].dtype.kind not in kinds:
            return None
        if len(inputs) == 1:
            return inline(graph, rule, *inputs)[0]
        return functools.reduce(lambda a, b: inline(graph, rule, a, b)[0], inputs)

    return make


for _operator, _needs, _kinds, _rule in RULES:
    replaces(_operator, *_needs.split())(_by_rule(_kinds, _rule))


def _with_numbers(operator: str) -> Make:
    """Return the replacement of an operator of booleans by one of 0 and 1, whose result is true where it is not 0."""

    def make(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype) -> Tensor:
        numbers = [graph.cast(each, np.float32) for each in inputs]
        return graph.cast(graph.elementwise(operator, *numbers), bool)

    return make


for _operator, _other in (("And", "Mul"), ("Or", "Add"), ("Xor", "Sub")):
    replaces(_operator, "Cast", _other)(_with_numbers(_other))


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
    false = graph.elementwise("Not", inputs[0])
    any_false = graph.op("ReduceMax", [false, inputs[1]], shape, bool, keepdims=keepdims)
    return graph.elementwise("Not", any_false)


@replaces("ReduceMax", "Cast", "ReduceSum")
def _any(graph: Graph, inputs: Inputs, shape: Shape, dtype: np.dtype, keepdims: int = 1) -> Tensor | None:
    """Of booleans: whether their sum is not 0."""
    if dtype.kind != "b":
        return None
    numbers = graph.cast(inputs[0], np.float32)
    return graph.cast(graph.op("ReduceSum", [numbers, inputs[1]], shape, np.float32, keepdims=keepdims), bool)


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

    def copied(self, tensor: Tensor) -> Tensor:
        """Return a copy of a tensor: by Reshape if the target lacks Identity."""
        if "Identity" in self.names or "Reshape" not in self.names:
            return super().copied(tensor)
        shape = self.vector(tensor.shape)
        return self.block("Reshape", [tensor, shape], [(tensor.shape, tensor.dtype)], {})[0]

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
