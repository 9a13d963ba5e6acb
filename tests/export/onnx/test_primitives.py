"""Every family of primitives: onnxruntime against JAX."""

import numpy as np
import pytest
from jax import lax

pytest.importorskip("onnxruntime")

from simkit.export.onnx.runtime import convert
from tests.export.onnx import cases
from tests.export.onnx.agreement import ROUNDING, check_all


def edges(dtype):
    return cases.floats(dtype) if dtype.kind == "f" else cases.integers(dtype)


def of_types(family, *names):
    """Return the functions of a family with numbers of several types, which hit their edges."""
    return {f"{function} {name}": (family[function], edges(np.dtype(name))) for function in family for name in names}


def test_rounding_and_conversion_agree_with_xla(x64):
    check_all(of_types(cases.FLOATING, "float32", "float64"), ROUNDING)


def test_a_convolution_in_single_precision_is_one_operator():
    converted = convert(
        lambda x, kernel: lax.conv_general_dilated(x, kernel, (2, 1), "SAME"),
        np.float32(cases.IMAGES),
        np.float32(cases.FILTERS),
    )
    assert [node.op_type for node in converted.model.graph.node] == ["Conv"]
