"""Nodes and tensors of a graph under construction, folding of constants, sharing of equal nodes."""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np


def _slice(x: np.ndarray, starts: Any, ends: Any, axes: Any, steps: Any) -> np.ndarray:
    cut = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        # An end below -size means "through the first element" with a negative step.
        cut[axis] = slice(start, None if step < 0 and end < -x.shape[axis] else end, step)
    return x[tuple(cut)]


def _pad(x: np.ndarray, pads: np.ndarray, value: np.ndarray, **_: Any) -> np.ndarray:
    return np.pad(x, list(zip(pads[: x.ndim], pads[x.ndim :], strict=True)), constant_values=value)


def _divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f":
        return x / y
    quotient = x // y
    # ONNX rounds toward zero, NumPy down.
    return quotient + ((quotient < 0) & (quotient * y != x))


def _shift(x: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:
    return np.left_shift(x, y) if direction == "LEFT" else np.right_shift(x, y)


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: np.ndarray, axes: np.ndarray, keepdims: int = 1) -> np.ndarray:
        return function(x, axis=tuple(int(axis) for axis in axes), keepdims=bool(keepdims))

    return run


# Functions whose last bit differs between libraries (Exp, Sin, ...) are left to the runtime.
FOLDED: dict[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Add": np.add,
    "And": np.logical_and,
    "BitCast": lambda x, to: x.view(to),
    "BitShift": _shift,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseNot": np.bitwise_not,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Cast": lambda x, to: x.astype(to),
    "Clip": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "Concat": lambda *x, axis: np.concatenate(x, axis),
    "Div": _divide,
    "Equal": np.equal,
    "Expand": lambda x, shape: np.broadcast_to(x, shape),
    "Floor": np.floor,
    "Gather": lambda x, i, axis=0: np.take(x, i, axis),
    "GatherElements": lambda x, i, axis=0: np.take_along_axis(x, i, axis),
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Or": np.logical_or,
    "Pad": _pad,
    "ReduceMax": _reduced(np.max),
    "ReduceMin": _reduced(np.min),
    "ReduceSum": _reduced(np.sum),
    "Reshape": lambda x, shape, allowzero=0: np.reshape(x, shape),
    "Slice": _slice,
    "Sqrt": np.sqrt,
    "Sub": np.subtract,
    "Transpose": lambda x, perm: np.transpose(x, perm),
    "Where": np.where,
    "Xor": np.logical_xor,
}

# Largest number of elements of a folded constant, unless its inputs have more.
LARGEST_FOLDED = 4096


@dataclasses.dataclass(eq=False)
class Tensor:
    """One named array of the graph.

    Attributes:
        name: unique in the whole model.
        shape: its size in each dimension.
        dtype: of its elements.
        scope: in which it is computed.
        value: the array of a constant, ``None`` for others.
        narrow: the smaller tensor of which this one is a broadcast, ``None`` for others.
        maker: the node that computes it, ``None`` for inputs and constants.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    scope: "Scope"
    value: np.ndarray | None = None
    narrow: "Tensor | None" = None
    maker: "Node | None" = None


@dataclasses.dataclass(eq=False)
class Node:
    """One operator, with its attributes and the bodies of a Loop or If by attribute name."""

    operator: str
    inputs: list[Tensor | None]
    outputs: list[Tensor]
    attributes: dict[str, Any]
    bodies: dict[str, "Scope"] = dataclasses.field(default_factory=dict)
    origin: str = ""


@dataclasses.dataclass(eq=False)
class Scope:
    """The graph, or the body of a Loop, Scan or If, whose nodes may read tensors of the scopes around it.

    Attributes:
        outer: the scope around it.
        hoists: whether a node that depends on outer tensors only is placed outside: so in loops, which need not repeat
            it, but not in branches, which may not be taken.
        inputs: its own inputs.
        outputs: its own outputs.
        nodes: in the order of computation.
        shared: outputs of nodes by operator, inputs and attributes.
    """

    outer: "Scope | None" = None
    hoists: bool = False
    inputs: list[Tensor] = dataclasses.field(default_factory=list)
    outputs: list[Tensor] = dataclasses.field(default_factory=list)
    nodes: list[Node] = dataclasses.field(default_factory=list)
    shared: dict[Any, list[Tensor]] = dataclasses.field(default_factory=dict)

    def chain(self) -> "Iterator[Scope]":
        """Yield this scope and those around it, from the inside out."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


class NodeGraph:
    """Builds a model, node by node."""

    def __init__(self) -> None:
        """Begin empty."""
        self.top = Scope()
        self.scope = self.top
        # Source line of the user's program that is being converted, and whether the converter's own code is.
        self.origin = "the program"
        self.ours = False
        self._count = 0
        self._constants: dict[Any, Tensor] = {}

    def tensor(self, shape: Sequence[int], dtype: Any, scope: Scope, value: np.ndarray | None = None) -> Tensor:
        """Return a new tensor with a unique name."""
        self._count += 1
        return Tensor(f"t{self._count}", tuple(int(size) for size in shape), np.dtype(dtype), scope, value)

    def input(self, shape: Sequence[int], dtype: Any, name: str = "") -> Tensor:
        """Return a new input of the current scope."""
        tensor = self.tensor(shape, dtype, self.scope)
        tensor.name = name or tensor.name
        self.scope.inputs.append(tensor)
        return tensor

    def known(self, value: np.ndarray, dtype: Any = None) -> Tensor:
        """Return a constant in its full shape; equal ones are one tensor."""
        array = np.asarray(value, dtype)
        key = (array.shape, array.dtype.name, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.tensor(array.shape, array.dtype, self.top, np.array(array, order="C"))
        return self._constants[key]

    def node(
        self, operator: str, inputs: Sequence[Tensor | None], outputs: Sequence[tuple[Sequence[int], Any]], **attrs: Any
    ) -> list[Tensor]:
        """Return the outputs of an operator: constants if all inputs are, those of an equal node if one exists.

        Args:
            operator: of ONNX.
            inputs: tensors, ``None`` for an optional input that is left out.
            outputs: shape and dtype of each.
            **attrs: its attributes.
        """
        if folded := self._folded(operator, inputs, outputs, attrs):
            return folded
        key = (operator, tuple(t and t.name for t in inputs), tuple(sorted((k, repr(v)) for k, v in attrs.items())))
        home = self._home(inputs)
        for scope in home.chain():
            if key in scope.shared:
                return scope.shared[key]
        made = [self.tensor(shape, dtype, home) for shape, dtype in outputs]
        home.nodes.append(Node(operator, list(inputs), made, attrs, origin=self.origin))
        for tensor in made:
            tensor.maker = home.nodes[-1]
        home.shared[key] = made
        return made

    def op(self, operator: str, inputs: Sequence[Tensor | None], shape: Sequence[int], dtype: Any, **at: Any) -> Tensor:
        """Return the only output of an operator, see `node`."""
        return self.node(operator, inputs, [(shape, dtype)], **at)[0]

    @contextlib.contextmanager
    def body(self, hoists: bool = True) -> Iterator[Scope]:
        """Context in which nodes are added to a new scope, the body of a loop or branch.

        Args:
            hoists: whether nodes that depend on outer tensors only are placed outside, see `Scope`.
        """
        outer, self.scope = self.scope, Scope(self.scope, hoists)
        try:
            yield self.scope
        finally:
            self.scope = outer

    def block(
        self, operator: str, inputs: Sequence[Any], outputs: Sequence[tuple[Any, Any]], bodies: Any, **attrs: Any
    ) -> list[Tensor]:
        """Return the outputs of a Loop, Scan or If, of given shapes and dtypes, with its bodies by attribute name."""
        made = [self.tensor(shape, dtype, self.scope) for shape, dtype in outputs]
        self.scope.nodes.append(Node(operator, list(inputs), made, attrs, bodies, self.origin))
        return made

    def copied(self, tensor: Tensor) -> Tensor:
        """Return a copy of a tensor, computed in the current scope."""
        return self.block("Identity", [tensor], [(tensor.shape, tensor.dtype)], {})[0]

    def constants(self) -> list[Tensor]:
        """Return all constants."""
        return list(self._constants.values())

    def vector(self, numbers: Sequence[int]) -> Tensor:
        """Return an int64 vector, for shapes, axes and starts."""
        return self.known(np.array(numbers, np.int64))

    def _home(self, inputs: Sequence[Tensor | None]) -> Scope:
        """Return the outermost scope for a node with these inputs that can be reached through hoisting scopes."""
        scopes = {id(tensor.scope) for tensor in inputs if tensor is not None}
        scope = self.scope
        while scope.hoists and id(scope) not in scopes and scope.outer is not None:
            scope = scope.outer
        return scope

    def _folded(
        self, operator: str, inputs: Sequence[Tensor | None], outputs: Sequence[tuple[Sequence[int], Any]], attrs: Any
    ) -> list[Tensor] | None:
        values = [tensor.value for tensor in inputs if tensor is not None]
        if operator not in FOLDED or len(outputs) != 1 or any(value is None for value in values):
            return None
        (shape, dtype) = outputs[0]
        if math.prod(shape) > max(LARGEST_FOLDED, sum(value.size for value in values if value is not None)):
            return None
        with np.errstate(all="ignore"):
            result = FOLDED[operator](*values, **attrs)
        array = np.asarray(result).astype(dtype, copy=False)
        assert array.shape == tuple(shape), (operator, array.shape, shape)
        return [self.known(array)]
