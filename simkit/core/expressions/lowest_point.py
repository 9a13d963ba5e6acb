"""Minimum of a field between grid points by parabolas: ``parabola_min(u)``, ``parabola_min_at(u, axis="x")``."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.arithmetic import divide


def lowest_point(f: jax.Array, lines: Sequence[np.ndarray]) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Return value and coordinates of the minimum of a field, by parabolas through its lowest entry and its neighbors.

        f(x_k + s) = f_k + slope s + bend s^2,   s = -slope/(2 bend),   along each axis separately

    Exact for a sum of parabolas of one coordinate each. Where the lowest entry is at an end of an axis, the parabola
    goes through the three outermost entries, and the minimum lies within them. Where they do not curve upward, as on a
    constant field, the result is the lowest entry itself.

    Args:
        f: values, (n1, n2, ...), each axis of at least 3.
        lines: increasing coordinates along each axis, (n1,), (n2,), ...
    """
    lowest = jnp.unravel_index(jnp.argmin(f), f.shape)
    value, coordinates = f[lowest], []
    for axis, (k, line) in enumerate(zip(lowest, lines, strict=True)):
        first = jnp.clip(k - 1, 0, len(line) - 3)
        others = (*lowest[:axis], slice(None), *lowest[axis + 1 :])
        a, b, c = jax.lax.dynamic_slice(f[others], (first,), (3,))
        points = jnp.asarray(line, f.dtype)
        left, middle, right = jax.lax.dynamic_slice(points, (first,), (3,))
        below, above = (b - a) / (middle - left), (c - b) / (right - middle)
        bend = (above - below) / (right - left)
        x = points[k]
        # Slope of the parabola at the lowest entry, which is one of the three.
        slope = below + bend * ((x - left) + (x - middle))
        is_convex = bend > 0
        shift = jnp.where(is_convex, divide(-slope, jnp.where(is_convex, 2 * bend, 1)), 0)
        shift = jnp.clip(shift, left - x, right - x)
        coordinates.append(x + shift)
        value = value + shift * (slope + bend * shift)
    return value, tuple(coordinates)
