"""Small systems of equations with members along the last axis, beside NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.rigid.articulated import linear


def test_systems_of_members_are_solved_each_as_alone():
    """Matrices of 6 rows with condition numbers below 10: a few hundred units in the last place at most."""
    random = np.random.default_rng(0)
    root, values = random.normal(size=(4, 6, 6)), random.normal(size=(4, 6))
    symmetric = np.einsum("bij,bkj->bik", root, root) + 20 * np.eye(6)
    uneven = symmetric + random.normal(size=(4, 6, 6))
    with jax.enable_x64(True):
        last, right, other = (jnp.moveaxis(jnp.asarray(a), 0, -1) for a in (symmetric, values, uneven))

        @jax.jit
        def solved():
            back = linear.inverse(last)
            return (
                linear.solve(last, right),
                linear.solve(other, right, is_symmetric=False),
                linear.refined(back, last, right),
                linear.applied_transposed(other, linear.applied(last, right)),
                linear.gram(other, last),
            )

        found = [np.moveaxis(np.asarray(each), -1, 0) for each in solved()]
    wanted = [
        np.linalg.solve(symmetric, values[..., None])[..., 0],
        np.linalg.solve(uneven, values[..., None])[..., 0],
        np.linalg.solve(symmetric, values[..., None])[..., 0],
        np.einsum("bij,bik,bk->bj", uneven, symmetric, values),
        np.einsum("bij,bik->bjk", uneven, symmetric),
    ]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * np.abs(b).max())
