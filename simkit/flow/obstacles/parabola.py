"""Parabolas along the normal with a given value or slope on a surface, to which a field near it is forced."""

import jax
import jax.numpy as jnp

from simkit.flow.obstacles.distance import smooth_step

# The shell, in spacings along the normal: the weight of forcing is 1 up to this distance from its middle, and falls to
# spacing in part. The middle lies outside: points deeper inside would be extrapolated so steeply that a flow with the
# shell around the surface itself, at 0, blew up; at 1/2 errors were no smaller.
FULL = 0.5
MIDDLE = 0.25


# A parabola of given slope can be continued inward. Forcing up to this distance inside keeps the kink toward the inner
# kink between it and the fluid inside out of all stencils of the fluid, which would change the slope by up to 0.4 %
# however fine the grid is.
INWARD = -1.0


def slope_weight(s: jax.Array) -> jax.Array:
    """Return the weight of forcing to a slope: that of `shell_weight`, and 1 further inside."""
    full = (MIDDLE + FULL - INWARD) / 2
    return smooth_step((jnp.abs(s - (INWARD + full)) - full) / (1 - FULL))


def shell_weight(s: jax.Array) -> jax.Array:
    """Return the weight of forcing at a distance of s spacings: 1 in the shell, falling smoothly to 0 around it."""
    return smooth_step((jnp.abs(s - MIDDLE) - FULL) / (1 - FULL))


def with_value(s: jax.Array, value: jax.Array | float, first: jax.Array, second: jax.Array) -> jax.Array:
    """Return the parabola that is ``value`` on the surface.

        value + 2 s/(1 + s) first - s/(2 + s) second

    Args:
        s: distance from the surface in spacings.
        value: on the surface.
        first: the field one spacing further out, less the value for which the slope is zero.
        second: two spacings further out, likewise.
    """
    # Clipped further inside, where the weight vanishes and the parabola becomes steep.
    near = jnp.maximum(s, MIDDLE - FULL)
    return value + 2 * near / (1 + near) * first - near / (2 + near) * second


def with_slope(s: jax.Array, slope: jax.Array | float, first: jax.Array, second: jax.Array) -> jax.Array:
    """Return the parabola that has a slope on the surface.

        first - slope - (1 + 2 s)/(3 + 2 s) (second - first - slope)

    Args:
        s: distance from the surface in spacings.
        slope: on the surface, per spacing.
        first: the field one spacing further out.
        second: two spacings further out.
    """
    near = jnp.maximum(s, MIDDLE - FULL)
    return first - slope - (1 + 2 * near) / (3 + 2 * near) * (second - first - slope)
