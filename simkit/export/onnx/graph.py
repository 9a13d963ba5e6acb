"""Graph under construction: deferred broadcasts, and wider types where onnxruntime lacks a kernel."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from simkit.errors import UserError
from simkit.export.onnx.nodes import Node, NodeGraph, Scope, Tensor

_FLOATS = ("float32", "float64")
_WIDE = (*_FLOATS, "int32", "int64")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_SHIFTED = ("uint8", "uint32", "uint64")
KERNELS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), (*_FLOATS, *_INTEGERS)),
    **dict.fromkeys(("Abs", "Sign"), (*_FLOATS, *_INTEGERS)),
    **dict.fromkeys(("Less", "LessOrEqual", "Greater", "GreaterOrEqual"), (*_FLOATS, *_INTEGERS)),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"), _INTEGERS),
    **dict.fromkeys(("Max", "Min", "Clip"), (*_WIDE, "int8", "uint8", "uint32", "uint64")),
    **dict.fromkeys(("ReduceMax", "ReduceMin"), (*_WIDE, "int8", "uint8", "bool")),
    **dict.fromkeys(("ReduceSum", "ReduceProd", "CumSum", "Einsum", "Pow", "ArgMax", "ArgMin"), _WIDE),
    **dict.fromkeys(("Sqrt", "Exp", "Log", "Sin", "Cos", "Tanh", "Sigmoid", "Floor", "Ceil", "Round"), _FLOATS),
    **dict.fromkeys(("Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Erf"), ("float32",)),
    **dict.fromkeys(("Reciprocal", "DFT"), _FLOATS),
    **dict.fromkeys(("IsNaN", "IsInf"), _FLOATS),
    "BitShift": _SHIFTED,
    "CumProd": (*_WIDE, "uint32", "uint64"),
    "Equal": (*_FLOATS, *_INTEGERS, "bool"),
    "Expand": (*_FLOATS, *_INTEGERS, "bool"),
    "MatMul": (*_WIDE, "uint32", "uint64"),
    "Mod": (*_FLOATS, *_INTEGERS),
    "Neg": (*_FLOATS, "int8", "int16", "int32", "int64"),
    "Pad": (*_WIDE, "int8", "uint8", "uint32", "uint64", "bool"),
    "ScatterElements": (*_FLOATS, *_INTEGERS),
    "TopK": (*_FLOATS, "int8", "int16", "int32", "int64", "uint8"),
    # onnxruntime has a uint32 kernel, onnxruntime-web does not.
    "Where": (*_WIDE, "int8", "uint8"),
}
# Types that hold every value of a narrower one. Sums and products in them, cast back, wrap around as in the narrow one.
_WIDER = {
    "bool": ("uint8", "int32", "float32"),
    "int8": ("int32", "int64"),
    "int16": ("int32", "int64"),
    "uint8": ("int32", "uint32", "int64"),
    "uint16": ("int32", "uint32", "int64"),
    "uint32": ("int64", "uint64"),
    # The same bits: not for operators that compare.
    "uint64": ("int64",),
    "int32": ("int64", "uint32"),
    "float16": ("float32",),
    "bfloat16": ("float32",),
}
_COMPARES = ("Max", "Min", "Clip", "ReduceMax", "ReduceMin", "ArgMax", "ArgMin", "TopK")


def computed_in(operator: str, dtype: np.dtype) -> np.dtype | None:
    """Return the type in which a kernel computes values of ``dtype``: the same or a wider one, ``None`` if none does.

    Args:
        operator: name of the ONNX operator.
        dtype: of its inputs.
    """
    kernels = KERNELS.get(operator)
    if kernels is None or dtype.name in kernels:
        return dtype
    if dtype.name == "uint64" and operator in _COMPARES:
        return None
    return next((np.dtype(name) for name in _WIDER.get(dtype.name, ()) if name in kernels), None)


__all__ = ["Graph", "Node", "Scope", "Tensor"]
_COMPARISONS = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "IsNaN", "IsInf")
# Identity as the second argument, x - 0: it keeps even the sign of a zero.
_NEUTRAL = {"Mul": 1, "Div": 1, "Sub": 0}
# Identity as either argument, x * 1 and x + 0; XLA simplifies x + 0 as well, which loses the sign of -0.
_SYMMETRIC = {"Mul": 1, "Add": 0}


class Graph(NodeGraph):
    """Builds a model of elementwise operators, casts, broadcasts and reshapes."""

    def constant(self, value: Any, dtype: Any = None) -> Tensor:
        """Return a constant: equal arrays are one tensor, and an array of equal elements is a broadcast scalar."""
        array = np.asarray(value, dtype)
        if array.size > 1:
            flat = array.reshape(-1)
            first = flat[:1]
            if flat.tobytes() == first.tobytes() * flat.size:
                return self.expand(self.constant(first.reshape(())), array.shape)
        return self.known(array)

    def typed(
        self, operator: str, inputs: Sequence[Tensor | None], shape: Sequence[int], dtype: Any = None, **at: Any
    ) -> Tensor:
        """Return the output of an operator, computed in a wider type if onnxruntime lacks the kernel of its type.

        Inputs of the first number's type are cast; a result of that type is cast back.

        Raises:
            UserError: if no kernel holds the values of the type.
        """
        first = inputs[1] if operator == "Where" else inputs[0]
        assert first is not None
        usual = first.dtype
        wide = computed_in(operator, usual)
        if wide is None:
            raise UserError(f"{self.origin}: onnxruntime has no kernel of {operator} for {usual}; compute it in int64")
        result = np.dtype(dtype or usual)
        cast = [self.cast(t, wide) if t is not None and t.dtype == usual else t for t in inputs]
        return self.cast(self.op(operator, cast, shape, wide if result == usual else result, **at), result)

    def elementwise(self, operator: str, *operands: Tensor | float, dtype: Any = None, **attrs: Any) -> Tensor:
        """Return an elementwise operator, applied to the operands before their broadcasts.

        Numbers are of the type of the last tensor; comparisons give booleans.
        """
        kind = next(operand.dtype for operand in reversed(operands) if isinstance(operand, Tensor))
        inputs = [each if isinstance(each, Tensor) else self.constant(each, kind) for each in operands]
        dtype = dtype or (bool if operator in _COMPARISONS else None)
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
            for operand, other in (small, small[::-1]):
                if _is_all(operand, _SYMMETRIC[operator]) and other.shape == shape:
                    return self.expand(other, full)
        if operator == "Div" and _is_all(small[0], 1) and small[1].dtype.kind == "f" and small[1].value is None:
            # onnxruntime fuses 1 / y * x to x / y, and loses x where it had removed a product with one.
            operator, small = "Reciprocal", [small[1]]
        return self.expand(self.typed(operator, small, shape, dtype, **attrs), full)

    def expand(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        """Return a tensor broadcast to a shape; elementwise operators read its ``narrow`` tensor instead."""
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
        """Return a tensor in another shape."""
        shape = tuple(shape)
        if tensor.shape == shape:
            return tensor
        if tensor.maker is not None and tensor.maker.operator == "Reshape":
            source = tensor.maker.inputs[0]
            assert source is not None
            return self.reshape(source, shape)
        if tensor.narrow is not None and math.prod(tensor.narrow.shape) == 1:
            return self.expand(self.reshape(tensor.narrow, ()), shape)
        return self.op(
            "Reshape", [tensor, self.vector(shape)], shape, tensor.dtype, **({"allowzero": 1} if 0 in shape else {})
        )

    def transpose(self, tensor: Tensor, order: Sequence[int]) -> Tensor:
        """Return a tensor with its axes in another order."""
        order = tuple(order)
        if order == tuple(range(len(order))):
            return tensor
        shape = [tensor.shape[axis] for axis in order]
        moved = [axis for axis in order if tensor.shape[axis] != 1]
        if moved == sorted(moved):
            return self.reshape(tensor, shape)
        if tensor.maker is not None and tensor.maker.operator == "Transpose" and tensor.maker.inputs[0] is not None:
            inner = tensor.maker.attributes["perm"]
            return self.transpose(tensor.maker.inputs[0], [inner[axis] for axis in order])
        return self.op("Transpose", [tensor], shape, tensor.dtype, perm=order)

    def cast(self, tensor: Tensor, dtype: Any) -> Tensor:
        """Return a tensor in another type, with the conversion rules of C."""
        dtype = np.dtype(dtype)
        if tensor.dtype == dtype:
            return tensor
        if 0 in tensor.shape:
            return self.constant(np.zeros(tensor.shape, dtype))
        if tensor.narrow is not None and tensor.value is None:
            return self.expand(self.cast(tensor.narrow, dtype), tensor.shape)
        return self.op("Cast", [tensor], tensor.shape, dtype, to=dtype.name)


def _is_all(tensor: Tensor, number: int) -> bool:
    """Return whether a tensor is a constant with every element equal to ``number``; -0 does not equal 0 here."""
    value = tensor.value
    return (
        value is not None
        and bool((value == number).all())
        and not (value.dtype.kind == "f" and np.signbit(value).any())
    )
