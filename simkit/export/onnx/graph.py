"""The graph under construction: nested scopes, known parts folded, equal nodes shared, broadcasts put off."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from simkit.errors import UserError
from simkit.export.onnx.folding import FOLDED
from simkit.export.onnx.kernels import computed_in

# Folding makes no initializer larger than this out of smaller ones (an iota, a mask).
LARGEST_FOLDED = 4096
# The second argument that changes nothing, not even the sign of a zero, but for what XLA leaves out as well.
_NEUTRAL = {"Mul": 1, "Div": 1, "Sub": 0}
# Where either may be neutral: x * 1, and x + 0, which XLA takes for x too.
_SYMMETRIC = {"Mul": 1, "Add": 0}


@dataclasses.dataclass(eq=False)
class Tensor:
    """One named array of the graph.

    Attributes:
        name: unique in the whole model.
        shape: its size in each dimension.
        dtype: of its elements.
        scope: in which it is computed.
        value: the array, if it is known now.
        narrow: the smaller tensor of which this one is a broadcast.
        maker: the node that computes it, if it is no input and not known.
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
    """The graph, or the body of a Loop or If, whose nodes may use what is computed outside of it.

    Attributes:
        outer: the scope around it.
        hoists: whether a node that depends on outer tensors only is placed outside (what a loop need not repeat; a
            branch that is not taken computes nothing).
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
        """Return this scope and those around it, from the inside out."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


class Graph:
    """Builds a model, node by node."""

    def __init__(self) -> None:
        """Begin empty."""
        self.top = Scope()
        self.scope = self.top
        # The line of the user's program that is being converted, and whether what is converted is not theirs.
        self.origin = "the program"
        self.ours = False
        self._count = 0
        self._constants: dict[Any, Tensor] = {}

    def tensor(self, shape: Sequence[int], dtype: Any, scope: Scope, value: np.ndarray | None = None) -> Tensor:
        """Return a new tensor with a name of its own."""
        self._count += 1
        return Tensor(f"t{self._count}", tuple(int(size) for size in shape), np.dtype(dtype), scope, value)

    def input(self, shape: Sequence[int], dtype: Any, name: str = "") -> Tensor:
        """Return a new input of the current scope."""
        tensor = self.tensor(shape, dtype, self.scope)
        tensor.name = name or tensor.name
        self.scope.inputs.append(tensor)
        return tensor

    def constant(self, value: Any, dtype: Any = None) -> Tensor:
        """Return a known array: equal ones are one tensor, and one of equal elements is a scalar, broadcast."""
        array = np.asarray(value, dtype)
        if array.size > 1:
            flat = array.reshape(-1)
            first = flat[:1]
            if flat.tobytes() == first.tobytes() * flat.size:
                return self.expand(self.constant(first.reshape(())), array.shape)
        return self.known(array)

    def known(self, value: np.ndarray, dtype: Any = None) -> Tensor:
        """Return a known array, equal ones as one tensor, in its full shape."""
        array = np.asarray(value, dtype)
        key = (array.shape, array.dtype.name, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.tensor(array.shape, array.dtype, self.top, np.array(array, order="C"))
        return self._constants[key]

    def node(
        self, operator: str, inputs: Sequence[Tensor | None], outputs: Sequence[tuple[Sequence[int], Any]], **attrs: Any
    ) -> list[Tensor]:
        """Return the outputs of an operator: an equal node's if there is one, known arrays where inputs are.

        Args:
            operator: of ONNX.
            inputs: tensors, ``None`` for what is left out.
            outputs: shape and dtype of each.
            **attrs: its attributes.
        """
        if folded := self._folded(operator, inputs, outputs, attrs):
            return folded
        key = (operator, tuple(t and t.name for t in inputs), tuple(sorted((k, repr(v)) for k, v in attrs.items())))
        place = self._place(inputs)
        for scope in place.chain():
            if key in scope.shared:
                return scope.shared[key]
        made = [self.tensor(shape, dtype, place) for shape, dtype in outputs]
        place.nodes.append(Node(operator, list(inputs), made, attrs, origin=self.origin))
        for tensor in made:
            tensor.maker = place.nodes[-1]
        place.shared[key] = made
        return made

    def op(self, operator: str, inputs: Sequence[Tensor | None], shape: Sequence[int], dtype: Any, **at: Any) -> Tensor:
        """Return the only output of an operator, see `node`."""
        return self.node(operator, inputs, [(shape, dtype)], **at)[0]

    def typed(
        self, operator: str, inputs: Sequence[Tensor | None], shape: Sequence[int], dtype: Any = None, **at: Any
    ) -> Tensor:
        """Return the output of an operator whose kernel may lack the type of its numbers: computed in a wider one.

        Inputs of the same type as the first number are cast along; a result of that type is cast back.
        """
        first = inputs[1] if operator == "Where" else inputs[0]
        assert first is not None
        own = first.dtype
        wide = computed_in(operator, own)
        if wide is None:
            raise UserError(f"{self.origin}: onnxruntime has no kernel of {operator} for {own}; compute it in int64")
        result = np.dtype(dtype or own)
        cast = [self.cast(t, wide) if t is not None and t.dtype == own else t for t in inputs]
        return self.cast(self.op(operator, cast, shape, wide if result == own else result, **at), result)

    def elementwise(self, operator: str, *inputs: Tensor, dtype: Any = None, **attrs: Any) -> Tensor:
        """Return an operator applied element by element, on what its inputs are broadcasts of."""
        if any(0 in tensor.shape for tensor in inputs):
            full = np.broadcast_shapes(*(tensor.shape for tensor in inputs))
            return self.constant(np.zeros(full, dtype or inputs[-1].dtype))
        small = [tensor.narrow or tensor for tensor in inputs]
        shape = np.broadcast_shapes(*(tensor.shape for tensor in small))
        full = np.broadcast_shapes(*(tensor.shape for tensor in inputs))
        if operator in _NEUTRAL:
            first, second = small
            if _is_all(second, _NEUTRAL[operator]) and first.shape == shape:
                return self.expand(first, full)
        if operator in _SYMMETRIC:
            for one, other in (small, small[::-1]):
                if _is_all(one, _SYMMETRIC[operator]) and other.shape == shape:
                    return self.expand(other, full)
        if operator == "Div" and _is_all(small[0], 1) and small[1].dtype.kind == "f" and small[1].value is None:
            # onnxruntime rewrites 1 / y * x as x / y, and loses x where that was a product with one.
            operator, small = "Reciprocal", [small[1]]
        if (found := self._mapped(operator, small)) is not None:
            return self.expand(found, full)
        return self.expand(self.typed(operator, small, shape, dtype, **attrs), full)

    def _mapped(self, operator: str, inputs: list[Tensor]) -> Tensor | None:
        """Return a sum or a scaled part of one array as its product with a matrix, if that is one."""
        from simkit.export.onnx import axis_maps

        if operator in ("Add", "Sub") and inputs[0].shape == inputs[1].shape:
            return axis_maps.combined(self, operator, *inputs)
        if operator in ("Mul", "Div") and inputs[1].value is not None:
            return axis_maps.scaled(self, inputs[0], operator, inputs[1].value)
        if operator == "Mul" and inputs[0].value is not None:
            return axis_maps.scaled(self, inputs[1], operator, inputs[0].value)
        return None

    def expand(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        """Return a tensor broadcast to a shape; what computes element by element takes the narrow one instead."""
        shape = tuple(shape)
        if tensor.shape == shape:
            return tensor
        if 0 in shape:
            return self.constant(np.zeros(shape, tensor.dtype))
        narrow = tensor.narrow or tensor
        wide = self.typed("Expand", [narrow, self.constant(np.array(shape, np.int64))], shape)
        wide.narrow = narrow
        return wide

    def reshape(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        """Return a tensor with its elements in another shape."""
        shape = tuple(shape)
        if tensor.shape == shape:
            return tensor
        if tensor.maker is not None and tensor.maker.operator == "Reshape":
            source = tensor.maker.inputs[0]
            assert source is not None
            return self.reshape(source, shape)
        if tensor.narrow is not None and math.prod(tensor.narrow.shape) == 1:
            return self.expand(self.reshape(tensor.narrow, ()), shape)
        target = self.constant(np.array(shape, np.int64))
        if target.narrow is not None:  # several equal sizes are still one vector
            target = self._vector(shape)
        return self.op("Reshape", [tensor, target], shape, tensor.dtype, **({"allowzero": 1} if 0 in shape else {}))

    def transpose(self, tensor: Tensor, order: Sequence[int]) -> Tensor:
        """Return a tensor with its dimensions in another order."""
        order = tuple(order)
        if order == tuple(range(len(order))):
            return tensor
        shape = [tensor.shape[axis] for axis in order]
        moved = [axis for axis in order if tensor.shape[axis] != 1]
        if moved == sorted(moved):
            return self.reshape(tensor, shape)
        return self.op("Transpose", [tensor], shape, tensor.dtype, perm=order)

    def cast(self, tensor: Tensor, dtype: Any) -> Tensor:
        """Return a tensor in another type, as C converts numbers."""
        dtype = np.dtype(dtype)
        if tensor.dtype == dtype:
            return tensor
        if tensor.narrow is not None:
            return self.expand(self.cast(tensor.narrow, dtype), tensor.shape)
        return self.op("Cast", [tensor], tensor.shape, dtype, to=dtype.name)

    def constants(self) -> list[Tensor]:
        """Return all known tensors."""
        return list(self._constants.values())

    def vector(self, numbers: Sequence[int]) -> Tensor:
        """Return an int64 vector, for shapes, axes and starts."""
        return self._vector(tuple(int(number) for number in numbers))

    def _vector(self, numbers: tuple[int, ...]) -> Tensor:
        array = np.array(numbers, np.int64)
        key = (array.shape, "vector", array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.tensor(array.shape, array.dtype, self.top, array)
        return self._constants[key]

    def _place(self, inputs: Sequence[Tensor | None]) -> Scope:
        """Return the scope where a node belongs: as far out as loops let it and its inputs are known."""
        homes = {id(tensor.scope) for tensor in inputs if tensor is not None}
        scope = self.scope
        while scope.hoists and id(scope) not in homes and scope.outer is not None:
            scope = scope.outer
        return scope

    def _folded(
        self, operator: str, inputs: Sequence[Tensor | None], outputs: Sequence[tuple[Sequence[int], Any]], attrs: Any
    ) -> list[Tensor] | None:
        known = [tensor.value for tensor in inputs if tensor is not None]
        if operator not in FOLDED or len(outputs) != 1 or any(value is None for value in known):
            return None
        (shape, dtype) = outputs[0]
        if math.prod(shape) > max(LARGEST_FOLDED, sum(value.size for value in known if value is not None)):
            return None
        with np.errstate(all="ignore"):
            result = FOLDED[operator](*known, **attrs)
        array = np.asarray(result).astype(dtype, copy=False)
        assert array.shape == tuple(shape), (operator, array.shape, shape)
        return [self.known(array)]


def _is_all(tensor: Tensor, number: int) -> bool:
    """Return whether every element is known to be a number; -0 is not 0."""
    value = tensor.value
    return (
        value is not None
        and bool((value == number).all())
        and not (value.dtype.kind == "f" and np.signbit(value).any())
    )
