"""Viscous friction: the Laplacian of the velocity and the shear on the sides."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.arrays import end
from simkit.flow.boundary.domain import Domain, no_motion
from simkit.flow.boundary.ghost_layers import Surrounded, along, step, strip
from simkit.flow.boundary.given import BoundaryVelocity
from simkit.flow.boundary.slopes import side_shares, side_slope
from simkit.flow.grid import Axis
from simkit.flow.operators.differences import difference_at_faces, with_ends
from simkit.flow.operators.open_sides import center_widths, control_lengths
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

    On a wall it follows ``domain.wall_slope``; for other sides see `simkit.flow.boundary.slopes.side_slope`.

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
