"""The stream function of a plane flow."""

import jax
import jax.numpy as jnp

from simkit.flow.arrays import Velocity, end, like
from simkit.flow.grid import Grid


def stream_function(velocity: Velocity, grid: Grid) -> jax.Array:
    """Return psi on the corners of the cells of a plane domain, with ``u = d psi/dy`` and ``v = -d psi/dx``.

    It is zero on the corner at the lower ends of both axes. Along the lower side it follows from the flow through that
    side, and from there upward from ``u``: what flows between two corners is the difference of their values. Around
    a periodic axis it changes by the net flow across the axis.

    Args:
        velocity: components on their faces, without divergence.
        grid: the grid, of two axes.

    Returns:
        Values at the `Axis.points` of both axes, the inverse of `simkit.flow.operators.differences.curl`.
    """
    u, v = velocity
    x, y = grid.axes
    # On a periodic axis the points are the upper faces of the cells, and the last is the lowest one, too.
    below = -jnp.cumsum(end(v, 1, 1 if y.periodic else 0) * like(v, grid.along(x.widths, 0)), axis=0)
    upward = jnp.cumsum(u * like(u, grid.along(y.widths, 1)), axis=1)
    below = below if x.periodic else jnp.pad(below, ((1, 0), (0, 0)))
    return below + (upward if y.periodic else jnp.pad(upward, ((0, 0), (1, 0))))
