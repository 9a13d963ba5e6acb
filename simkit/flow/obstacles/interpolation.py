"""Piecewise linear interpolation at traced positions, by comparisons instead of a search."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.arrays import like


def interpolated(x: jax.Array, points: jax.Array | np.ndarray, values: jax.Array | np.ndarray) -> jax.Array:
    """Return a piecewise linear function at x, constant beyond its ends.

    All positions are compared with all points, a few dozen each: `jnp.searchsorted` has no derivative in an exported
    program with a symbolic batch size.

    Args:
        x: positions, of any shape.
        points: increasing, (n,).
        values: of the function at the points, (n,).
    """
    points, values = (array if isinstance(array, jax.Array) else like(x, array) for array in (points, values))
    below = jnp.sum(x[..., None] >= points[1:-1], axis=-1)
    share = (x - points[below]) / (points[below + 1] - points[below])
    # Not `jnp.clip`, whose derivative is half the slope where a position equals a point.
    share = jnp.where(x < points[0], 0, jnp.where(x > points[-1], 1, share))
    return values[below] + share * (values[below + 1] - values[below])
