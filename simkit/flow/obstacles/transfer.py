"""Transfer of velocities and forces between a grid and points on outlines, by the kernel of an immersed boundary."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from simkit.flow.arrays import Velocity, like
from simkit.flow.diagnosis.measures import control_volumes
from simkit.flow.grid import Grid
from simkit.flow.obstacles.distance import positions
from simkit.flow.obstacles.interpolation import interpolated
from simkit.flow.obstacles.kernel import in_spacings, smearing, weights
from simkit.flow.obstacles.outline import Outline
from simkit.flow.operators.differences import inside, with_zero_ends


def kernels_at(around: Outline, grid: Grid) -> list[list[jax.Array]]:
    """Return, for each component and axis, ``(n, faces)`` weights of its inner faces at each point.

    Args:
        around: the points.
        grid: the grid.
    """
    return [
        [
            weights(in_spacings(x, p.ravel(), axis), p.size, axis)
            for x, p, axis in zip(around.points, positions(i, grid), grid.axes, strict=True)
        ]
        for i in range(2)
    ]


def read(velocity: Velocity, around: Outline, kernels: Sequence, grid: Grid) -> jax.Array:
    """Return the normal velocity at the points of an outline, followed by the tangential velocity.

    Args:
        velocity: components on their faces.
        around: the points.
        kernels: weights from `kernels_at`.
        grid: the grid.
    """
    x, y = (
        jnp.sum((first @ inside(f, i, grid)) * second, axis=1)
        for i, (f, (first, second)) in enumerate(zip(velocity, kernels, strict=True))
    )
    return across_and_along(x, y, around)


def spread(force: jax.Array, around: Outline, kernels: Sequence, grid: Grid) -> Velocity:
    """Return the velocity on the faces due to impulses at the points.

    Args:
        force: (2 n,) normal impulses, followed by tangential impulses.
        around: the points.
        kernels: weights from `kernels_at`.
        grid: the grid.
    """
    components = along_axes(force, around)
    return tuple(
        with_zero_ends((first * f[:, None]).T @ second / like(f, control_volumes(i, grid)), i, grid)
        for i, (f, (first, second)) in enumerate(zip(components, kernels, strict=True))
    )


def smearing_at(around: Outline, grid: Grid) -> jax.Array:
    """Return the length kappa h at each point, interpolated between those of both axes for inclined outlines."""
    length = jnp.zeros_like(around.points[0])
    for k, (x, n, axis) in enumerate(zip(around.points, around.normals, grid.axes, strict=True)):
        # The tangential velocity is located at the cell centers of the normal axis.
        width = interpolated(x, axis.centers, axis.widths)
        length = length + n**2 * width * smearing(in_spacings(x, positions(1 - k, grid)[k].ravel(), axis))
    return length


def spacing_in_cells(around: Outline, grid: Grid) -> jax.Array:
    """Return the distance of the points over the least width of the cells there, (n,)."""
    widths = [interpolated(x, axis.centers, axis.widths) for x, axis in zip(around.points, grid.axes, strict=True)]
    return around.spacing / jnp.minimum(*widths)


def across_and_along(x: jax.Array, y: jax.Array, around: Outline) -> jax.Array:
    """Return the normal components of vectors at the points, followed by the tangential components."""
    a, b = around.normals
    return jnp.concatenate([a * x + b * y, a * y - b * x])


def along_axes(force: jax.Array, around: Outline) -> tuple[jax.Array, jax.Array]:
    """Return the x and y components of vectors given by normal and tangential components."""
    a, b = around.normals
    across, along = jnp.split(force, 2)
    return a * across - b * along, b * across + a * along
