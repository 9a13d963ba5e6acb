"""Programs at the edge of what ONNX has: equal to JAX, or refused in one line that says what to write."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

pytest.importorskip("onnxruntime")

import simkit
from simkit.errors import UserError
from tests.export.onnx.agreement import check, check_all

LARGE = {
    "int32": [2**31 - 1, 5, 7, -3],
    "uint32": [2**32 - 1, 5, 7, 3],
    "int64": [2**53 + 1, 2, 2**62, -(2**63)],
    "uint64": [2**63 + 5, 2**64 - 1, 5, 3],
    "int8": [127, 5, 7, -3],
    "uint8": [255, 5, 7, 3],
}


def test_sums_and_products_of_integers_wrap_around(x64):
    def run(x):
        sums = [x.sum(axes, dtype=x.dtype) for axes in (None, 0, (0, 1))]
        return [*sums, x.prod(1, dtype=x.dtype), x[:0].sum(0, dtype=x.dtype)]

    check_all({name: (run, (np.array([row, row[::-1], [1, 2, 3, 5]], name),)) for name, row in LARGE.items()}, rtol=0)


def test_functions_applied_in_place_are_refused():
    with pytest.raises(UserError, match=r"write x\.at\[i\]\.set\(f\(x\[i\]\)\) in place of x\.at\[i\]\.apply\(f\)"):
        simkit.onnxjit(lambda x: x.at[1].apply(jnp.exp))(jnp.arange(5.0))
    check(lambda x: x.at[1].set(jnp.exp(x[1])), jnp.arange(5.0), rtol=1e-6)


def test_complex_products_in_place_are_refused():
    z = jnp.array([1 + 2j, -3 - 0.5j])
    with pytest.raises(UserError, match="of complex numbers"):
        simkit.onnxjit(lambda z: z.at[1].mul(3j))(z)
    table = {
        "complex": (lambda z: [z.at[1].add(3j), z.at[0].set(2j)], (z,)),
        "real": (lambda x: [x.at[1].mul(3.0), x.at[jnp.array([0, 0])].max(2.5)], (jnp.arange(3.0),)),
    }
    check_all(table, rtol=1e-6)


def test_precisions_are_those_of_a_type_or_refused():
    x = jnp.array([1.2345, 1e9, 3e-6, -3e-6, 7e-5], jnp.float32)
    check(
        lambda x: [lax.reduce_precision(x, 5, 10), lax.reduce_precision(x, 8, 7), lax.reduce_precision(x, 11, 52)],
        x,
        rtol=0,
    )
    for bits in ((5, 4), (5, 23)):
        with pytest.raises(UserError, match="has no ONNX form; use those of float16"):
            simkit.onnxjit(lambda x, bits=bits: lax.reduce_precision(x, *bits))(x)


def test_cuts_that_reach_into_the_padding():
    def run(x):
        return [
            padded
            for widths in ((3, -6, 0), (-6, 3, 0), (3, -4, 0), (-5, 6, 1), (-2, -1, 2), (4, -2, 1))
            for padded in (lax.pad(x[:, 0], 9.0, (widths,)), lax.pad(x, 9.0, (widths, (1, -2, 0))))
        ]

    check(run, jnp.arange(15.0).reshape(5, 3), rtol=0)


def test_search_in_sorted_numbers():
    def run(known, wanted):
        return {
            f"{method} {side}": jnp.searchsorted(known, wanted, side=side, method=method)
            for method in ("scan", "compare_all", "sort")
            for side in ("left", "right")
        }

    table = {
        dtype: (run, (np.array([1, 3, 3, 7], dtype), np.array([0, 3, 4, 9], dtype)))
        for dtype in ("int32", "uint32", "float32")
    }
    check_all(table, rtol=0)


def test_sums_of_integers_in_a_batch():
    check(jax.vmap(lambda x: x.sum()), jnp.arange(12).reshape(3, 4), rtol=0)


def test_long_fourier_transforms_are_accurate_in_double_precision(x64):
    for length in (521, 5000):
        real, imaginary = np.random.default_rng(length).normal(size=(2, length))
        z = real + 1j * imaginary
        # The inverse transform, times the length, has numbers of the size of the transform.
        largest = np.sqrt(length) * np.abs(z).max()
        check(lambda z: [jnp.fft.fft(z), z.size * jnp.fft.ifft(z)], z, rtol=0, atol=1e-11 * largest)


def test_reductions_of_nothing():
    empty = {
        dtype: (lambda x: [x.sum(0), x.prod(0)], (jnp.ones((0, 5), dtype),)) for dtype in ("float16", "float32", "int8")
    }
    check_all(empty, rtol=0)


def test_systems_without_unknowns():
    def solve(a, b):
        solved = lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
        return [solved, lax.linalg.triangular_solve(a, b.T, lower=True), jnp.linalg.cholesky(a)]

    check_all({str(shape): (solve, (jnp.eye(shape[0]), jnp.ones(shape))) for shape in ((0, 3), (2, 0))}, rtol=0)


def test_long_sums_lose_no_digits_in_single_precision():
    shapes = ((1025,), (100_003,), (30, 40, 50), (100_000, 2), (2, 5000, 1))
    arrays = {shape: (1 + 0.3 * np.random.default_rng(0).random(shape)).astype(np.float32) for shape in shapes}
    sums = simkit.onnxjit(lambda arrays: [[x.sum(axes) for axes in (*range(x.ndim), None)] for x in arrays])
    for (shape, x), found in zip(arrays.items(), sums(list(arrays.values())), strict=True):
        for axes, total in zip((*range(x.ndim), None), found, strict=True):
            exact = x.sum(axes, dtype=np.float64)
            np.testing.assert_allclose(total, exact, rtol=1e-6, err_msg=f"{shape}, axes {axes}")
