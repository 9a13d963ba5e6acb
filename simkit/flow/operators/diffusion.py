"""Viscous friction: the Laplacian and shear of one viscosity, and the stress of a viscosity that varies."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.boundary.domain import Domain, no_motion
from simkit.flow.boundary.ghost_layers import Surrounded, along, lower, side_shares, side_slope, step, strip, upper
from simkit.flow.boundary.side_data import BoundaryVelocity
from simkit.flow.grid import Axis, Velocity, end
from simkit.flow.operators.advection import center_widths, control_lengths, without_beyond, without_ends
from simkit.flow.operators.differences import (
    difference_at_centers,
    difference_at_faces,
    joined,
    mean_at_centers,
    total,
    with_ends,
)
from simkit.flow.solvers.tridiagonal import matrix_of_slopes


def laplacian(around: Surrounded, domain: Domain, axes: tuple[int, ...] | None = None) -> tuple[jax.Array, ...]:
    """Return the sum of the second derivatives on the faces of each component where it is an unknown.

    Args:
        around: the velocity with one layer of points around it, see `surround`.
        domain: the domain.
        axes: axes along which to differentiate; by default all.
    """
    every = range(domain.grid.dimension)
    terms = []
    for i, f in enumerate(around):
        term = 0.0
        for j in every if axes is None else axes:
            axis = domain.grid.axes[j]
            points = strip(f, [k for k in every if k != j])
            slopes = step(points, j)
            if i == j:
                slopes = slopes * along(f, 1 / center_widths(j, domain), j, domain)
                spacing = control_lengths(j, domain)
            else:
                slopes, spacing = slopes * along(f, 1 / reach(axis), j, domain), axis.widths
            term = term + step(slopes, j) * along(f, 1 / spacing, j, domain)
        terms.append(term)
    return tuple(terms)


def reach(axis: Axis) -> np.ndarray:
    """Return the distances between neighboring cell centers, with ghost points mirrored about the sides."""
    ends = ([], []) if axis.periodic else (axis.widths[:1], axis.widths[-1:])
    return np.concatenate([ends[0], axis.distances, ends[1]])


def shear(f: jax.Array, component: int, axis: int, boundary: BoundaryVelocity, domain: Domain) -> jax.Array:
    """Return the derivative of a component of the velocity along another axis, on all faces across that axis.

    On a wall it follows ``domain.wall_slope``; for other sides see `simkit.flow.boundary.ghost_layers.side_slope`.

    Args:
        f: the component, on its faces.
        component: index of the component.
        axis: another axis.
        boundary: velocity on the sides.
        domain: the domain.
    """
    inner = difference_at_faces(f, axis, domain.grid)
    if domain.grid.axes[axis].periodic:
        return inner
    slopes = (side_slope(f, component, axis, side, boundary, domain) for side in (0, 1))
    ends = [jnp.zeros_like(end(f, axis, i)) if slope is None else slope for i, slope in enumerate(slopes)]
    return with_ends(ends[0], inner, ends[1], axis)


def second_difference(component: int, axis: int, domain: Domain) -> np.ndarray | None:
    """Return the matrix of `laplacian` along one bounded axis for sides at rest; ``None`` on a periodic axis.

    Args:
        component: of the velocity.
        axis: along which to differentiate; ``(n, n)`` for the n cells, ``(n - 1, n - 1)`` for the inner faces if it is
            the component's own, and one more for each open side.
        domain: the domain, whose sides have no values of their own.
    """
    a = domain.grid.axes[axis]
    if a.periodic:
        return None
    if component == axis:
        ends = tuple(int(is_open) for is_open in domain.is_open(axis))
        return matrix_of_slopes(np.pad(1 / a.widths, ends), control_lengths(axis, domain))
    lower, upper = side_shares(component, axis, no_motion(domain), domain)
    assert isinstance(lower, float) and isinstance(upper, float), "sides without values of their own have known shares"
    return second_difference_at_centers(axis, (lower, upper), domain)


def second_difference_at_centers(axis: int, shares: tuple[float, float], domain: Domain) -> np.ndarray:
    """Return the ``(n, n)`` second difference along a bounded axis, for arrays at the centers of its cells.

    Args:
        axis: along which to differentiate.
        shares: slope relative to that at a wall, on the lower and the upper side: 1 for zero value, 0 for zero slope.
        domain: the domain.
    """
    a = domain.grid.axes[axis]
    matrix = matrix_of_slopes(np.pad(1 / a.distances, 1), a.widths)
    # The slope on a side is computed from the two nearest points.
    for side, (first, second), share in ((0, (0, 1), shares[0]), (1, (-1, -2), shares[1])):
        if share:
            near, far = domain.place(axis, side).weights
            inner = 1 / a.distances[first]
            row = np.array([-inner - share * near, inner + share * far])
            matrix[first, first], matrix[first, second] = row / a.widths[first]
    return matrix


def divergence_of_stress(around: Surrounded, viscosity: jax.Array, domain: Domain) -> tuple[jax.Array, ...]:
    """Return the viscous acceleration on the faces of each component where it is an unknown.

        F_i = sum over j of d/dx_j (nu (du_i/dx_j + du_j/dx_i))

    Momentum is conserved, and with symmetric slopes on the sides ``<v, F(u)> = <u, F(v)>``. For a uniform viscosity and
    a solenoidal velocity it equals ``nu laplacian(u)`` up to rounding. The viscosity is interpolated linearly between
    centers; on a side it is that of the nearest cells, so that it is nowhere below the least value.

    Args:
        around: the velocity with one layer of points around it, see `surround`.
        viscosity: at the cell centers.
        domain: the domain.
    """
    every = range(domain.grid.dimension)
    padded = _with_neighbors(viscosity, domain)
    terms = []
    for i, f in enumerate(around):
        term = 0.0
        for j, axis in enumerate(domain.grid.axes):
            others = [k for k in every if k not in (i, j)]
            points = step(strip(f, [k for k in every if k != j]), j)
            nu = strip(padded, others)
            if i == j:
                strain = points * along(f, 2 / center_widths(j, domain), j, domain)
                nu, spacing = _inner(nu, i, domain), control_lengths(i, domain)
            else:
                crossing = strip(without_beyond(around[j], j, domain), others)
                crossing = _inner(step(crossing, i) * along(f, 1 / reach(domain.grid.axes[i]), i, domain), i, domain)
                crossing = lower(crossing, j) if axis.periodic else crossing
                strain = points * along(f, 1 / reach(axis), j, domain) + crossing
                nu, spacing = _inner(_at_faces(_at_faces(nu, i, domain), j, domain), i, domain), axis.widths
            term = term + step(nu * strain, j) * along(f, 1 / spacing, j, domain)
        terms.append(term)
    return tuple(terms)


def squared_shear_rate(velocity: Velocity, boundary: BoundaryVelocity, domain: Domain) -> jax.Array:
    """Return twice the sum of the squares of all rates of strain, at the cell centers.

        2 S_ij S_ij,   S_ij = (du_i/dx_j + du_j/dx_i)/2

    In a shear flow it is the square of the slope. Squares on the edges of a cell are averaged.

    Args:
        velocity: components on their faces.
        boundary: velocity on the sides, see `simkit.flow.equations.Equations.on_sides`.
        domain: the domain.

    Example:
        >>> axes = (flow.periodic_axis(4, 1.0), flow.bounded_axis(8, 1.0))
        >>> channel = flow.domain(axes, (None, ("wall", "wall")))
        >>> u = jnp.broadcast_to(3 * channel.grid.axes[1].centers, channel.grid.shape(0))
        >>> moving = (None, ((0.0, 0.0), (3.0, 0.0)))
        >>> rate = flow.squared_shear_rate((u, jnp.zeros(channel.grid.shape(1))), moving, channel)
        >>> print(f"{rate.mean():.3f} = 3^2")
        9.000 = 3^2
    """
    grid = domain.grid
    rates = [2 * difference_at_centers(f, i, grid) ** 2 for i, f in enumerate(velocity)]
    for i in range(grid.dimension):
        for j in range(i):
            edges = shear(velocity[i], i, j, boundary, domain) + shear(velocity[j], j, i, boundary, domain)
            rates.append(mean_at_centers(mean_at_centers(edges**2, i, grid), j, grid))
    return total(rates)


def _with_neighbors(viscosity: jax.Array, domain: Domain) -> jax.Array:
    """Return the viscosity with a ghost layer at both ends of each axis, on a bounded axis a copy of the last layer."""
    for i, axis in enumerate(domain.grid.axes):
        ends = [end(viscosity, i, side) for side in (0, 1)]
        below, above = reversed(ends) if axis.periodic else ends
        viscosity = joined([below, viscosity, above], i)
    return viscosity


def _inner(f: jax.Array, axis: int, domain: Domain) -> jax.Array:
    """Return the part of an array that belongs to the unknown velocities along an axis, without ghost points."""
    return upper(f, axis) if domain.grid.axes[axis].periodic else without_ends(f, axis, domain)


def _at_faces(f: jax.Array, axis: int, domain: Domain) -> jax.Array:
    """Return an array at the centers, ghost cells included, interpolated to all faces of an axis."""
    widths = np.pad(domain.grid.axes[axis].widths, 1, mode="edge")
    share = widths[:-1] / (widths[:-1] + widths[1:])
    return lower(f, axis) + along(f, share, axis, domain) * step(f, axis)
