"""`staged` adds barriers to derivatives only, and changes no values."""

import jax
import jax.numpy as jnp
import numpy as np

from tests.rigid.test_stages import curve


def plain(x):
    return jnp.sin(jnp.cos(x)) * x


def test_values_and_derivatives_of_both_modes_and_both_orders_are_unchanged(x64):
    x = jnp.linspace(-2.0, 2.0, 5)
    np.testing.assert_array_equal(jax.jit(curve)(x), jax.jit(plain)(x))
    for derivative in (jax.grad, jax.jacfwd, lambda f: jax.grad(jax.grad(f)), lambda f: jax.jacfwd(jax.grad(f))):
        found = jax.vmap(jax.jit(derivative(curve)))(x)
        np.testing.assert_allclose(found, jax.vmap(derivative(plain))(x), rtol=1e-14)
