"""Differences, means and shifts along a short axis are one product with a matrix each."""

import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from simkit.export.onnx.runtime import convert
from tests.export.onnx.agreement import check, check_all

FIELD = np.random.default_rng(0).normal(size=(6, 5))


def second_difference(u):
    slope = jnp.diff(jnp.pad(u, ((1, 1), (0, 0))), axis=0) / 0.3
    return jnp.diff(slope, axis=0) * np.arange(1.0, 7)[:, None]


PRODUCTS = {
    "second difference, scaled row by row": (second_difference, 1),
    "difference around a ring": (lambda u: jnp.roll(u, -1, 1) - jnp.roll(u, 1, 1), 1),
    "mean of mirror images": (lambda u: (u + u[:, ::-1]) / 2, 1),
    "of a part, along both axes": (lambda u: (u[1:, 1:] - u[:-1, 1:]) - 0.5 * (u[1:, 1:] + u[1:, :-1]), 2),
    "after a product": (lambda u: jnp.diff(u @ np.ones((5, 4)), axis=1), 1),
}


def test_differences_along_short_axes_are_matrix_products(x64):
    check_all({name: (function, (FIELD,)) for name, (function, _) in PRODUCTS.items()}, rtol=1e-13, atol=1e-14)
    for name, (function, most) in PRODUCTS.items():
        kinds = [node.op_type for node in convert(function, FIELD).model.graph.node]
        assert kinds.count("MatMul") <= most and not {"Div", "Mul", "Concat"} & set(kinds), name


def test_differences_along_long_axes_are_slices(x64):
    converted = check(lambda u: jnp.diff(u, axis=1), np.zeros((2, 200)), rtol=0)
    assert "MatMul" not in [node.op_type for node in converted.model.graph.node]


def test_infinite_factors_are_not_merged_into_matrices(x64):
    check(lambda u: [jnp.diff(u, axis=1) / np.array([1.0, 0, 2, 3]), jnp.diff(u) * np.inf], FIELD, rtol=1e-15)


def test_isfinite_is_not_a_matrix_product(x64):
    check(jnp.isfinite, np.where(FIELD > 1, np.inf, FIELD), rtol=0)
