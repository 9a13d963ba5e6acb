import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.flow.solvers.tridiagonal import eliminate, eliminate_traced, substitute
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

N = 9
RANDOM = np.random.default_rng(0)
EXCESS = RANDOM.uniform(0.1, 2, (N, 3, 2))
COUPLING = RANDOM.uniform(0.5, 2, N - 1)
WEIGHTS = RANDOM.uniform(0.5, 2, N)
SOURCE = RANDOM.standard_normal((2, N, 3, 2))


def dense(excess, coupling):
    """The matrix of one system, from the balance of row j as the module states it."""
    jumps = np.diff(np.eye(len(excess)), axis=0)
    return np.diag(excess) + jumps.T @ (coupling[:, None] * jumps)


@every(["real", "complex"])
def test_substitution_solves_every_system(kind):
    source = SOURCE[0] + 1j * SOURCE[1] if kind == "complex" else SOURCE[0]
    found = jax.jit(substitute)(jnp.asarray(source), WEIGHTS, *eliminate(EXCESS, COUPLING))
    for i, j in np.ndindex(3, 2):
        expected = np.linalg.solve(dense(EXCESS[:, i, j], COUPLING), WEIGHTS * source[:, i, j])
        # Rounding 1e-16 times the condition number, at most (2 + 4 * 2)/0.1.
        assert np.abs(found[:, i, j] - expected).max() < 1e-13


def test_last_unknown_of_a_singular_system_is_zero_and_all_other_rows_hold():
    source = SOURCE[0] - np.sum(WEIGHTS[:, None, None] * SOURCE[0], axis=0) / WEIGHTS.sum()
    found = jax.jit(substitute)(jnp.asarray(source), WEIGHTS, *eliminate(np.zeros((N, 3, 2)), COUPLING))
    assert np.all(np.asarray(found)[-1] == 0)
    residual = np.tensordot(dense(np.zeros(N), COUPLING), found, 1) - WEIGHTS[:, None, None] * source
    # The solution, of size 10, is rounded to 1e-15 and multiplied by couplings of up to 2, four to a row.
    assert np.abs(residual).max() < 1e-13


def test_nearly_singular_systems_are_solved_accurately_in_single_precision():
    # With an excess of an eps of the coupling the matrix itself, once rounded, is that of another problem.
    n = 256
    excess, coupling = np.full((n, 1), 1e-7), np.ones(n - 1)
    source = np.cos(np.pi * (np.arange(n) + 0.5) / n)[:, None] + 0.3
    exact = np.linalg.solve(dense(excess[:, 0], coupling), source)
    single = [jnp.asarray(f, jnp.float32) for f in (source, np.ones(n), *eliminate(excess, coupling))]
    found = jax.jit(substitute)(*single)
    assert found.dtype == jnp.float32
    # Each of the 2 n additions rounds by at most half an eps; as random signs they add up to sqrt(2 n)/2 = 11 eps.
    assert np.abs(found - exact).max() < 11 * np.finfo(np.float32).eps * np.abs(exact).max()


def test_derivative_with_respect_to_the_coefficients_matches_differences():
    def total(shift):
        coefficients = eliminate_traced(jnp.asarray(EXCESS) + shift, jnp.asarray(COUPLING) * (1 + shift))
        return jnp.sum(substitute(jnp.asarray(SOURCE[0]), jnp.asarray(WEIGHTS), *coefficients) ** 2)

    h, value = 1e-5, jax.jit(total)
    differences = (value(h) - value(-h)) / (2 * h)
    # Central differences err by h^2 and by rounding 1e-15/h.
    assert jax.jit(jax.grad(total))(0.0) == pytest.approx(float(differences), rel=1e-7)
    assert jax.jit(jax.jacfwd(total))(0.0) == pytest.approx(float(differences), rel=1e-7)
