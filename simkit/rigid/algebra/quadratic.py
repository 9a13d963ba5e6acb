"""First root of a quadratic in time."""

import jax
import jax.numpy as jnp


def first_root(gap: jax.Array, rate: jax.Array, bend: jax.Array) -> jax.Array:
    """Return the smallest t >= 0 with ``gap + rate t + bend t^2 / 2 = 0``, infinite where there is none.

    Not to be differentiated: see `simkit.core.implicit`.

    Args:
        gap: value at t = 0, not negative.
        rate: first derivative at t = 0; a gap of zero with a rate of zero or more is open.
        bend: second derivative.
    """
    discriminant = rate * rate - 2 * bend * gap
    root = jnp.sqrt(jnp.maximum(discriminant, 0))
    closing, falling = rate < 0, bend < 0
    # Each case uses the form of the quadratic formula without cancellation.
    direct = jnp.where(discriminant >= 0, 2 * gap / jnp.where(closing, root - rate, 1), jnp.inf)
    later = jnp.where(falling, (root + rate) / jnp.where(falling, -bend, 1), jnp.inf)
    return jnp.where(closing, direct, later)
