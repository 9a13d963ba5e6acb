"""Dependence of a function on its arguments."""

import jax.numpy as jnp

from simkit.core.dependence import depends


def test_dependence_on_arguments_is_found():
    weight = jnp.float32(9.81)
    assert not depends(lambda x, time: weight * jnp.ones_like(x), jnp.zeros(3), jnp.float32(0))
    assert depends(lambda x, time: weight * time * jnp.ones_like(x), jnp.zeros(3), jnp.float32(0))
    assert depends(lambda x, time: 0 * x, jnp.zeros(3), jnp.float32(0))
