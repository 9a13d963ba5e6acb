"""Programs traced for runtimes without fusion are separate from others."""

import jax
import jax.numpy as jnp

from simkit.core.formulation import prefers_whole_arrays, whole_arrays


def test_a_function_is_traced_once_for_each():
    @jax.jit
    def inner(x):
        return x + 1 if prefers_whole_arrays() else x - 1

    def outer(x):
        return inner(x) * 2

    x = jnp.float32(3)
    assert jax.jit(outer)(x) == 4
    with whole_arrays():
        assert jax.jit(outer)(x) == 8
    assert jax.jit(outer)(x) == 4
