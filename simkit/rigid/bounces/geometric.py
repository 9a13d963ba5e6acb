"""Geometric sums of any length, accurate and differentiable for every ratio from 0 to 1."""

import jax
import jax.numpy as jnp

# Number of terms that means infinity: finite, so that 0 times it is 0, and so large that q^n = 0 for every q < 1.
ENDLESS = 1e18


@jax.custom_jvp
def whole_power(base: jax.Array, exponent: jax.Array) -> jax.Array:
    """Return ``q^n`` with derivatives of any order in q, also at q = 0; the derivative in n is zero.

    Args:
        base: q, between 0 and 1.
        exponent: n, a whole number from 0 stored as a float.
    """
    return base**exponent


@whole_power.defjvp
def _derivative_of_power(
    values: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    base, exponent = values
    # The value by `whole_power`, too, so that higher derivatives use this rule again.
    return whole_power(base, exponent), exponent * whole_power(base, jnp.maximum(exponent - 1, 0)) * tangents[0]


def geometric_sum(ratio: jax.Array, count: jax.Array) -> jax.Array:
    """Return ``S(n) = 1 + q + ... + q^(n-1)``.

    Args:
        ratio: q, between 0 and 1.
        count: n, a whole number stored as a float; `ENDLESS` is allowed if q < 1.
    """
    loss = 1 - ratio
    # (1 - q^n) / (1 - q) loses digits as n (1 - q) approaches 0; six terms of its binomial series are exact there.
    near = loss * count < 0.01
    small = jnp.where(near, loss, 0)
    series = jnp.ones_like(loss)
    for order in range(6, 1, -1):
        series = 1 - (count - order + 1) / order * small * series
    direct = (1 - whole_power(jnp.where(near, 1, ratio), count)) / jnp.where(near, 1, loss)
    return jnp.where(near, count * series, direct)


def terms_of(ratio: jax.Array, total: jax.Array) -> jax.Array:
    """Return the real number n at which the geometric sum equals a total; infinite if the sum stays below it.

    Args:
        ratio: q, between 0 and 1.
        total: S(n) = (1 - q^n) / (1 - q), not negative.
    """
    # Within these bounds both logarithms are finite; the lower bound is so small that n = S(n), as for q = 1.
    loss = jnp.clip(1 - ratio, 1e-30, 1 - jnp.finfo(ratio.dtype).eps)
    return jnp.log1p(-jnp.minimum(total * loss, 1)) / jnp.log1p(-loss)
