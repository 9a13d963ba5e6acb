"""Data types that onnxruntime's CPU kernels support, by ONNX operator, and the wider types used for the others.

Operators that are not listed (Cast, Reshape, Gather, Concat, ...) move values of any type.
"""

import numpy as np

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
    known = KERNELS.get(operator)
    if known is None or dtype.name in known:
        return dtype
    if dtype.name == "uint64" and operator in _COMPARES:
        return None
    return next((np.dtype(name) for name in _WIDER.get(dtype.name, ()) if name in known), None)
