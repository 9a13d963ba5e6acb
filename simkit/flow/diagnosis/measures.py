"""Numbers and fields that describe a flow, its stream function, and their units."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import root
from simkit.core.simulation import Quantity, over, raised
from simkit.flow.boundary.domain import Domain
from simkit.flow.boundary.side_data import BoundaryVelocity
from simkit.flow.grid import Axis, Grid, Velocity, end, like
from simkit.flow.operators.differences import at_centers, inside, mean_at_centers, total
from simkit.flow.operators.diffusion import shear


def control_volumes(component: int, grid: Grid) -> np.ndarray:
    """Return the volume around every inner face of a component, in a shape that multiplies its inner points."""
    volumes = np.ones(())
    for i, axis in enumerate(grid.axes):
        volumes = volumes * grid.along(axis.distances if i == component else axis.widths, i)
    return volumes


def integral(f: jax.Array, grid: Grid) -> jax.Array:
    """Return the volume integral of an array at the cell centers."""
    for i, axis in enumerate(grid.axes):
        f = f * like(f, grid.along(axis.widths, i))
    return jnp.sum(f)


def mean_velocity(velocity: Velocity, component: int, grid: Grid) -> jax.Array:
    """Return the mean of a component over the domain by the midpoint rule; its axis must be periodic."""
    f = velocity[component]
    return jnp.sum(f * like(f, control_volumes(component, grid) / grid.volume))


def kinetic_energy(velocity: Velocity, grid: Grid, fluid: Callable[[int | None], jax.Array] | None = None) -> jax.Array:
    """Return the kinetic energy per unit volume and density: the sum that central advection conserves.

    Args:
        velocity: components on their faces.
        grid: the grid.
        fluid: function that returns the fraction of the volume that is fluid, around the inner faces of a component,
            and in cells for None, see `simkit.flow.obstacles.bodies.Bodies.fluid`; the energy is then that of the
            fluid per volume of it. None for a domain without bodies.

    Example:
        >>> grid = flow.Grid((flow.periodic_axis(4, 1.0), flow.periodic_axis(4, 1.0)))
        >>> flow.kinetic_energy((jnp.full((4, 4), 2.0), jnp.ones((4, 4))), grid).item()
        2.5
    """
    weights = (control_volumes(i, grid) / (2 * grid.volume) for i in range(grid.dimension))
    squares = (inside(f, i, grid) ** 2 for i, f in enumerate(velocity))
    if fluid is not None:
        share = integral(fluid(None), grid) / grid.volume
        squares = (fluid(i) * square / share for i, square in enumerate(squares))
    return total(jnp.sum(square * like(square, weight)) for square, weight in zip(squares, weights, strict=True))


def courant_number(velocity: Velocity, time_step: jax.Array, grid: Grid) -> jax.Array:
    """Return the largest number of cells that the flow crosses in one step, ``dt max(|u|/dx + |v|/dy + |w|/dz)``."""
    return time_step * jnp.max(crossing_rate(velocity, grid))


def crossing_rate(velocity: Velocity, grid: Grid) -> jax.Array:
    """Return the number of cells per time that the flow crosses, ``|u|/dx + |v|/dy + |w|/dz``, at the cell centers."""
    centered = at_centers(velocity, grid)
    return total(jnp.abs(f) * like(f, grid.along(1 / grid.axes[i].widths, i)) for i, f in enumerate(centered))


def speed(velocity: Velocity, grid: Grid) -> jax.Array:
    """Return the magnitude of the velocity at the cell centers."""
    return magnitude(at_centers(velocity, grid))


def magnitude(velocity: Velocity) -> jax.Array:
    """Return the magnitude from components at the same points, with derivative zero where the fluid is at rest."""
    return root(sum(f**2 for f in velocity))  # type: ignore[arg-type]


def vorticity(velocity: Velocity, boundary: BoundaryVelocity, domain: Domain) -> jax.Array:
    """Return ``dv/dx - du/dy`` at the cell centers of a plane domain: the mean of the four corners of each cell."""
    u, v = velocity
    corners = shear(v, 1, 0, boundary, domain) - shear(u, 0, 1, boundary, domain)
    return mean_at_centers(mean_at_centers(corners, 0, domain.grid), 1, domain.grid)


def interpolate(profile: jax.Array, position: float, axis: Axis) -> jax.Array:
    """Return a profile ``(n,)`` at the cell centers interpolated by the cubic through the four nearest points."""
    nearest = np.sort(np.argsort(np.abs(axis.centers - position), stable=True)[:4])
    points = axis.centers[nearest]
    weights = [math.prod((position - o) / (y - o) for o in np.delete(points, i)) for i, y in enumerate(points)]
    return jnp.sum(profile[nearest] * like(profile, weights))


def stream_function(velocity: Velocity, grid: Grid) -> jax.Array:
    """Return psi on the corners of the cells of a plane domain, with ``u = d psi/dy`` and ``v = -d psi/dx``.

    It is zero on the corner at the lower ends of both axes. Along the lower side it follows from the flow through that
    side, and from there upward from ``u``: what flows between two corners is the difference of their values. Around
    a periodic axis it changes by the net flow across the axis.

    Args:
        velocity: components on their faces, without divergence.
        grid: the grid, of two axes.

    Returns:
        Values at the `Axis.points` of both axes, the inverse of `simkit.flow.operators.differences.curl`.
    """
    u, v = velocity
    x, y = grid.axes
    # On a periodic axis the points are the upper faces of the cells, and the last is the lowest one, too.
    below = -jnp.cumsum(end(v, 1, 1 if y.periodic else 0) * like(v, grid.along(x.widths, 0)), axis=0)
    upward = jnp.cumsum(u * like(u, grid.along(y.widths, 1)), axis=1)
    below = below if x.periodic else jnp.pad(below, ((1, 0), (0, 0)))
    return below + (upward if y.periodic else jnp.pad(upward, ((0, 0), (1, 0))))


def flow_quantities(length: str = "1", velocity: str = "1", time: str = "", rate: str = "") -> dict[str, Quantity]:
    """Return units and meanings of the quantities that flows have in common, by name.

    Args:
        length: unit of length.
        velocity: unit of velocity.
        time: unit of time; by default length over velocity.
        rate: unit of inverse time; by default velocity over length.
    """
    time, rate = time or over(length, velocity), rate or over(velocity, length)
    square = raised(velocity, 2)
    table = {
        "time": (time, "time"),
        "x": (length, "position along x"),
        "y": (length, "position along y"),
        "x_face": (length, "position of cell faces along x"),
        "y_face": (length, "position of cell faces along y"),
        "y_cell": (length, "position along y"),
        "x_cell": (length, "position along x"),
        "side_velocity": (velocity, "velocity of the left, right, lower and upper side along itself"),
        "u": (velocity, "velocity along x"),
        "v": (velocity, "velocity along y"),
        "speed": (velocity, "speed"),
        "vorticity": (rate, "vorticity"),
        "profile": (velocity, "mean velocity along x at each height"),
        "body_distance": (length, "distance from the body, negative inside"),
        "bulk_velocity": (velocity, "flow rate per unit area"),
        "centerline_velocity": (velocity, "mean velocity at mid-height"),
        "largest_velocity": (velocity, "largest speed"),
        "kinetic_energy": (square, "mean kinetic energy per unit mass"),
        "wall_shear_stress": (square, "shear stress on the lower wall over density"),
        "pressure_gradient": (over(square, length), "driving pressure gradient over density"),
        "net_force": (over(square, length), "drive less friction on the walls, per unit mass"),
        "divergence": (rate, "largest divergence of the velocity"),
        "courant_number": ("1", "Courant number of advection"),
        "poiseuille_deviation": (velocity, "largest distance of the profile from the steady one"),
        "velocity_error": (velocity, "largest distance from the exact velocity"),
    }
    return {name: Quantity(unit, doc) for name, (unit, doc) in table.items()}
