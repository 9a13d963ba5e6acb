"""Signed distance of grid points, and the smoothed indicator of a body."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.grid import Grid, like
from simkit.flow.obstacles.shapes import Shape

# Below this gradient, per unit length, the normal is undefined (the center of a circle, for instance).
FLAT = 1e-6


def positions(component: int | None, grid: Grid) -> list[np.ndarray]:
    """Return the coordinates of the inner faces of a component of the velocity, or of the cell centers for None.

    Each has length 1 along all axes but its own.
    """
    points = []
    for i, axis in enumerate(grid.axes):
        inner = axis.points if axis.periodic else axis.points[1:-1]
        points.append(grid.along(inner if i == component else axis.centers, i))
    return points


def distance_and_normal(shape: Shape, points: Sequence[jax.Array]) -> tuple[jax.Array, list[jax.Array]]:
    """Return the signed distance and the unit vector that leads away from the surface.

    A function that is zero on the surface but no distance is divided by its gradient, which makes it a distance to
    second order. Both results are smooth in the parameters of the shape where the gradient is; where the gradient
    vanishes, the vector is zero.

    Args:
        shape: the body.
        points: coordinates that broadcast against each other.
    """
    x = jnp.broadcast_arrays(*points)
    zero, one = jnp.zeros_like(x[0]), jnp.ones_like(x[0])
    directions = [tuple(one if k == i else zero for k in range(len(x))) for i in range(len(x))]
    value = shape(*x)
    slopes = [jax.jvp(shape, tuple(x), direction)[1] for direction in directions]
    square = sum(s**2 for s in slopes)
    steep = square > FLAT**2
    inverse = jnp.where(steep, jax.lax.rsqrt(jnp.where(steep, square, 1)), 0)
    return jnp.where(steep, value * inverse, value), [s * inverse for s in slopes]


def smooth_step(s: jax.Array) -> jax.Array:
    """Return 1 for s below 0, 0 for s above 1, and between them the quintic with two continuous derivatives."""
    t = jnp.clip(s, 0, 1)
    return 1 - t**3 * (10 - t * (15 - 6 * t))


# Spacings on either side of the surface over which the indicator of a body falls. The area of a disk of 6 cells is then
# right to 6e-4 wherever it lies on the grid, of 12 cells to 2e-4; with 1 it is 7e-3 and 2e-3.
BLUR = 1.75
# Makes the first moment of (indicator - exact indicator) across the surface vanish, which preserves the volume of
BALANCE = -45 / 64


def indicator(shape: Shape, component: int | None, grid: Grid, dtype) -> jax.Array:
    """Return the smoothed indicator of a body, 1 inside: on inner faces of a component, or at the centers for None.

    Args:
        shape: the body.
        component: of the velocity; None for the cell centers.
        grid: the grid.
        dtype: of the result.
    """
    s = distance_in_cells(shape, component, grid, dtype) / BLUR
    near = jnp.clip(s, -1, 1)
    return smooth_step((1 + s) / 2) + BALANCE * near * (1 - near**2) ** 3


def distance_in_cells(shape: Shape, component: int | None, grid: Grid, dtype) -> jax.Array:
    """Return the signed distance in widths of the cells along the normal.

    Args:
        shape: the body.
        component: of the velocity, for its inner faces; None for the cell centers.
        grid: the grid.
        dtype: of the result.
    """
    x = [jnp.asarray(p, dtype) for p in positions(component, grid)]
    distance, normal = distance_and_normal(shape, x)
    lengths = [a.distances if k == component else a.widths for k, a in enumerate(grid.axes)]
    across = sum((n * like(n, grid.along(h, k))) ** 2 for k, (n, h) in enumerate(zip(normal, lengths, strict=True)))
    # At the center of a body the normal is undefined.
    across = jnp.where(across > 0, across, min(float(h.min()) for h in lengths) ** 2)
    return distance * jax.lax.rsqrt(across)
