"""Every family of primitives: onnxruntime against JAX."""

import numpy as np
import pytest

from tests.export.onnx import cases
from tests.export.onnx.agreement import ROUNDING, check_all
from tests.export.onnx.test_primitives import of_types


def test_arithmetic_has_the_edge_cases_of_xla(x64):
    table = of_types(cases.ARITHMETIC, "float32", "float64", "int32", "int64", "uint32", "int8")
    check_all(table, ROUNDING)


def smooth(dtype):
    grid = np.concatenate([np.linspace(-9.7, 9.9, 41), [1e-3, -1e-3, 0.0]]).astype(dtype)
    return {name: (function, (grid,)) for name, function in cases.SMOOTH.items()}


def test_functions_agree_to_a_few_roundings(x64):
    single, double = smooth("float32"), smooth("float64")
    # JAX's own error in single precision is larger for these; near poles and zeros of gamma the error is absolute.
    loose = {name: single.pop(name) for name in ("gamma", "error function")}
    check_all(
        {
            f"{name} {case}": each
            for case, names in (("float32", single), ("float64", double))
            for name, each in names.items()
        },
        *({"float32": 1e-6, "float64": 1e-12},) * 2,
    )
    check_all(loose, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("family", ["SHAPES", "REDUCTIONS", "SORTING", "INDEXING", "LINEAR", "FOURIER", "COMPLEX"])
def test_array_operations_agree(family, x64):
    check_all(getattr(cases, family), rtol=1e-12, atol=1e-13)


def test_windows_agree(x64):
    # Sums of up to 60 products of numbers up to 4.
    rounding = {"float32": 2e-5, "float64": 1e-13}
    table = {
        f"{name} {dtype}": (function, tuple(np.asarray(each, dtype) for each in arguments))
        for name, (function, arguments) in cases.WINDOWS.items()
        for dtype in rounding
    }
    check_all(table, rounding, rounding)


def test_bitwise_operations_are_equal(x64):
    check_all(of_types(cases.BITS, "int32", "uint32", "int64", "int8"), rtol=0)
