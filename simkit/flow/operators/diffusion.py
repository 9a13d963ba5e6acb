"""Viscous friction: the Laplacian of the velocity and the shear on the sides."""

import jax
import numpy as np

from simkit.flow.boundary.domain import BoundaryVelocity, Domain
from simkit.flow.boundary.slopes import side_slope, side_weights
from simkit.flow.boundary.surroundings import Surrounded, along, step, strip
from simkit.flow.operators.differences import difference_at_faces, with_ends
from simkit.flow.solvers.tridiagonal import matrix_of_slopes


def laplacian(around: Surrounded, domain: Domain, axes: tuple[int, ...] | None = None) -> tuple[jax.Array, ...]:
    """Return the sum of the second derivatives on the inner faces of each component.

    Args:
        around: the velocity with one layer of points around it, see `surround`.
        domain: the domain.
        axes: those along which to differentiate; by default all.
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
                slopes, spacing = slopes * along(f, 1 / axis.widths, j, domain), axis.distances
            else:
                # The points beyond the sides are as far out as the first ones are inside.
                ends = ([], []) if axis.periodic else (axis.widths[:1], axis.widths[-1:])
                reach = np.concatenate([ends[0], axis.distances, ends[1]])
                slopes, spacing = slopes * along(f, 1 / reach, j, domain), axis.widths
            term = term + step(slopes, j) * along(f, 1 / spacing, j, domain)
        terms.append(term)
    return tuple(terms)


def shear(f: jax.Array, component: int, axis: int, boundary: BoundaryVelocity, domain: Domain) -> jax.Array:
    """Return the derivative of a component of the velocity along another axis, on all faces across that axis.

    On a side that prescribes the velocity it is ``domain.wall_slope``; on the others it is zero.

    Args:
        f: the component, on its faces.
        component: which one.
        axis: another axis.
        boundary: velocity on the sides.
        domain: the domain.
    """
    inner = difference_at_faces(f, axis, domain.grid)
    if domain.grid.axes[axis].periodic:
        return inner
    ends = [side_slope(f, component, axis, side, boundary, domain) for side in (0, 1)]
    return with_ends(ends[0], inner, ends[1], axis)


def second_difference(component: int, axis: int, domain: Domain) -> np.ndarray | None:
    """Return the matrix of `laplacian` along one bounded axis for sides at rest; ``None`` on a periodic axis.

    Args:
        component: of the velocity.
        axis: along which to differentiate; ``(n, n)`` for the n cells, ``(n - 1, n - 1)`` for the inner faces if it is
            the component's own.
        domain: the domain.
    """
    a = domain.grid.axes[axis]
    if a.periodic:
        return None
    if component == axis:
        return matrix_of_slopes(1 / a.widths, a.distances)
    return second_difference_at_centers(axis, (domain.prescribes(axis, 0), domain.prescribes(axis, 1)), domain)


def second_difference_at_centers(axis: int, given: tuple[bool, bool], domain: Domain) -> np.ndarray:
    """Return the ``(n, n)`` second difference along a bounded axis of what lives at the centers of its cells.

    Args:
        axis: along which to differentiate.
        given: whether the lower and the upper side have the value zero; no slope is on those that have not.
        domain: the domain.
    """
    a = domain.grid.axes[axis]
    matrix = matrix_of_slopes(np.pad(1 / a.distances, 1), a.widths)
    lower, upper = side_weights(axis, domain)
    # On a side whose value is given the slope is made of the two nearest points.
    for (near, far), first, second, is_given in ((lower, 0, 1, given[0]), (upper, -1, -2, given[1])):
        if is_given:
            inner = 1 / a.distances[first]
            matrix[first, first], matrix[first, second] = np.array([-inner - near, inner + far]) / a.widths[first]
    return matrix
