"""Every family of primitives: onnxruntime against JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

pytest.importorskip("onnxruntime")

from simkit.export.onnx.runtime import convert
from tests.export.onnx import cases
from tests.export.onnx.agreement import check

# A few units in the last place: kernels are accurate to one or two.
ROUNDING = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-14}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint32", "int8"])
@pytest.mark.parametrize("name", cases.ARITHMETIC)
def test_arithmetic_has_the_edge_cases_of_xla(name, dtype, x64):
    dtype = np.dtype(dtype)
    arguments = cases.floats(dtype) if dtype.kind == "f" else cases.integers(dtype)
    check(cases.ARITHMETIC[name], *arguments, rtol=ROUNDING.get(dtype, 0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", cases.FLOATING)
def test_rounding_and_conversion_agree_with_xla(name, dtype, x64):
    check(cases.FLOATING[name], *cases.floats(dtype), rtol=ROUNDING[np.dtype(dtype)])


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "int8"])
@pytest.mark.parametrize("name", cases.BITS)
def test_bitwise_operations_are_equal(name, dtype, x64):
    check(cases.BITS[name], *cases.integers(dtype), rtol=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", cases.SMOOTH)
def test_functions_agree_to_a_few_roundings(name, dtype, x64):
    grid = np.concatenate([np.linspace(-9.7, 9.9, 41), [1e-3, -1e-3, 0.0]]).astype(dtype)
    rtol = 1e-6 if dtype == "float32" else 1e-12
    # JAX's own error in single precision is larger for these; near poles and zeros of gamma the error is absolute.
    loose = 20 if dtype == "float32" and name in ("gamma", "error function") else 1
    check(cases.SMOOTH[name], jnp.asarray(grid), rtol=loose * rtol, atol=rtol)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        (family, name)
        for family in ("SHAPES", "REDUCTIONS", "SORTING", "INDEXING", "LINEAR", "FOURIER", "COMPLEX")
        for name in getattr(cases, family)
    ],
)
def test_array_operations_agree(family, name, x64):
    function, arguments = getattr(cases, family)[name]
    check(function, *arguments, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", cases.WINDOWS)
def test_windows_agree(name, dtype, x64):
    function, arguments = cases.WINDOWS[name]
    # Sums of up to 60 products of numbers up to 4.
    rounding = {"float32": 2e-5, "float64": 1e-13}[dtype]
    check(function, *(jnp.asarray(each, dtype) for each in arguments), rtol=rounding, atol=rounding)


def test_a_convolution_in_single_precision_is_one_operator():
    converted = convert(
        lambda x, kernel: lax.conv_general_dilated(x, kernel, (2, 1), "SAME"),
        np.float32(cases.IMAGES),
        np.float32(cases.FILTERS),
    )
    assert [node.op_type for node in converted.model.graph.node] == ["Conv", "Identity"]


def test_only_the_floor_remainder_of_jax_numpy_becomes_one_operator():
    counts = [convert(lambda x, y: x % y, np.int32([7, -7]), np.int32(3)).nodes]
    counts.append(convert(lambda x, y: [x % y, (x + 1) % y], np.int32([7, -7]), np.int32(3)).nodes)
    # The second remainder adds Mod, Add and Identity, and shares the test of the divisor.
    assert counts[1] - counts[0] == 3

    @jax.jit
    def remainder(x, y):
        return lax.rem(x, y) + 1

    check(remainder, np.int32([7, -7]), np.int32(3), rtol=0)
