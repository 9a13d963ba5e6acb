"""Advection by an energy-conserving or an upwind scheme, and the faces on open sides that it moves."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import computed_once_on_cpu
from simkit.flow.boundary.domain import Domain
from simkit.flow.boundary.ghost_layers import Surrounded, along, lower, middle, step, strip, upper
from simkit.flow.grid import end
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
    f = computed_once_on_cpu(f)
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


# Number of ghost layers that each scheme reads.
LAYERS = {"central": 1, "upwind": 2}


def advection(
    around: Surrounded, domain: Domain, scheme: str = "central", carried: Surrounded | None = None
) -> tuple[jax.Array, ...]:
    """Return the divergence of the momentum flux on the faces of each component where it is an unknown.

        N_i(u) = sum over j of d(u_j u_i)/dx_j

    Every flux is the volume flux through the side of the control volume times the velocity there. ``central``: the
    plain mean of both neighbors; then ``N`` is skew-symmetric for a solenoidal velocity, so that it conserves momentum
    and energy on any grid. ``upwind``: the parabola through both neighbors and one more upstream, which damps waves of
    a few cells; for flows that the grid does not resolve.

    Args:
        around: the velocity with ``LAYERS[scheme]`` layers around it, see `surround`.
        domain: the domain.
        scheme: "central" or "upwind".
        carried: the advected velocity u_i, if it differs from the advecting velocity u_j; same shapes as ``around``.

    Reference: Verstappen and Veldman, J. Comput. Phys. 187, 343 (2003), doi:10.1016/S0021-9991(03)00126-8; for the
    parabola Leonard, Comput. Methods Appl. Mech. Eng. 19, 59 (1979), doi:10.1016/0045-7825(79)90034-3.
    """
    grid = domain.grid
    carriers = [strip(f, list(range(grid.dimension))) if scheme == "upwind" else f for f in around]
    terms = []
    for i, f in enumerate(around if carried is None else carried):
        term = 0.0
        for j, axis in enumerate(grid.axes):
            others = [k for k in range(grid.dimension) if k not in (i, j)]
            carrier = strip(carriers[j], others)
            if i == j:
                carrier = middle(carrier, i)
                spacing = control_lengths(i, domain)
            else:
                carrier = _on_edges(without_beyond(carrier, j, domain), i, j, domain)
                others.append(i)
                spacing = axis.widths
            flux = carrier * _carried(f, carrier, others, j, scheme)
            term = term + step(flux, j) * along(flux, 1 / spacing, j, domain)
        terms.append(term)
    return tuple(terms)


def _on_edges(carrier: jax.Array, i: int, j: int, domain: Domain) -> jax.Array:
    """Return the volume flux of component j through the sides across j of the control volumes of component i."""
    normal, across = domain.grid.axes[i], domain.grid.axes[j]
    if across.periodic:
        carrier = lower(carrier, j)
    if normal.periodic:
        return middle(upper(carrier, i), i)
    weighted = with_empty_cells(strip(carrier, [i]) * along(carrier, normal.widths, i, domain), i, domain)
    return (upper(weighted, i) + lower(weighted, i)) * along(carrier, 0.5 / control_lengths(i, domain), i, domain)


def _carried(f: jax.Array, carrier: jax.Array, others: list[int], j: int, scheme: str) -> jax.Array:
    """Return a component of the velocity at the positions of its flux along axis j."""
    if scheme == "central":
        return middle(strip(f, others), j)
    points = strip(f, others + others)
    bend = step(step(points, j), j)
    return middle(strip(points, [j]), j) - jnp.where(carrier > 0, lower(bend, j), upper(bend, j)) / 8
