"""Interpolation of fields between grid points: ``at(u, x=0.5)``, ``cubic_at(u, x=0.5)``."""

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


def cubic_weights(points: jax.Array, place: jax.Array) -> jax.Array:
    """Return the weight of each point of a line in the value at a place, by the cubic through the four around it.

        w_i = product over the other three points j of (place - x_j)/(x_i - x_j)

    The four are two on either side, or the outermost ones; of fewer points the polynomial goes through all. Farther out
    than half a distance of neighbors the weights are NaN.

    Args:
        points: increasing coordinates, (n,).
        place: coordinates, of any shape.

    Returns:
        Weights that sum to 1, (n, ...).
    """
    count = min(4, len(points))
    first = jnp.clip(jnp.searchsorted(points, place) - count // 2, 0, len(points) - count)
    near = [points[first + k] for k in range(count)]
    number = jnp.arange(len(points)).reshape(-1, *[1] * place.ndim)
    inside = is_within(points, place)
    found = jnp.zeros((len(points), *place.shape), place.dtype)
    for k, own in enumerate(near):
        share = jnp.ones((), place.dtype)
        for other in near[:k] + near[k + 1 :]:
            share = share * (place - other) / (own - other)
        found = found + jnp.where(number == first + k, jnp.where(inside, share, jnp.nan), 0)
    return found


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
