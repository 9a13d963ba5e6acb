"""Special functions, gamma random numbers, decompositions and short floats: values and slopes as in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.scipy import special

pytest.importorskip("onnxruntime")

import simkit
from tests.export.onnx.agreement import check, check_all


def slope(function):
    """Return the derivatives of the sum of a function's results with respect to all arguments."""
    return lambda *arguments: jax.grad(lambda *a: sum(map(jnp.sum, function(*a))), tuple(range(len(arguments))))(
        *arguments
    )


def test_incomplete_gamma_and_bessel_functions_agree_with_their_slopes():
    def run(a, x):
        return [lax.igamma(a, x), lax.igammac(a, x) ** 2, special.i0e(x), special.i1(x)]

    a, x = np.float32([0.3, 0.9, 2.5, 7.0, 40.0]), np.float32([0.2, 1.5, 2.0, 9.0, 30.0])
    # Exponentials and logarithms of two libraries, in series that end where terms no longer count.
    check(lambda a, x: [run(a, x), slope(run)(a, x)], a, x, rtol=2e-5, atol=1e-6)


def test_numbers_of_gamma_distributions_are_those_of_jax():
    check(lambda key, a: jax.random.gamma(key, a), jax.random.key(3), np.float32([0.3, 2.5, 40.0]), rtol=2e-5)


def test_decompositions_agree_with_their_slopes(x64):
    """Without the signs of vectors, which are free, except those of reflectors, which are LAPACK's."""

    def run(m, symmetric):
        left, values, right = jnp.linalg.svd(m, full_matrices=False)
        others, vectors = jnp.linalg.eigh(symmetric)
        return [left**4, values, right**2, others, vectors**4, *jnp.linalg.qr(m)]

    m = np.random.default_rng(1).normal(size=(2, 5, 3))
    symmetric = m @ np.swapaxes(m, -1, -2) + np.diag([0.0, 9, 3, 1, 5])
    # Slopes of vectors are divided by differences of values, some 0.1 here.
    check(lambda m, s: [run(m, s), slope(run)(m, s)], m, symmetric, rtol=1e-11, atol=1e-11)


def test_decomposition_of_numbers_that_are_not_finite_is_nan_for_that_member_alone():
    broken = jnp.stack([jnp.eye(3), jnp.eye(3).at[0, 1].set(jnp.nan)])
    values = simkit.onnxjit(lambda m: [jnp.linalg.eigvalsh(m), jnp.linalg.svd(m, compute_uv=False)])(broken)
    for each in values:
        assert np.isfinite(each[0]).all() and np.isnan(each[1]).all()


def test_nan_spreads_in_qr_as_in_jax():
    m = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    broken = [np.where(np.arange(12).reshape(4, 3) == at, np.nan, form) for at in range(12) for form in (m, np.triu(m))]
    check(jnp.linalg.qr, m, also=[(each.astype(np.float32),) for each in broken], rtol=1e-5, atol=1e-6)


def test_a_matrix_without_elements_has_the_decompositions_of_jax():
    def run(m):
        return [jnp.linalg.svd(m), jnp.linalg.svd(m, full_matrices=False), jnp.linalg.qr(m)]

    check_all({str(shape): (run, (jnp.zeros(shape),)) for shape in ((0, 0), (0, 3), (3, 0), (2, 0, 3))}, rtol=0)


def test_short_floats_are_arguments_and_results():
    def run(x, y):
        loop = lax.scan(lambda carry, row: (carry * row + 1, carry), x, jnp.stack([y, x]))
        bits = lax.bitcast_convert_type(x, jnp.uint16)
        return {
            "arithmetic": [
                x * 2 + y / 3,
                jnp.exp(x),
                jnp.floor(y),
                jnp.sign(x),
                jnp.outer(x, y) @ y,
                jax.nn.softmax(x),
            ],
            "order": [jnp.sort(x), jnp.argmax(y), y.max(), jnp.where(x > y, x, y), x[::-1], x.at[1].add(y[0])],
            "types": [x.astype(jnp.int32), y.astype(jnp.float32), (y > 1).astype(x.dtype), bits],
            "back": lax.bitcast_convert_type(bits, jnp.bfloat16),
            "loop": loop,
            "slope": jax.grad(lambda x: (jnp.tanh(x) * y).sum().astype(jnp.float32))(x),
        }

    x, y = jnp.arange(-3, 3, dtype=jnp.bfloat16) / 7, jnp.linspace(0.1, 2, 6, dtype=jnp.bfloat16)
    found, expected = simkit.onnxjit(run)(x, y), jax.jit(run)(x, y)
    # XLA keeps intermediate numbers in single precision: a few roundings of 8 bits.
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(b, float), np.asarray(a, float), rtol=2**-6, atol=2**-7)

    def exact(x, y):
        return [x + y, x * y, y.astype(jnp.float32), jnp.nextafter(x, y)]

    for a, b in zip(jax.jit(exact)(x, y), simkit.onnxjit(exact)(x, y), strict=True):
        np.testing.assert_array_equal(np.asarray(b, float), np.asarray(a, float))


def test_unsigned_integers_of_64_bits_are_ordered(x64):
    x = np.array([[2**63 + 5, 2**64 - 1, 5], [3, 2**63, 2**62]], np.uint64)
    check(lambda x: [x.max(1), x.min(0), jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.sort(x), jnp.argsort(x)], x, rtol=0)
