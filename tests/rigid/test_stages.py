"""A stage cuts derivatives into passes and leaves plain programs and all numbers as they are."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.rigid.algebra.stages import staged


def curve(x):
    return jnp.sin(staged({"turn": jnp.cos(x)})["turn"]) * x


def plain(x):
    return jnp.sin(jnp.cos(x)) * x


def barriers(function, *arguments):
    return jax.jit(function).lower(*arguments).as_text().count("optimization_barrier")


def test_values_and_derivatives_of_both_modes_and_both_orders_are_unchanged(x64):
    x = jnp.linspace(-2.0, 2.0, 5)
    np.testing.assert_array_equal(jax.jit(curve)(x), jax.jit(plain)(x))
    for derivative in (jax.grad, jax.jacfwd, lambda f: jax.grad(jax.grad(f)), lambda f: jax.jacfwd(jax.grad(f))):
        found = jax.vmap(jax.jit(derivative(curve)))(x)
        np.testing.assert_allclose(found, jax.vmap(derivative(plain))(x), rtol=1e-14)


def test_only_derivatives_are_cut_into_passes():
    one = jnp.float32(0.5)
    assert barriers(curve, one) == barriers(jax.vmap(curve), one[None]) == 0
    assert barriers(lambda x: jax.jvp(curve, (x,), (x,)), one) == 2  # the value and its tangent
    assert barriers(jax.grad(curve), one) == 2  # the value, and the cotangent on its way back


def test_whole_numbers_pass_through():
    assert staged(jnp.arange(3)).dtype == jnp.int32
    found = jax.jacfwd(lambda x: staged((x * 2, jnp.int32(3)))[0])(1.0)
    assert found == 2
