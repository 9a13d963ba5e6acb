"""The smooth kernel of an immersed boundary: a B-spline over the points of a grid, with its integrals.

    B(s) = 1/(p - 1)! sum over k of (-1)^k (p over k) (s + p/2 - k)_+^(p - 1),    p = 5

Its values at the grid points sum to 1 with their centroid at its center wherever that is, and it has three continuous
derivatives: sums over the grid hardly depend on where between the points of the grid a kernel stands.

Reference: Schoenberg, Q. Appl. Math. 4, 45 (1946), doi:10.1090/qam/15914.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.arrays import like
from simkit.flow.grid import Axis
from simkit.flow.obstacles.interpolation import interpolated
from simkit.flow.operators.differences import total

ORDER = 5
# Radius of the kernel's support, in spacings.
SUPPORT = ORDER / 2


def kernel(s: jax.Array) -> jax.Array:
    """Return B at a distance in spacings."""
    return _powers(jnp.where(s > 0, -s, s), ORDER - 1)


def fluid_fraction(s: jax.Array) -> jax.Array:
    """Return the integral of B up to s: the indicator of the fluid at a distance of s spacings, smoothed; 0 to 1."""
    # The sum of powers is used where it is small, and free of cancellation.
    lower = _powers(jnp.where(s > 0, -s, s), ORDER)
    return jnp.where(s > 0, 1 - lower, lower)


def smearing(s: jax.Array) -> jax.Array:
    """Return half the mean distance, in spacings, of two points of the grid drawn with the weights of one kernel.

    A force spread by the kernel smooths a velocity profile that is zero inside and linear outside; this value, times
    slope and spacing, is the average of that smoothed profile that the same kernel reads at its center.

    Args:
        s: position of the kernel in spacings; only its distance to the nearest integer matters.
    """
    points = np.arange(-math.ceil(SUPPORT), math.ceil(SUPPORT) + 1)
    weights = kernel(like(s, points) - (s - jax.lax.stop_gradient(jnp.round(s)))[..., None])
    passed = jnp.cumsum(weights, axis=-1)
    return jnp.sum(passed * (1 - passed), axis=-1)


def in_spacings(x: jax.Array, points: np.ndarray, axis: Axis) -> jax.Array:
    """Return positions in units in which the points of an axis, faces or centers, are 0, 1, 2, ..."""
    if axis.periodic:
        return (x - float(points[0])) / float(axis.widths[0])
    return interpolated(x, points, np.arange(len(points)))


def weights(s: jax.Array, count: int, axis: Axis) -> jax.Array:
    """Return ``(kernels, count)`` weights of the points of an axis for kernels at the positions ``s`` in spacings."""
    distance = jnp.arange(count, dtype=s.dtype) - s[:, None]
    if axis.periodic:
        distance = distance - count * jax.lax.stop_gradient(jnp.round(distance / count))
    return kernel(distance)


def _powers(s: jax.Array, power: int) -> jax.Array:
    terms = (
        (-1) ** k * math.comb(ORDER, k) * jnp.maximum(s + ORDER / 2 - k, 0) ** power for k in range(1 + ORDER // 2)
    )
    return total(terms) / math.factorial(power)
