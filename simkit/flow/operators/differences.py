"""Differences and means between neighboring points along one axis, from which all operators are built."""

import functools
from collections.abc import Collection, Iterable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import by_device, computed_once_on_cpu, prefers_whole_arrays
from simkit.flow.grid import Grid, Velocity, end, like


def sides_of_cells(f: jax.Array, axis: int, grid: Grid) -> tuple[jax.Array, jax.Array]:
    """Return the values on the lower and on the upper face of every cell, of an array on the faces along an axis."""
    if grid.axes[axis].periodic:
        f = joined([end(f, axis, 1), f], axis)
    n = f.shape[axis]
    return jax.lax.slice_in_dim(f, 0, n - 1, axis=axis), jax.lax.slice_in_dim(f, 1, n, axis=axis)


def neighbors(f: jax.Array, axis: int, grid: Grid) -> tuple[jax.Array, jax.Array]:
    """Return the values below and above every inner face (every face if periodic), of an array at the centers."""
    if grid.axes[axis].periodic:
        f = joined([f, end(f, axis, 0)], axis)
    n = f.shape[axis]
    return jax.lax.slice_in_dim(f, 0, n - 1, axis=axis), jax.lax.slice_in_dim(f, 1, n, axis=axis)


def difference_at_centers(f: jax.Array, axis: int, grid: Grid) -> jax.Array:
    """Return the derivative along an axis at the cell centers, of an array on its faces."""
    lower, upper = sides_of_cells(f, axis, grid)
    return (upper - lower) / like(f, grid.along(grid.axes[axis].widths, axis))


def mean_at_centers(f: jax.Array, axis: int, grid: Grid) -> jax.Array:
    """Return the mean at the cell centers, of an array on the faces along an axis."""
    lower, upper = sides_of_cells(f, axis, grid)
    return (lower + upper) / 2


def difference_at_faces(f: jax.Array, axis: int, grid: Grid) -> jax.Array:
    """Return the derivative along an axis on its inner faces (all faces if periodic), of an array at the centers."""
    lower, upper = neighbors(f, axis, grid)
    return (upper - lower) / like(f, grid.along(grid.axes[axis].distances, axis))


def mean_at_faces(f: jax.Array, axis: int, grid: Grid) -> jax.Array:
    """Return the plain mean on the inner faces (all faces if periodic), of an array at the centers along an axis."""
    lower, upper = neighbors(f, axis, grid)
    return (lower + upper) / 2


def linear_at_faces(f: jax.Array, axis: int, grid: Grid) -> jax.Array:
    """Return the linear interpolation to the inner faces (all faces if periodic), of an array at the centers."""
    if grid.axes[axis].periodic:
        return mean_at_faces(f, axis, grid)
    lower, upper = neighbors(f, axis, grid)
    widths = grid.axes[axis].widths
    return lower + like(f, grid.along(widths[:-1] / (widths[:-1] + widths[1:]), axis)) * (upper - lower)


def flux_at_faces(f: jax.Array, axis: int, grid: Grid) -> jax.Array:
    """Return the mean on the inner faces (all if periodic), each neighbor weighted by the width of its cell."""
    if grid.axes[axis].periodic:
        return mean_at_faces(f, axis, grid)
    lower, upper = neighbors(f * like(f, grid.along(grid.axes[axis].widths, axis)), axis, grid)
    return (lower + upper) / like(f, grid.along(2 * grid.axes[axis].distances, axis))


def inside(f: jax.Array, axis: int, grid: Grid) -> jax.Array:
    """Return a velocity component without its points on the boundary of its own axis, which are no unknowns."""
    return f if grid.axes[axis].periodic else jax.lax.slice_in_dim(f, 1, f.shape[axis] - 1, axis=axis)


def with_ends(lower: jax.Array, inner: jax.Array, upper: jax.Array, axis: int) -> jax.Array:
    """Return an array with one layer added at each end of an axis."""
    return joined([lower, inner, upper], axis)


def with_zero_ends(f: jax.Array, axis: int, grid: Grid) -> jax.Array:
    """Return a velocity from its inner points along its own axis, zero on the boundary."""
    if grid.axes[axis].periodic:
        return f
    f = computed_once_on_cpu(f)
    nothing = jnp.zeros_like(end(f, axis, 0))
    return with_ends(nothing, f, nothing, axis)


def divergence(velocity: Velocity, grid: Grid) -> jax.Array:
    """Return the divergence of the velocity at the cell centers."""
    return total(difference_at_centers(f, i, grid) for i, f in enumerate(velocity))


def gradient(pressure: jax.Array, grid: Grid, open_sides: Collection[tuple[int, int]] = ()) -> Velocity:
    """Return the gradient on the faces where the velocity lives.

    It is zero on the boundary, where the normal velocity is given, except on open sides: there the pressure is taken as
    zero, at half a cell from the nearest centers.

    Args:
        pressure: at the cell centers.
        grid: the grid.
        open_sides: (axis, 0 or 1) of the sides on which the pressure is given.
    """
    return tuple(slope_at_faces(pressure, i, grid, open_sides) for i in range(grid.dimension))


def slope_at_faces(f: jax.Array, axis: int, grid: Grid, open_sides: Collection[tuple[int, int]] = ()) -> jax.Array:
    """Return one component of `gradient`."""
    a = grid.axes[axis]
    if a.periodic:
        return difference_at_faces(f, axis, grid)
    # Ghost values beyond the ends are those at the ends; beyond open sides, their negatives.
    ends = [-end(f, axis, side) if (axis, side) in open_sides else end(f, axis, side) for side in (0, 1)]
    around = with_ends(ends[0], f, ends[1], axis)
    n, distances = f.shape[axis], np.pad(a.distances, 1, constant_values=1.0)
    for side in (0, -1):
        if (axis, -side) in open_sides:
            distances[side] = a.widths[side]
    lower, upper = (jax.lax.slice_in_dim(around, k, n + 1 + k, axis=axis) for k in (0, 1))
    return (upper - lower) / like(f, grid.along(distances, axis))


def at_centers(velocity: Velocity, grid: Grid) -> Velocity:
    """Return all components interpolated to the cell centers."""
    return tuple(mean_at_centers(f, i, grid) for i, f in enumerate(velocity))


def total(terms: Iterable[jax.Array]) -> jax.Array:
    """Return the sum of arrays."""
    return functools.reduce(jnp.add, terms)


def blend[T](old: T, new: T, share: jax.Array | float) -> T:
    """Return ``(1 - share) old + share new``, for arrays, numbers and trees of them."""
    return jax.tree.map(lambda a, b: (1 - share) * a + share * b, old, new)


def curl(stream: jax.Array, grid: Grid) -> Velocity:
    """Return the plane velocity ``(d psi/dy, -d psi/dx)`` of a stream function on the corners of the cells.

    Its divergence is zero to round-off. Corners are the faces of both axes: ``(n + 1)`` entries along a bounded axis.
    """
    return difference_at_centers(stream, 1, grid), -difference_at_centers(stream, 0, grid)


def joined(parts: list[jax.Array], axis: int) -> jax.Array:
    """Return arrays concatenated along an axis, on a CPU with barriers that materialize parts and result.

    There concatenation of materialized parts is compiled to copies of rows, which take half the time; along the first
    axis it is a little faster without the barrier. On an accelerator it is a sum of the padded parts, which the
    compiler fuses into the stencils that read it, as it does not with a concatenation.
    """

    def copied(parts: list[jax.Array]) -> jax.Array:
        return computed_once_on_cpu(jnp.concatenate(computed_once_on_cpu(parts) if axis else parts, axis))

    def summed(parts: list[jax.Array]) -> jax.Array:
        if prefers_whole_arrays():
            return jnp.concatenate(parts, axis)
        starts = np.cumsum([0, *(part.shape[axis] for part in parts)]).tolist()

        def padded(part: jax.Array, start: int) -> jax.Array:
            ends = (start, starts[-1] - start - part.shape[axis], 0)
            # Only negative zero leaves every number as it is, zeros included.
            return jax.lax.pad(part, like(part, -0.0), [ends if i == axis else (0, 0, 0) for i in range(part.ndim)])

        return total(map(padded, parts, starts[:-1]))

    return by_device(parts, cpu=copied, accelerator=summed)
