"""Piecewise linear functions of traced places, found by comparing."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.arrays import like


def interpolated(x: jax.Array, points: jax.Array | np.ndarray, values: jax.Array | np.ndarray) -> jax.Array:
    """Return a piecewise linear function at x, beyond its ends that of the ends.

    Comparisons of all places with all points, a few dozen each, in place of a search: a search of JAX has no derivative
    in an exported program whose number of members is left open.

    Args:
        x: places, of any shape.
        points: increasing, (n,).
        values: of the function at the points, (n,).
    """
    points, values = (array if isinstance(array, jax.Array) else like(x, array) for array in (points, values))
    below = jnp.sum(x[..., None] >= points[1:-1], axis=-1)
    share = (x - points[below]) / (points[below + 1] - points[below])
    # Not `jnp.clip`, whose derivative is half the slope where a place is exactly a point.
    share = jnp.where(x < points[0], 0, jnp.where(x > points[-1], 1, share))
    return values[below] + share * (values[below + 1] - values[below])
