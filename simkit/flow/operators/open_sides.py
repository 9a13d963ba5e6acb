"""Faces on open sides: the normal velocity is an unknown there, with a control volume of half a cell.

On a side that gives the pressure the velocity through it has a balance of momentum of its own, over the half of the
nearest cell. Volume is balanced in it as in the whole cell, so that central advection keeps its form: what passes the
inner end of the half cell is the mean of both neighbors, what passes the side is the velocity there. No velocity has
a slope across the side.
"""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.barrier import computed_once
from simkit.flow.arrays import end
from simkit.flow.boundary.domain import Domain
from simkit.flow.operators.differences import inside, joined, mean_at_faces, with_zero_ends


def moving(f: jax.Array, axis: int, domain: Domain) -> jax.Array:
    """Return a velocity component at its unknowns: inner points of its own axis, and points on open sides."""
    if not any(domain.is_open(axis)):
        return inside(f, axis, domain.grid)
    return without_ends(f, axis, domain)


def without_ends(f: jax.Array, axis: int, domain: Domain) -> jax.Array:
    """Return an array without its first and last layer along a bounded axis, except layers on open sides."""
    lower, upper = domain.is_open(axis)
    return jax.lax.slice_in_dim(f, 0 if lower else 1, f.shape[axis] - (0 if upper else 1), axis=axis)


def without_beyond(f: jax.Array, axis: int, domain: Domain) -> jax.Array:
    """Return a component extended by `surround`, without the ghost points beyond open sides of its own axis."""
    lower, upper = domain.is_open(axis)
    if not (lower or upper):
        return f
    return jax.lax.slice_in_dim(f, int(lower), f.shape[axis] - int(upper), axis=axis)


def on_all_faces(f: jax.Array, axis: int, domain: Domain) -> jax.Array:
    """Return a velocity component on all faces from its unknowns, zero on the other sides."""
    lower, upper = domain.is_open(axis)
    if not (lower or upper):
        return with_zero_ends(f, axis, domain.grid)
    if lower and upper:
        return f
    f = computed_once(f)
    nothing = jnp.zeros_like(end(f, axis, 0))
    return joined([f, nothing] if lower else [nothing, f], axis)


def means_where_moving(f: jax.Array, axis: int, domain: Domain) -> jax.Array:
    """Return means on the faces of an axis where velocity is an unknown; on open sides, values of the nearest cells."""
    lower, upper = domain.is_open(axis)
    inner = mean_at_faces(f, axis, domain.grid)
    if not (lower or upper):
        return inner
    first, last = ([end(f, axis, 0)] if lower else []), ([end(f, axis, 1)] if upper else [])
    return joined([*first, inner, *last], axis)


def control_lengths(axis: int, domain: Domain) -> np.ndarray:
    """Return the lengths along an axis of the control volumes of the unknown velocities along it."""
    a, (lower, upper) = domain.grid.axes[axis], domain.is_open(axis)
    if not (lower or upper):
        return a.distances
    return np.concatenate([a.widths[:1] / 2 if lower else [], a.distances, a.widths[-1:] / 2 if upper else []])


def center_widths(axis: int, domain: Domain) -> np.ndarray:
    """Return the widths of the cells, and of a ghost cell as wide as the nearest one beyond each open side."""
    a, (lower, upper) = domain.grid.axes[axis], domain.is_open(axis)
    return np.pad(a.widths, (int(lower), int(upper)), mode="edge") if lower or upper else a.widths


def with_empty_cells(f: jax.Array, axis: int, domain: Domain) -> jax.Array:
    """Return volume fluxes of all cells along an axis, with a ghost cell of zero flux beyond each open side."""
    lower, upper = domain.is_open(axis)
    if not (lower or upper):
        return f
    return jnp.pad(f, [(int(lower), int(upper)) if i == axis else (0, 0) for i in range(f.ndim)])
