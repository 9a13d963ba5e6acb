"""Friction of a viscosity that varies: the divergence of the viscous stress, and the rate of strain."""

import jax
import numpy as np

from simkit.flow.arrays import Velocity, end
from simkit.flow.boundary.domain import Domain
from simkit.flow.boundary.ghost_layers import Surrounded, along, lower, step, strip, upper
from simkit.flow.boundary.given import BoundaryVelocity
from simkit.flow.operators.differences import difference_at_centers, joined, mean_at_centers, total
from simkit.flow.operators.diffusion import reach, shear
from simkit.flow.operators.open_sides import center_widths, control_lengths, without_beyond, without_ends


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
