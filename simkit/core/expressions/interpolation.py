"""Interpolation of fields between grid points: ``at(u, x=0.5)``."""

import jax
import jax.numpy as jnp
import numpy as np

type Points = jax.Array | np.ndarray

# Of a distance between points: how far beyond the side of the outermost cell rounding may put a place on that side.
ROUNDING = 1e-3


def weights(points: jax.Array, place: jax.Array) -> jax.Array:
    """Return the weight of each point of a line in the value at a place, by straight lines between neighbors.

    The outermost lines go on for half their length, so that a field known at the centers of cells has values up to the
    sides. Farther out the weights are NaN. Those of one point are 1.

    Args:
        points: increasing coordinates, (n,).
        place: coordinates, of any shape.

    Returns:
        Weights that sum to 1, (n, ...).
    """
    if len(points) == 1:
        return jnp.ones((1, *place.shape), place.dtype)
    left = jnp.clip(jnp.searchsorted(points, place) - 1, 0, len(points) - 2)
    part = (place - points[left]) / (points[left + 1] - points[left])
    part = jnp.where(is_within(points, place), part, jnp.nan)
    number = jnp.arange(len(points)).reshape(-1, *[1] * place.ndim)
    return jnp.where(number == left, 1 - part, 0) + jnp.where(number == left + 1, part, 0)


def is_within(points: Points, place: Points) -> Points:
    """Tell which places are on a line of points, or at most half a distance of neighbors beyond its ends.

    Args:
        points: increasing coordinates, (n,); of one point alone the line has no ends.
        place: coordinates, of any shape.
    """
    if len(points) == 1:
        return place == place
    room = 0.5 + ROUNDING
    before, behind = room * (points[1] - points[0]), room * (points[-1] - points[-2])
    return (place >= points[0] - before) & (place <= points[-1] + behind)
