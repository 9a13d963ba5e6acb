"""Roots: derivatives of every order in every mode, at no cost in programs without derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.implicit import root_change

pytestmark = pytest.mark.usefixtures("x64")


def cube_root(p):
    """Return the root of ``sin(t^3 - p) = 0``, the cube root of p."""
    found = jax.lax.stop_gradient(jnp.cbrt(p))

    def gap(z, given):
        p, found, count = given
        return jnp.sin((found + z) ** 3 - p) * count

    return found + root_change(gap, 3 * found**2, (p, found, jnp.int32(1)))


def test_members_and_loops_have_them_too():
    def twice(p):
        return jax.lax.scan(lambda t, _: (jax.checkpoint(cube_root)(t), None), p, None, length=2)[0]

    p = jnp.array([0.5, 1.0, 2.0])
    found = jax.jit(jax.vmap(jax.jacfwd(jax.jacrev(twice))))(p)
    np.testing.assert_allclose(found, 1 / 9 * (1 / 9 - 1) * p ** (1 / 9 - 2), rtol=1e-13)


def test_there_is_no_derivative_where_the_rate_is_zero():
    def root(p):
        return root_change(lambda z, p: z - p, jnp.zeros_like(p), p)

    assert jax.grad(root)(1.0) == 0 and jax.grad(jax.grad(root))(1.0) == 0
