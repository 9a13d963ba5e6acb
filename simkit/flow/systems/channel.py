"""Flow between two plane walls, driven by a pressure gradient, at a given flow rate, or by a moving wall."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.quantities import described
from simkit.core.simulation import Params, Simulation
from simkit.errors import UserError, nearest
from simkit.flow.arrays import like
from simkit.flow.boundary.domain import domain
from simkit.flow.boundary.given import BoundaryVelocity
from simkit.flow.diagnosis.measures import (
    courant_number,
    flow_rate,
    interpolate,
    kinetic_energy,
    magnitude,
    speed,
    vorticity,
)
from simkit.flow.diagnosis.quantities import flow_quantities
from simkit.flow.eddies import random_eddies
from simkit.flow.equations import Equations
from simkit.flow.grid import axis_of_faces, bounded_axis, coordinates_along, periodic_axis
from simkit.flow.operators.differences import at_centers, divergence
from simkit.flow.operators.diffusion import shear
from simkit.flow.stepping.stepper import FlowState, stepper
from simkit.flow.stepping.time_step import check_time_step, fixed_time_step

DRIVES = ("pressure_gradient", "flow_rate")


PARAMETERS = {
    "reynolds": Parameter(
        100.0,
        POSITIVE,
        "1",
        "bulk Reynolds number U h / nu of the flow that the pressure gradient sustains at forcing = 1",
    ),
    "forcing": Parameter(
        1.0, unit="3 U^2 / (h reynolds)", doc="mean pressure gradient per density; 1 sustains the bulk velocity U"
    ),
    "perturbation": Parameter(0.0, unit="U", doc="root-mean-square speed of the random eddies at the start"),
    "wall_velocity": Parameter(0.0, unit="U", doc="velocity of the upper wall"),
    "time_step": Parameter(0.015, POSITIVE, "h/U", "time step; keep courant_number below 0.5"),
}


@described(flow_quantities("h", "U"))
def channel(
    *,
    cells: tuple[int, int] = (64, 48),
    length: float = 6.0,
    stretching: float = 0.0,
    faces: Sequence[float] | None = None,
    drive: str = "pressure_gradient",
    wall_slope: str = "parabola",
) -> Simulation:
    """Return plane channel flow from rest, or from random eddies, toward Couette-Poiseuille flow.

        du/dt + div(u u) = -grad(p) + 1/Re laplacian(u) + (G, 0),   div(u) = 0,
        u = (0, 0) at y = -1,   u = (W, 0) at y = 1,   everything periodic in x

    The unit of length is the half-width h, the unit of velocity the mean velocity U that the pressure gradient G = 3/Re
    sustains. The drive is either a constant pressure gradient, ``G = 3 F/Re``, or a constant flow rate, the mean
    velocity ``F + W/2``, for which G is found in every step. Below Re = 3848 small disturbances die, and in both cases
    ``u = 3/2 F (1 - y^2) + W (1 + y)/2`` remains after about ``t = 3 Re``.

    F is the parameter ``forcing`` and W ``wall_velocity``; all of `PARAMETERS` may be swept and differentiated.

    Diagnostics, besides those that explain themselves:
        bulk_velocity: flow rate per unit area.
        wall_shear_stress: that on the lower wall, divided by density, unit U^2.
        pressure_gradient: G, unit U^2/h.
        net_force: G less the friction on both walls, per unit mass, unit U^2/h; zero in steady flow.
        divergence: its largest absolute value; rounding errors only.
        poiseuille_deviation: largest distance of the mean profile from the steady one above.

    Args:
        cells: number of cells along and across the channel, each at least 4. Laminar flow asks for 32 across; eddies at
            a high Reynolds number for more, and for cells less than three times as long as high.
        length: period of the flow along the channel, unit h.
        stretching: 0 for equal cells, more for finer ones at the walls, see `bounded_axis`.
        faces: increasing positions from -1 to 1 of the faces between the cells across the channel, one more than cells;
            by default those of `bounded_axis`.
        drive: "pressure_gradient" or "flow_rate".
        wall_slope: "parabola", or "symmetric" for waves that grow or die slowly, see
            `simkit.flow.boundary.domain.Domain`.

    Raises:
        UserError: if the configuration is not of that kind.

    Reference, for the limit of stability: Orszag, J. Fluid Mech. 50, 689 (1971), doi:10.1017/S0022112071002842.
    """
    if not isinstance(cells, list | tuple) or len(cells) != 2:
        raise UserError(f"cells = {cells!r} is not two integers of at least 4; choose for example cells = [64, 48]")
    if drive not in DRIVES:
        raise UserError(
            f"drive = {drive!r} is unknown{nearest(str(drive), list(DRIVES))}; choose one of {', '.join(DRIVES)}"
        )
    across = bounded_axis(cells[1], 2.0, -1.0, stretching)
    if faces is not None:
        across = axis_of_faces(faces)
        if across.cells != cells[1] or across.faces[0] != -1 or across.faces[-1] != 1:
            raise UserError(
                f"faces are {across.cells + 1} from {across.faces[0]:g} to {across.faces[-1]:g}; "
                f"give cells[1] + 1 = {cells[1] + 1} from -1 to 1"
            )
    axes = periodic_axis(cells[0], length), across
    walls = domain(axes, (None, ("wall", "wall")), wall_slope)
    grid = walls.grid
    held = drive == "flow_rate"
    equations = Equations(
        domain=walls,
        viscosity=lambda params: 1 / params["reynolds"],
        time_step=fixed_time_step,
        boundary=lambda params, time: _walls(params),
        force=None if held else lambda velocity, scalar, params, time: (_pressure_gradient(params), 0.0),
        flow_rate=(lambda params, time: params["forcing"] + params["wall_velocity"] / 2) if held else None,
        method="adams_bashforth",
        implicit=(0, 1),
    )
    start, step = stepper(equations)

    def init(params: Params, key: jax.Array) -> FlowState:
        eddies = random_eddies(grid, key, params["perturbation"].dtype)
        return start(jax.tree.map(lambda w: params["perturbation"] * w, eddies), params)

    def observe(state: FlowState, params: Params) -> dict[str, jax.Array]:
        u, v = at_centers(state.velocity, grid)
        return {
            "speed": magnitude((u, v)),
            "vorticity": vorticity(state.velocity, _walls(params), walls),
            "u": u,
            "v": v,
            "profile": u.mean(axis=0),
            "side_velocity": jnp.zeros(4, u.dtype).at[3].set(params["wall_velocity"]),
        }

    def diagnose(state: FlowState, params: Params) -> dict[str, jax.Array]:
        u = state.velocity[0]
        slopes = shear(u, 0, 1, _walls(params), walls).mean(axis=0)
        profile = u.mean(axis=0)
        stress = slopes / params["reynolds"]
        gradient = state.drive if held else _pressure_gradient(params)
        return {
            "time": state.time[0],
            "bulk_velocity": flow_rate(profile, slopes, across),
            "centerline_velocity": interpolate(profile, 0.0, across),
            "kinetic_energy": kinetic_energy(state.velocity, grid),
            "wall_shear_stress": stress[0],
            "pressure_gradient": gradient,
            "net_force": gradient - (stress[0] - stress[-1]) / 2,
            "divergence": jnp.max(jnp.abs(divergence(state.velocity, grid))),
            "largest_velocity": jnp.max(speed(state.velocity, grid)),
            "courant_number": courant_number(state.velocity, params["time_step"], grid),
            "poiseuille_deviation": jnp.max(jnp.abs(profile - steady_profile(like(u, across.centers), params))),
        }

    def check(params: Params, key: jax.Array) -> None:
        del key
        reached = float(np.abs(steady_profile(across.faces, jax.device_get(params))).max())
        check_time_step(
            float(params["time_step"]), (reached, 0.0), 1 / float(params["reynolds"]), walls, equations.method, ()
        )

    return Simulation(
        init=init,
        step=step,
        observe=observe,
        diagnose=diagnose,
        params=PARAMETERS,
        check=check,
        dimensions={name: ("x", "y") for name in ("speed", "vorticity", "u", "v")}
        | {"profile": ("y",), "side_velocity": ("side",)},
        coordinates=coordinates_along(x=axes[0], y=across) | {"sides": walls.drawn_sides()},
    )


def steady_profile(y: jax.Array | np.ndarray, params: Params) -> jax.Array:
    """Return the laminar steady solution ``u = 3/2 F (1 - y^2) + W (1 + y)/2`` at heights ``y``."""
    return 1.5 * params["forcing"] * (1 - y**2) + params["wall_velocity"] * (1 + y) / 2


def _pressure_gradient(params: Params) -> jax.Array:
    return 3 * params["forcing"] / params["reynolds"]


def _walls(params: Params) -> BoundaryVelocity:
    return None, ((0.0, 0.0), (params["wall_velocity"], 0.0))
