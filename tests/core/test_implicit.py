"""Linear solves for indefinite symmetric operators, as at saddles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.implicit import solve_symmetric

COUNT = 30


def saddle(eigenvalues):
    """Return a symmetric matrix of these eigenvalues, in a random basis."""
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(len(eigenvalues),) * 2))[0]
    return jnp.asarray(basis * eigenvalues @ basis.T), jnp.asarray(basis)


@pytest.fixture(scope="module")
def solve():
    with jax.enable_x64(True):
        yield jax.jit(
            lambda matrix, b, zero: solve_symmetric(
                lambda x: matrix @ x, b, lambda x: x - zero * (zero @ x), is_definite=False
            )
        )


def test_indefinite_systems_are_solved_to_round_off(x64, solve):
    b = jax.random.normal(jax.random.key(0), (COUNT,))
    for stiffest in (1.0, 1e4):
        # Moduli from 1 to the stiffest, of both signs: both ends of the spectrum, and clusters on either side of zero.
        eigenvalues = np.geomspace(1, stiffest, COUNT) * np.where(np.arange(COUNT) % 3, 1, -1)
        matrix, _ = saddle(eigenvalues)
        np.testing.assert_allclose(solve(matrix, b, 0 * b), jnp.linalg.solve(matrix, b), atol=1e-9)


def test_zero_modes_are_left_out_and_other_singular_systems_are_nan(x64, solve):
    eigenvalues = np.linspace(-2, 3, COUNT)
    eigenvalues[10] = 0
    matrix, basis = saddle(eigenvalues)
    b = jax.random.normal(jax.random.key(0), (COUNT,))
    expected = jnp.linalg.pinv(matrix, hermitian=True) @ b
    np.testing.assert_allclose(solve(matrix, b, basis[:, 10]), expected, atol=1e-9)
    assert np.isnan(solve(matrix, b, 0 * b)).all()


def test_derivatives_of_indefinite_solves_agree_in_both_modes(x64, solve):
    matrix, _ = saddle(np.linspace(-2, 3, COUNT))
    b = jax.random.normal(jax.random.key(0), (COUNT,))

    def work(scale):
        return b @ solve(scale * matrix, b, 0 * b)

    value, slope = jax.value_and_grad(work)(2.0)
    assert float(slope) == pytest.approx(-float(value) / 2, rel=1e-9)
    assert float(jax.jacfwd(work)(2.0)) == pytest.approx(float(slope), rel=1e-9)


def test_batches_solve_each_member(x64, solve):
    matrix, _ = saddle(np.linspace(-2, 3, COUNT))
    sides = jnp.concatenate([jax.random.normal(jax.random.key(0), (2, COUNT)), jnp.zeros((1, COUNT))])
    batch = jax.vmap(solve, (None, 0, None))(matrix, sides, 0 * sides[0])
    np.testing.assert_allclose(batch, jnp.linalg.solve(matrix, sides.T).T, atol=1e-9)
