"""Roots: derivatives of every order in every mode, at no cost in programs without derivatives, the longer ones."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.implicit import root_change
from tests.core.test_derivatives import cube_root

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("modes", list(itertools.product([jax.jacfwd, jax.jacrev], repeat=3)))
def test_three_derivatives_in_any_mode_are_those_of_the_function(modes):
    p, function = 1.7, cube_root
    expected, factor = [], 1.0
    for order in range(3):
        factor *= 1 / 3 - order
        expected.append(factor * p ** (1 / 3 - order - 1))
    for mode, derivative in zip(modes, expected, strict=True):
        function = mode(function)
        np.testing.assert_allclose(function(p), derivative, rtol=1e-13)


@pytest.mark.parametrize("inner", [jax.jacfwd, jax.jacrev])
def test_derivatives_by_many_numbers_pass_through_nested_loops(inner):
    def body(x, _):
        # Neither t nor the rate depends on x, so only derivatives are batched.
        def moved(x):
            p = x[0] - jax.lax.stop_gradient(x[0])
            z = root_change(lambda z, p: jnp.sin(p) - jnp.broadcast_to(z, 1)[0] * jnp.exp(z), jnp.float64(-1), p)
            return x * jnp.exp(x[1] * jnp.broadcast_to(z, 2))

        return jax.lax.cond(jnp.all(x != 0), jax.checkpoint(moved), lambda x: x, x), None

    def pair(x, _):
        return jax.checkpoint(lambda x: jax.lax.scan(jax.checkpoint(body), x, None, length=2)[0])(x), None

    def total(x):
        return jax.lax.scan(pair, x, None, length=2)[0].sum()

    def plain(x):
        for _ in range(4):
            s = jnp.sin(x[0] - jax.lax.stop_gradient(x[0]))
            # The root of z exp(z) = s, to second order.
            x = x * jnp.exp(x[1] * (s - s**2))
        return x.sum()

    x = jnp.array([0.7, -0.4])
    np.testing.assert_allclose(jax.jit(jax.jacfwd(inner(total)))(x), jax.jit(jax.hessian(plain))(x), rtol=1e-12)
