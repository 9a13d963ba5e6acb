"""Velocity gradient, pressure and traction at the surface of a body."""

import math

import jax
import jax.numpy as jnp

from simkit.flow.arrays import like
from simkit.flow.grid import Grid
from simkit.flow.obstacles.shapes import Point


def interpolate(f: jax.Array, point: Point, grid: Grid) -> jax.Array:
    """Return an array at the cell centers interpolated at a traced point, linear along each axis, extrapolated outside.

    Args:
        f: at the cell centers.
        point: one number for each axis, not near the ends of periodic axes.
        grid: the grid.
    """
    for axis, x in reversed(list(zip(grid.axes, point, strict=True))):
        centers = like(f, axis.centers)
        lower = jnp.clip(jnp.searchsorted(centers, x) - 1, 0, axis.cells - 2)
        weight = (x - centers[lower]) / (centers[lower + 1] - centers[lower])
        f = (1 - weight) * f[..., lower] + weight * f[..., lower + 1]
    return f


def surface_pressure(
    pressure: jax.Array, point: Point, normal: Point, spacing: float, grid: Grid, reach: float
) -> jax.Array:
    """Return the pressure of the flow at a point of the surface of a body.

    It is extrapolated by the parabola through three points outside, ``reach``, ``reach + 1`` and ``reach + 2`` spacings
    away along the normal.

    Args:
        pressure: at the cell centers.
        point: on the surface.
        normal: unit vector out of the body.
        spacing: width of the cells there.
        grid: the grid.
        reach: spacings from the surface within which the body disturbs the pressure.
    """
    distances = [reach, reach + 1, reach + 2]
    total = jnp.zeros((), pressure.dtype)
    for d in distances:
        weight = math.prod(e / (e - d) for e in distances if e != d)
        total = total + weight * interpolate(
            pressure, tuple(x + d * spacing * n for x, n in zip(point, normal, strict=True)), grid
        )
    return total
