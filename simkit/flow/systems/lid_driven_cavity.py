"""Lid-driven cavity: flow in a square box with a sliding lid."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.quantities import described
from simkit.core.simulation import Params, Simulation
from simkit.errors import UserError
from simkit.flow.arrays import Velocity, like
from simkit.flow.boundary.domain import domain
from simkit.flow.boundary.given import BoundaryVelocity
from simkit.flow.diagnosis.measures import courant_number, interpolate, kinetic_energy, magnitude, speed, vorticity
from simkit.flow.diagnosis.quantities import flow_quantities
from simkit.flow.equations import Equations
from simkit.flow.grid import Grid, bounded_axis, coordinates_along
from simkit.flow.operators.differences import at_centers, divergence
from simkit.flow.stepping.stepper import FlowState, stepper
from simkit.flow.stepping.time_step import check_time_step, fixed_time_step

METHOD = "adams_bashforth"


PARAMETERS = {
    "reynolds": Parameter(
        400.0, POSITIVE, "1", "Reynolds number: side of the box times unit of velocity over viscosity"
    ),
    "lid_velocity": Parameter(1.0, unit="1", doc="velocity of the lid"),
    "time_step": Parameter(0.0036, POSITIVE, "1", "time step, unit side over velocity; keep courant_number below 0.5"),
}


@described(
    flow_quantities(),
    stream_function=("1", "stream function"),
    vortex_x=("1", "center of the largest vortex, along x"),
    vortex_y=("1", "center of the largest vortex, along y"),
    vortex_strength=("1", "flow rate between the vortex's center and the walls"),
    u_lower=("1", "u on the vertical centerline at y = 0.2813"),
    u_center=("1", "u at the center"),
    u_upper=("1", "u on the vertical centerline at y = 0.8516"),
    v_left=("1", "v on the horizontal centerline at x = 0.2266"),
    v_center=("1", "v at the center"),
    v_right=("1", "v on the horizontal centerline at x = 0.8594"),
)
def lid_driven_cavity(*, cells: int = 128, stretching: float = 0.0, wall_slope: str = "parabola") -> Simulation:
    """Return the flow in a square box, initially at rest, driven by its sliding lid.

        du/dt + div(u u) = -grad(p) + 1/Re laplacian(u),   div(u) = 0,
        u = (L, 0) at y = 1,   u = (0, 0) at x = 0, x = 1 and y = 0

    The unit of length is the side of the box, the unit of velocity that of the lid at L = 1. A vortex rolls up under
    the far end of the lid and moves toward the middle; smaller ones remain in the lower corners. Up to Reynolds numbers
    of several thousand the flow becomes steady, within about t = 20 at Re = 100 and t = 60 at Re = 400.

    L is the parameter ``lid_velocity``; all of `PARAMETERS` may be swept and differentiated.

    Diagnostics, besides those that explain themselves:
        vortex_x, vortex_y: center of the largest vortex, where the stream function is lowest (L > 0).
        vortex_strength: minus the stream function there: the flow rate between center and walls.
        u_lower, u_center, u_upper: u on the vertical centerline at y = 0.2813, 0.5 and 0.8516.
        v_left, v_center, v_right: v on the horizontal centerline at x = 0.2266, 0.5 and 0.8594.
        divergence: its largest absolute value; rounding errors only.

    Args:
        cells: number of cells along each side, even, at least 4. 64 suffice at Re = 100, 128 at Re = 1000.
        stretching: 0 for equal cells, more for finer ones at the walls, see `bounded_axis`; 1 halves the error.
        wall_slope: "parabola" or "symmetric", see `simkit.flow.boundary.domain.Domain`.

    Raises:
        UserError: if the configuration is not of that kind; before a run, if the time step is above the stability limit
            of advection, ``0.5 width/L`` with the width of the least cell. Friction is implicit and has none.

    Reference: Ghia, Ghia and Shin, J. Comput. Phys. 48, 387 (1982), doi:10.1016/0021-9991(82)90058-4, whose tables have
    the points above.
    """
    axis = bounded_axis(cells, 1.0, 0.0, stretching)
    if cells % 2:
        raise UserError(f"cells = {cells} is odd, so that no face lies on the centerline; choose an even number")
    box = domain((axis, axis), (("wall", "wall"), ("wall", "wall")), wall_slope)
    grid, middle = box.grid, cells // 2
    equations = Equations(
        domain=box,
        viscosity=lambda params: 1 / params["reynolds"],
        time_step=fixed_time_step,
        boundary=lambda params, time: _walls(params),
        method=METHOD,
        implicit=(0, 1),
    )
    start, step = stepper(equations)

    def init(params: Params, key: jax.Array) -> FlowState:
        dtype = params["lid_velocity"].dtype
        return start(tuple(jnp.zeros(grid.shape(i), dtype) for i in range(2)), params)

    def observe(state: FlowState, params: Params) -> dict[str, jax.Array]:
        u, v = at_centers(state.velocity, grid)
        return {
            "speed": magnitude((u, v)),
            "vorticity": vorticity(state.velocity, _walls(params), box),
            "u": u,
            "v": v,
            "stream_function": stream_function(state.velocity, grid),
            "side_velocity": jnp.zeros(4, u.dtype).at[3].set(params["lid_velocity"]),
        }

    def diagnose(state: FlowState, params: Params) -> dict[str, jax.Array]:
        u, v = state.velocity
        x, y, lowest = lowest_point(stream_function(state.velocity, grid), axis.faces)
        return {
            "time": state.time[0],
            "kinetic_energy": kinetic_energy(state.velocity, grid),
            "vortex_x": x,
            "vortex_y": y,
            "vortex_strength": -lowest,
            "u_lower": interpolate(u[middle], 0.2813, axis),
            "u_center": interpolate(u[middle], 0.5, axis),
            "u_upper": interpolate(u[middle], 0.8516, axis),
            "v_left": interpolate(v[:, middle], 0.2266, axis),
            "v_center": interpolate(v[:, middle], 0.5, axis),
            "v_right": interpolate(v[:, middle], 0.8594, axis),
            "divergence": jnp.max(jnp.abs(divergence(state.velocity, grid))),
            "largest_velocity": jnp.max(speed(state.velocity, grid)),
            "courant_number": courant_number(state.velocity, params["time_step"], grid),
        }

    def check(params: Params, key: jax.Array) -> None:
        del key
        lid = abs(float(params["lid_velocity"]))
        viscosity = 1 / float(params["reynolds"])
        check_time_step(float(params["time_step"]), (lid, 0.0), viscosity, box, METHOD, equations.explicit)

    return Simulation(
        init=init,
        step=step,
        observe=observe,
        diagnose=diagnose,
        check=check,
        params=PARAMETERS,
        dimensions={name: ("x", "y") for name in ("speed", "vorticity", "u", "v")}
        | {"stream_function": ("x_face", "y_face"), "side_velocity": ("side",)},
        coordinates=coordinates_along(x=axis, y=axis)
        | {
            "x_face": axis.faces,
            "y_face": axis.faces,
            "sides": box.drawn_sides(),
        },
    )


def stream_function(velocity: Velocity, grid: Grid) -> jax.Array:
    """Return psi on the corners of the cells of a plane domain, with ``u = d psi/dy``, zero on the lower side."""
    flow = jnp.cumsum(velocity[0] * like(velocity[0], grid.axes[1].widths), axis=1)
    return jnp.pad(flow, ((0, 0), (1, 0)))


def lowest_point(f: jax.Array, points: np.ndarray) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return position and value of the lowest point of a field, by parabolas through its lowest entry and neighbors.

    Args:
        f: ``(n, n)`` values, lowest inside; a field of zeros is lowest at a corner.
        points: ``(n,)`` positions along both axes.
    """
    i, j = jnp.unravel_index(jnp.argmin(f), f.shape)
    value = f[i, j]
    places = []
    for k, line in ((i, f[:, j]), (j, f[i])):
        middle = jnp.clip(k, 1, len(points) - 2)
        (left, here, right), (a, b, c) = (
            jax.lax.dynamic_slice(array, (middle - 1,), (3,)) for array in (like(f, points), line)
        )
        # The parabola b + slope (x - here) + bend (x - here)^2.
        below, above = (b - a) / (here - left), (c - b) / (right - here)
        bend = (above - below) / (right - left)
        slope = below + bend * (here - left)
        round_bottom = bend > 0
        shift = jnp.where(round_bottom, -slope / (2 * jnp.where(round_bottom, bend, 1)), 0)
        places.append(here + shift)
        value = value + slope * shift / 2
    return places[0], places[1], value


def _walls(params: Params) -> BoundaryVelocity:
    at_rest = (0.0, 0.0)
    return (at_rest, at_rest), (at_rest, (params["lid_velocity"], 0.0))
