"""The smooth kernel of an immersed boundary, and transfer by it between a grid and points on outlines."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import precise_product
from simkit.flow.diagnosis.measures import control_volumes
from simkit.flow.grid import Axis, Grid, Velocity, like
from simkit.flow.obstacles.distance import positions
from simkit.flow.obstacles.outline import Outline, interpolated
from simkit.flow.operators.differences import inside, total, with_zero_ends

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
        jnp.sum(precise_product(first, inside(f, i, grid)) * second, axis=1)
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
        with_zero_ends(precise_product((first * f[:, None]).T, second) / like(f, control_volumes(i, grid)), i, grid)
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
