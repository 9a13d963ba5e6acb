"""Special functions, random numbers of distributions and decompositions, in both precisions and for every shape."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.scipy import special

pytest.importorskip("onnxruntime")

import simkit
from tests.export.onnx.agreement import check_all
from tests.export.onnx.test_special import slope

# Exponentials and logarithms of two libraries, in series that end where terms no longer count.
SERIES = {"float32": 2e-5, "float64": 1e-12}
# Decompositions are accurate to some roundings of the largest number.
ROUNDINGS = {"float32": 2e-5, "float64": 2e-13}
A, X = np.array([0.3, 0.9, 2.5, 7.0, 40.0]), np.array([0.2, 1.5, 2.0, 9.0, 30.0])
Z = np.array([-300.0, -8.0, -0.5, 0.0, 1e-5, 7.9, 8.1, 50.0])
# Wide, tall, in a batch, of rank one, symmetric of an odd size, and with two equal eigenvalues.
MATRICES = {
    "wide": np.random.default_rng(0).normal(size=(3, 5)),
    "tall": np.random.default_rng(1).normal(size=(5, 3)),
    "batch": np.random.default_rng(2).normal(size=(2, 4, 4)),
    "rank one": np.outer(np.arange(1.0, 5), np.arange(2.0, 6)),
}
SYMMETRIC = {"odd": MATRICES["tall"] @ MATRICES["tall"].T, "equal": np.diag([3.0, 1, 3, -2]), "one": np.ones((1, 1))}


def of_both(cases):
    """Return functions of a table with their arguments in single and in double precision."""
    return {
        f"{name} {kind}": (function, tuple(np.asarray(each, kind) for each in arguments))
        for name, (function, arguments) in cases.items()
        for kind in SERIES
    }


def test_incomplete_gamma_and_bessel_functions_agree_with_their_slopes(x64):
    gamma, bessel = lambda a, x: [lax.igamma(a, x), lax.igammac(a, x) ** 2], lambda z: [special.i0e(z), special.i1e(z)]
    cases = {
        "gamma": (gamma, (A, X)),
        "slope of gamma": (slope(gamma), (A, X)),
        "beta": (lambda a, x: special.betainc(a, 2 * a, x / 50), (A, X)),
        "bessel": (lambda z: [*bessel(z), special.i0(z / 10), special.i1(z / 10)], (Z,)),
        "slope of bessel": (slope(bessel), (Z,)),
    }
    # The slope of i0e is a difference of two numbers that agree in four digits at 300, and in two at 8, where the
    # recursion of 30 Chebyshev terms is at the end of its interval and magnifies rounding by up to 30^2: 7e-14.
    check_all(of_both(cases), rtol=SERIES, atol={"float32": 1e-6, "float64": 7e-14})


def test_numbers_of_gamma_distributions_are_those_of_jax(x64):
    def drawn(key, a):
        kind = a.dtype
        gamma = jax.random.gamma(key, a, dtype=kind)
        others = [jax.random.t(key, a, dtype=kind), jax.random.chisquare(key, a, dtype=kind)]
        return [gamma, *others, jax.random.beta(key, a, 2 * a, dtype=kind), jax.random.dirichlet(key, a, dtype=kind)]

    def total(key, a):
        return jax.grad(lambda a: jax.random.gamma(key, a, dtype=a.dtype).sum())(a)

    key = jax.random.key(3)
    cases = {f"{f.__name__} {kind}": (f, (key, A[:3].astype(kind))) for f in (drawn, total) for kind in SERIES}
    check_all(cases, rtol=SERIES)


def test_reflectors_have_the_signs_of_lapack(x64):
    cases = {name: (lambda m: [jnp.linalg.qr(m), jnp.linalg.qr(m, "complete")], (m,)) for name, m in MATRICES.items()}
    del cases["rank one"]  # whose later columns are rounding
    cases |= {"slope": (slope(lambda m: [part**3 for part in jnp.linalg.qr(m)]), (MATRICES["tall"],))}
    check_all(of_both(cases), rtol=ROUNDINGS, atol=ROUNDINGS)


def test_singular_values_and_eigenvalues_agree_and_their_vectors_are_orthogonal(x64):
    values = {name: (lambda m: jnp.linalg.svd(m, compute_uv=False), (m,)) for name, m in MATRICES.items()}
    values |= {f"symmetric, {name}": (jnp.linalg.eigvalsh, (m,)) for name, m in SYMMETRIC.items()}
    check_all(of_both(values), rtol=ROUNDINGS, atol=ROUNDINGS)
    # Slopes that do not depend on the signs of vectors; they are divided by differences of values.
    slopes = {}
    slopes["slope of svd"] = slope(lambda m: [part**4 for part in jnp.linalg.svd(m, False)]), (MATRICES["tall"],)
    apart = SYMMETRIC["odd"] + np.diag([0.0, 9, 3, 1, 5])
    slopes["slope of eigh"] = slope(lambda m: [part**4 for part in jnp.linalg.eigh(m)]), (apart,)
    check_all(of_both(slopes), rtol={"float32": 1e-3, "float64": 1e-11}, atol={"float32": 1e-3, "float64": 1e-11})

    def decomposed(tables):
        svd = {name: jnp.linalg.svd(m, full_matrices=True) for name, m in tables[0].items()}
        return svd, {name: jnp.linalg.eigh(m) for name, m in tables[1].items()}

    for kind, most in ROUNDINGS.items():
        tables = [{name: np.asarray(m, kind) for name, m in table.items()} for table in (MATRICES, SYMMETRIC)]
        svd, eigh = simkit.onnxjit(decomposed)(tables)
        products = {name: (u, s, v, tables[0][name]) for name, (u, s, v) in svd.items()}
        products |= {name: (v, w, np.swapaxes(v, -1, -2), tables[1][name]) for name, (w, v) in eigh.items()}
        for name, (left, numbers, right, m) in products.items():
            size = numbers.shape[-1]
            found = (left[..., :size] * numbers[..., None, :]) @ right[..., :size, :]
            np.testing.assert_allclose(found, m, 0, most * np.abs(m).max(), err_msg=f"{name} {kind}")
            for vectors in (left, right):
                unity = np.swapaxes(vectors, -1, -2) @ vectors
                np.testing.assert_allclose(
                    unity, unity * 0 + np.eye(unity.shape[-1]), 0, most, err_msg=f"{name} {kind}"
                )
