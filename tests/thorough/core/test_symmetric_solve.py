"""Symmetric linear solves: correct on the complement of the zero modes, NaN where there is no minimum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.implicit import solve_symmetric

COUNT = 12


def ring(shift=0.0):
    """Return the Laplacian of a ring, whose zero mode is the constant vector, less a shift of all the others."""
    one = np.eye(COUNT)
    laplacian = 2 * one - np.roll(one, 1, axis=0) - np.roll(one, -1, axis=0)
    return laplacian - shift * (one - 1 / COUNT)


def centered(x):
    return x - x.mean()


def solved(matrix, b, project=centered):
    return jax.jit(lambda b: solve_symmetric(lambda x: jnp.asarray(matrix) @ x, b, project))(b)


def test_solution_is_the_one_without_the_zero_mode(x64):
    b = jax.random.normal(jax.random.key(0), (COUNT,))
    # The residual ends at 2e-12 of the right-hand side; the softest mode is 0.27.
    np.testing.assert_allclose(solved(ring(), b), np.linalg.pinv(ring()) @ centered(b), atol=1e-10)


def test_derivative_with_respect_to_the_operator_is_that_of_the_inverse(x64):
    b = centered(jax.random.normal(jax.random.key(0), (COUNT,)))

    def compliance(scale):
        return b @ solve_symmetric(lambda x: scale * (jnp.asarray(ring()) @ x), b, centered)

    value, slope = jax.jit(jax.value_and_grad(compliance))(2.0)
    assert float(slope) == pytest.approx(-float(value) / 2, rel=1e-10)
    assert float(jax.jit(jax.jacfwd(compliance))(2.0)) == pytest.approx(float(slope), rel=1e-10)


def test_without_a_minimum_the_solution_is_nan(x64):
    b = jax.random.normal(jax.random.key(0), (COUNT,))
    # The softest modes, 2 - 2 cos(30 degrees) = 0.268, become unstable.
    assert np.isfinite(solved(ring(0.2), b)).all()
    assert np.isnan(solved(ring(0.3), b)).all()
    # A zero mode that is not projected out has no solution either.
    assert np.isnan(solved(ring(), b, lambda x: x)).all()
