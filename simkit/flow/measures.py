"""Numbers that describe a flow between two walls."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.grid import ChannelGrid
from simkit.flow.operators import Velocity, Walls, at_centers, like, shear


def kinetic_energy(velocity: Velocity, grid: ChannelGrid) -> jax.Array:
    """Return the kinetic energy per unit volume and density, unit U^2: the sum that central advection conserves."""
    u, v = velocity
    sum_u = jnp.sum(u**2 * like(u, grid.heights))
    sum_v = jnp.sum(v[:, :-1] ** 2 * like(v, grid.distances))
    return (sum_u + sum_v) / (4 * grid.cells[0])


def flow_rate(u: jax.Array, walls: Walls, grid: ChannelGrid) -> jax.Array:
    """Return the flow rate per unit area, the mean of u over the cross-section, unit U.

        1/2 integral of u dy = 1/2 sum over cells of (u + dy^2/24 d2u/dy2) dy

    The midpoint rule with its first correction: on equal cells of fourth order, and exact for Poiseuille flow.
    """
    profile = u.mean(axis=0)
    heights = like(u, grid.heights)
    change_of_slope = jnp.diff(shear(u, walls, grid).mean(axis=0))
    return jnp.sum(profile * heights + heights**2 / 24 * change_of_slope) / 2


def centerline(profile: jax.Array, grid: ChannelGrid) -> jax.Array:
    """Return a profile ``(ny,)`` interpolated to y = 0 by the cubic through the four nearest points."""
    nearest = np.sort(np.argsort(np.abs(grid.y), stable=True)[:4])
    points = grid.y[nearest]
    others = [np.delete(points, i) for i in range(4)]
    weights = np.array([np.prod(-o / (y - o)) for y, o in zip(points, others, strict=True)])
    return jnp.sum(profile[nearest] * like(profile, weights))


def courant_number(velocity: Velocity, time_step: jax.Array, grid: ChannelGrid) -> jax.Array:
    """Return the largest number of cells that the flow crosses in one step, ``dt max(|u|/dx + |v|/dy)``."""
    u, v = at_centers(velocity)
    return time_step * jnp.max(jnp.abs(u) / grid.dx + jnp.abs(v) / like(v, grid.heights))
