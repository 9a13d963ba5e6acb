"""The pressure on the surface of a body, from the flow outside and the balance of momentum at the wall."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import precise_product
from simkit.core.simulation import Params
from simkit.flow.grid import Grid, Velocity, like
from simkit.flow.obstacles.bodies import Bodies
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.distance import distance_and_normal
from simkit.flow.operators.advection import moving
from simkit.flow.operators.differences import at_centers, total
from simkit.flow.viscosity import uniform

if TYPE_CHECKING:
    from simkit.flow.equations import Equations
    from simkit.flow.stepping.stepper import FlowState


def surface_pressure(
    name: str, points: Sequence[jax.Array], cell: float, equations: "Equations", state: "FlowState", params: Params
) -> jax.Array:
    """Return the pressure of a plane flow at points on the surface of a body.

    Beside a wall the pressure changes along the normal n within the boundary layer, of which the method disturbs the
    nearest cells. It is that of the polynomial ``p + slope y + b y^2 + c y^3`` through three points outside, at
    distances y, with the slope from the balance of momentum at the wall, where the fluid moves with the body::

        slope = f_n - a_n + viscosity d2(v_n)/dn2

    f is the force per unit mass, a the acceleration of the surface, v the velocity relative to the body, whose normal
    component is ``-g y + A y^2 + B y^3 + C y^4`` through three points outside, with g twice the rate of growth of the
    body. Extrapolated without the slope, the pressure at the front of a cylinder at a Reynolds number of 20 is 3 % too
    small with 24 cells across it, and with 16.

    Where the viscosity varies the slope is not known, and the parabola through the three points is taken.

    Args:
        name: of the body.
        points: coordinates x and y, (n,) each.
        cell: width of the cells there.
        equations: of the flow.
        state: of the flow.
        params: parameters.
    """
    bodies, grid, time = equations.obstacle, equations.domain.grid, state.time[0]
    assert isinstance(bodies, Bodies), "there is a body of that name"
    body = bodies.bodies[name]
    now = body.now(params, time)
    normals = distance_and_normal(body.shape_at(params, now, equations.domain), points)[1]

    def beyond(distances: np.ndarray) -> list[jax.Array]:
        """Return the points at some distances from all points of the surface, (3 n,)."""
        away = like(time, distances)[:, None]
        return [(x + away * n).ravel() for x, n in zip(points, normals, strict=True)]

    def along(vector: Sequence[jax.Array]) -> jax.Array:
        """Return the normal component, (3, n)."""
        return total(n * f.reshape(-1, n.size) for n, f in zip(normals, vector, strict=True))

    places = cell * (bodies.reach + np.arange(3))
    outside = beyond(places)
    pressures = interpolate(state.pressure, outside, None, grid).reshape(len(places), -1)
    extrapolated = like(time, _coefficients(places, (0, 1, 2))[0])
    if equations.varies:
        return precise_product(extrapolated, pressures)
    # Half a cell further, since the kernel reaches that far into the second difference.
    seen = places + cell / 2
    growth = 0.0 if now.growth is None else 2 * now.growth
    relative = along(_relative_velocity(beyond(seen), body, equations, state, params))
    bend = precise_product(like(time, _coefficients(seen, (2, 3, 4))[0]), relative + growth * like(time, seen)[:, None])
    slope = 2 * uniform(equations.viscosity, params) * bend
    slope = slope - along(_acceleration(body, points, equations, params, time))[0]
    if equations.force is not None or equations.flow_rate is not None:
        forces = _forces(equations, state, params)
        slope = slope + precise_product(extrapolated, along([interpolate(f, outside, None, grid) for f in forces]))
    known = pressures - slope * like(time, places)[:, None]
    return precise_product(like(time, _coefficients(places, (0, 2, 3))[0]), known)


def _coefficients(places: np.ndarray, powers: tuple[int, ...]) -> np.ndarray:
    """Return the matrix from values at some distances to the coefficients of the polynomial of given powers."""
    return np.linalg.inv(places[:, None] ** np.array(powers))


def _relative_velocity(
    points: list[jax.Array], body: Body, equations: "Equations", state: "FlowState", params: Params
) -> list[jax.Array]:
    """Return the components of the velocity relative to that of a body, at points (n,)."""
    grid, now = equations.domain.grid, body.now(params, state.time[0])
    arm = body.arm(points, now, equations.domain)
    return [interpolate(f, points, i, grid) - now.component(i, arm) for i, f in enumerate(state.velocity)]


def _acceleration(
    body: Body, points: Sequence[jax.Array], equations: "Equations", params: Params, time: jax.Array
) -> list[jax.Array]:
    """Return the acceleration of points (n,) that move with a body."""

    def velocity(time: jax.Array, *x: jax.Array) -> list[jax.Array]:
        now = body.now(params, time)
        arm = body.arm(x, now, equations.domain)
        return [jnp.broadcast_to(jnp.asarray(now.component(i, arm), x[i].dtype), x[i].shape) for i in range(2)]

    moved = velocity(time, *points)
    return jax.jvp(velocity, (time, *points), (jnp.ones_like(time), *moved))[1]


def _forces(equations: "Equations", state: "FlowState", params: Params) -> Velocity:
    """Return the components of the force per unit mass at the cell centers, with what holds the flow rate."""
    domain = equations.domain
    drive = (state.drive, jnp.zeros_like(state.drive))
    if equations.force is None:
        return tuple(jnp.broadcast_to(f, domain.grid.cells) for f in drive)
    side_values = equations.force(state.velocity, state.scalar, params, state.time[0])
    forces = []
    for i, (f, uniform_part) in enumerate(zip(side_values, drive, strict=True)):
        inner = jnp.broadcast_to(f + uniform_part, moving(state.velocity[i], i, domain).shape)
        closed = [0 if domain.sides[i] is None or is_open else 1 for is_open in domain.is_open(i)]
        forces.append(jnp.pad(inner, [tuple(closed) if k == i else (0, 0) for k in range(2)], mode="edge"))
    return at_centers(tuple(forces), domain.grid)


def interpolate(f: jax.Array, point: Sequence[jax.Array], component: int | None, grid: Grid) -> jax.Array:
    """Return an array interpolated at traced points, by the cubic through four values along each axis.

    Args:
        f: a component of the velocity, or values at the cell centers.
        point: coordinates x and y, (n,) each.
        component: of the velocity; None for values at the cell centers.
        grid: the grid, of two axes.
    """
    nodes, places = [], []
    for k, (axis, x) in enumerate(zip(grid.axes, point, strict=True)):
        values = axis.points if k == component else axis.centers
        if axis.periodic:
            f = jnp.pad(f, [(2, 2) if i == k else (0, 0) for i in range(2)], mode="wrap")
            x = values[0] + jnp.mod(x - values[0], axis.length)
            values = np.concatenate([values[-2:] - axis.length, values, values[:2] + axis.length])
        nodes.append(like(f, values))
        places.append(x)

    def at(x: jax.Array, y: jax.Array) -> jax.Array:
        pressure = f
        for coordinate, values in ((y, nodes[1]), (x, nodes[0])):
            first = jnp.clip(jnp.searchsorted(values, coordinate) - 2, 0, len(values) - 4)
            four = jax.lax.dynamic_slice_in_dim(values, first, 4)
            weights = jnp.stack(
                [math.prod((coordinate - four[j]) / (four[i] - four[j]) for j in range(4) if j != i) for i in range(4)]
            )
            pressure = precise_product(jax.lax.dynamic_slice_in_dim(pressure, first, 4, axis=-1), weights)
        return pressure

    return jax.vmap(at)(*places)
