"""Interpolation of fields between grid points: ``at(u, x=0.5)``, ``cubic_at(u, x=0.5)``."""

import jax
import jax.numpy as jnp
import numpy as np

type Points = jax.Array | np.ndarray

# Round-off of a coordinate on the side of the outermost cell, as a fraction of the distance between points.
ROUNDING = 1e-3


def weights(points: jax.Array, place: jax.Array) -> jax.Array:
    """Return the weights of the points of a line in linear interpolation.

    The outermost intervals are extrapolated by half their length, so that a field at cell centers has values up to the
    sides. Farther out the weights are NaN. The weight of a single point is 1.

    Args:
        points: increasing coordinates, (n,).
        place: coordinates at which to interpolate, of any shape.

    Returns:
        Weights that sum to 1, (n, ...).
    """
    if len(points) == 1:
        return jnp.ones((1, *place.shape), place.dtype)
    left = jnp.clip(jnp.searchsorted(points, place) - 1, 0, len(points) - 2)
    part = (place - points[left]) / (points[left + 1] - points[left])
    part = where_defined(is_within(points, place), part)
    number = jnp.arange(len(points)).reshape(-1, *[1] * place.ndim)
    return jnp.where(number == left, 1 - part, 0) + jnp.where(number == left + 1, part, 0)


def cubic_weights(points: jax.Array, place: jax.Array) -> jax.Array:
    """Return the weights of the points of a line in cubic (Lagrange) interpolation through the four nearest points.

        w_i = product over the other three points j of (place - x_j)/(x_i - x_j)

    Two points are on either side, or the four outermost near an end; with fewer points the polynomial goes through all.
    Farther out than half an interval beyond the ends the weights are NaN.

    Args:
        points: increasing coordinates, (n,).
        place: coordinates at which to interpolate, of any shape.

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
        weight = jnp.ones((), place.dtype)
        for other in near[:k] + near[k + 1 :]:
            weight = weight * (place - other) / (own - other)
        found = found + jnp.where(number == first + k, where_defined(inside, weight), 0)
    return found


def where_defined(is_defined: Points, value: jax.Array) -> jax.Array:
    """Return a value, or NaN with derivatives that are NaN too, by which an optimizer sees no stationary point.

    Args:
        is_defined: whether the value is defined, of its shape or a scalar.
        value: of any shape; what it is where it is not defined does not matter.
    """
    return value * jnp.where(is_defined, jnp.ones((), value.dtype), jnp.nan)


def is_within(points: Points, place: Points) -> Points:
    """Return whether coordinates lie on a line of points, or at most half an interval beyond its ends.

    Args:
        points: increasing coordinates, (n,); a single point allows any coordinate but NaN.
        place: coordinates, of any shape.
    """
    if len(points) == 1:
        return place == place
    margin = 0.5 + ROUNDING
    before, behind = margin * (points[1] - points[0]), margin * (points[-1] - points[-2])
    return (place >= points[0] - before) & (place <= points[-1] + behind)
