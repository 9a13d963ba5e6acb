"""Second-order finite differences on the staggered grid, one function per term of the equations.

``velocity`` is the tuple ``(u, v)``; where each array lives is drawn in `ChannelGrid`.
"""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.grid import ChannelGrid

type Velocity = tuple[jax.Array, jax.Array]
type Walls = tuple[jax.Array | float, jax.Array | float]


def divergence(velocity: Velocity, grid: ChannelGrid) -> jax.Array:
    """Return ``du/dx + dv/dy`` at the cell centers, ``(nx, ny)``."""
    u, v = velocity
    return (u - west(u)) / grid.dx + (v - below(v)) / like(v, grid.heights)


def gradient(pressure: jax.Array, grid: ChannelGrid) -> Velocity:
    """Return ``(dp/dx, dp/dy)`` on the faces where u and v live; zero on the walls, through which nothing flows."""
    across = jnp.diff(pressure, axis=1) / like(pressure, grid.distances)
    return (east(pressure) - pressure) / grid.dx, on_upper_faces(across)


def advection(velocity: Velocity, grid: ChannelGrid) -> Velocity:
    """Return the divergence of the momentum flux, where u and v live.

        N(u) = (d(uu)/dx + d(uv)/dy,  d(uv)/dx + d(vv)/dy)

    Every flux is the volume flux through the side of the control volume times the plain mean of the velocity on both
    its sides. Then ``N`` is skew-symmetric for a solenoidal velocity, so that it conserves momentum and energy.

    Reference: Verstappen and Veldman, J. Comput. Phys. 187, 343 (2003), doi:10.1016/S0021-9991(03)00126-8.
    """
    u, v = velocity
    heights, distances = like(u, grid.heights), like(u, grid.distances)
    uu = ((west(u) + u) / 2) ** 2
    vv = ((below(v) + v) / 2) ** 2
    v_corner = (v + east(v)) / 2
    u_corner = on_upper_faces((u[:, :-1] + u[:, 1:]) / 2)
    volume = heights * u
    volume_corner = on_upper_faces((volume[:, :-1] + volume[:, 1:]) / (2 * distances))
    flux_u = v_corner * u_corner
    flux_v = volume_corner * v_corner
    along_x = (east(uu) - uu) / grid.dx + (flux_u - below(flux_u)) / heights
    along_y = (flux_v - west(flux_v))[:, :-1] / grid.dx + jnp.diff(vv, axis=1) / distances
    return along_x, on_upper_faces(along_y)


def laplacian(velocity: Velocity, walls: Walls, grid: ChannelGrid) -> Velocity:
    """Return ``(d2/dx2 + d2/dy2)`` of u and of v, where they live, with no-slip walls.

    Args:
        velocity: ``(u, v)``.
        walls: velocity in x of the lower and of the upper wall.
        grid: the grid.
    """
    u, v = velocity
    strain = (v - below(v)) / like(v, grid.heights)
    u_yy = jnp.diff(shear(u, walls, grid), axis=1) / like(u, grid.heights)
    v_yy = on_upper_faces(jnp.diff(strain, axis=1) / like(v, grid.distances))
    return second_x(u, grid) + u_yy, second_x(v, grid) + v_yy


def shear(u: jax.Array, walls: Walls, grid: ChannelGrid) -> jax.Array:
    """Return ``du/dy`` on all horizontal faces from the lower to the upper wall, ``(nx, ny + 1)``.

    On a wall it is the slope of the parabola through the wall and the two nearest points. So Couette flow is exact on
    any grid, and Poiseuille flow where all cells are equal.
    """
    lower, upper = walls
    (lower_near, lower_far), (upper_near, upper_far) = grid.wall_weights.tolist()
    at_lower = lower_near * (u[:, :1] - lower) - lower_far * (u[:, 1:2] - lower)
    at_upper = upper_far * (u[:, -2:-1] - upper) - upper_near * (u[:, -1:] - upper)
    inner = jnp.diff(u, axis=1) / like(u, grid.distances)
    return jnp.concatenate([at_lower, inner, at_upper], axis=1)


def vorticity(velocity: Velocity, walls: Walls, grid: ChannelGrid) -> jax.Array:
    """Return ``dv/dx - du/dy`` at the cell centers, ``(nx, ny)``: the mean of the four corners of each cell."""
    u, v = velocity
    corners = jnp.pad((east(v) - v) / grid.dx, ((0, 0), (1, 0))) - shear(u, walls, grid)
    sides = (corners[:, 1:] + corners[:, :-1]) / 2
    return (sides + west(sides)) / 2


def at_centers(velocity: Velocity) -> Velocity:
    """Return u and v interpolated to the cell centers."""
    u, v = velocity
    return (u + west(u)) / 2, (v + below(v)) / 2


def magnitude(velocity: Velocity) -> jax.Array:
    """Return ``sqrt(u^2 + v^2)`` of components at the same points, with derivative zero where the fluid is at rest."""
    u, v = velocity
    square = u**2 + v**2
    moving = square > 0
    return jnp.where(moving, jnp.sqrt(jnp.where(moving, square, 1)), 0)


def second_x(f: jax.Array, grid: ChannelGrid) -> jax.Array:
    """Return ``d2f/dx2``; differences of differences keep the rounding error small where f is smooth."""
    return ((east(f) - f) - (f - west(f))) / grid.dx**2


def east(f: jax.Array) -> jax.Array:
    """Return the right neighbor's value of each point."""
    return jnp.roll(f, -1, axis=0)


def west(f: jax.Array) -> jax.Array:
    """Return the left neighbor's value of each point."""
    return jnp.roll(f, 1, axis=0)


def below(v: jax.Array) -> jax.Array:
    """Return the value on the lower face of each cell, given those on the upper faces; zero on the lower wall."""
    return jnp.pad(v[:, :-1], ((0, 0), (1, 0)))


def on_upper_faces(inner: jax.Array) -> jax.Array:
    """Return ``(nx, ny)`` values on the upper faces: the ``(nx, ny - 1)`` inner ones, and zero on the upper wall."""
    return jnp.pad(inner, ((0, 0), (0, 1)))


def like(f: jax.Array, values: np.ndarray) -> jax.Array:
    """Return grid constants in the working precision of ``f``."""
    return jnp.asarray(values, dtype=f.dtype)
