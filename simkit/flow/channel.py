"""Flow between two plane walls, driven by a pressure gradient or by a moving wall."""

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params, Simulation
from simkit.flow.adams_bashforth import FlowState, adams_bashforth
from simkit.flow.eddies import random_eddies
from simkit.flow.grid import uniform_grid
from simkit.flow.measures import centerline, courant_number, flow_rate, kinetic_energy
from simkit.flow.operators import Walls, at_centers, divergence, like, magnitude, shear, vorticity


def channel(*, cells: tuple[int, int] = (64, 48), length: float = 6.0) -> Simulation:
    """Return plane channel flow from rest, or from random eddies, toward Couette-Poiseuille flow.

        du/dt + div(u u) = -grad(p) + 1/Re laplacian(u) + (3 F/Re, 0),   div(u) = 0,
        u = (0, 0) at y = -1,   u = (W, 0) at y = 1,   everything periodic in x

    The unit of length is the half-width h, the unit of velocity the mean velocity U that the pressure gradient
    sustains at F = 1. Below Re = 3848 small disturbances die, and ``u = 3/2 F (1 - y^2) + W (1 + y)/2`` remains after
    about ``t = 3 Re``.

    Parameters (all may be swept or differentiated):
        reynolds: bulk Reynolds number Re = U h/nu; 100.
        forcing: F, the mean pressure gradient divided by 3/Re; 1.
        perturbation: root-mean-square speed of the random eddies of the start, unit U; 0 starts from rest.
        wall_velocity: W, the velocity of the upper wall, unit U; 0.
        time_step: unit h/U; keep ``courant_number`` below 0.5; 0.015.

    Diagnostics, besides those that explain themselves:
        bulk_velocity: flow rate per unit area.
        wall_shear_stress: that on the lower wall, divided by density, unit U^2.
        net_force: driving force less the friction on both walls, per unit mass, unit U^2/h; zero in steady flow.
        divergence: its largest absolute value; rounding errors only.
        poiseuille_deviation: largest distance of the mean profile from the steady one above.

    Args:
        cells: number of cells along and across the channel, each at least 4. Laminar flow asks for 32 across; eddies at
            a high Reynolds number for more, and for cells less than three times as long as high.
        length: period of the flow along the channel, unit h.

    Raises:
        UserError: if the configuration is not of that kind.

    Reference, for the limit of stability: Orszag, J. Fluid Mech. 50, 689 (1971), doi:10.1017/S0022112071002842.
    """
    grid = uniform_grid(cells, length)
    start, advance = adams_bashforth(grid)

    def init(params: Params, key: jax.Array) -> FlowState:
        eddies = random_eddies(grid, key, params["perturbation"].dtype)
        velocity = jax.tree.map(lambda w: params["perturbation"] * w, eddies)
        return start(velocity, 1 / params["reynolds"], _walls(params))

    def step(state: FlowState, params: Params) -> FlowState:
        return advance(state, 1 / params["reynolds"], params["time_step"], _force(params), _walls(params))

    def observe(state: FlowState, params: Params) -> dict[str, jax.Array]:
        u, v = at_centers(state.velocity)
        return {
            "speed": magnitude((u, v)),
            "vorticity": vorticity(state.velocity, _walls(params), grid),
            "u": u,
            "v": v,
            "profile": u.mean(axis=0),
        }

    def diagnose(state: FlowState, params: Params) -> dict[str, jax.Array]:
        u, _ = state.velocity
        walls = _walls(params)
        profile = u.mean(axis=0)
        stress = shear(u, walls, grid).mean(axis=0) / params["reynolds"]
        return {
            "time": state.iteration * params["time_step"],
            "bulk_velocity": flow_rate(u, walls, grid),
            "centerline_velocity": centerline(profile, grid),
            "kinetic_energy": kinetic_energy(state.velocity, grid),
            "wall_shear_stress": stress[0],
            "net_force": _force(params)[0] - (stress[0] - stress[-1]) / 2,
            "divergence": jnp.max(jnp.abs(divergence(state.velocity, grid))),
            "courant_number": courant_number(state.velocity, params["time_step"], grid),
            "poiseuille_deviation": jnp.max(jnp.abs(profile - steady_profile(like(u, grid.y), params))),
        }

    defaults = {"reynolds": 100.0, "forcing": 1.0, "perturbation": 0.0, "wall_velocity": 0.0, "time_step": 0.015}
    return Simulation(
        init=init,
        step=step,
        observe=observe,
        diagnose=diagnose,
        params={name: jnp.asarray(value, dtype=float) for name, value in defaults.items()},
        dimensions={name: ("x", "y") for name in ("speed", "vorticity", "u", "v")} | {"profile": ("y",)},
        coordinates={"x": grid.x, "y": grid.y, "walls": grid.faces[[0, -1]]},
    )


def steady_profile(y: jax.Array, params: Params) -> jax.Array:
    """Return the laminar steady solution ``u = 3/2 F (1 - y^2) + W (1 + y)/2`` at heights ``y``."""
    return 1.5 * params["forcing"] * (1 - y**2) + params["wall_velocity"] * (1 + y) / 2


def _force(params: Params) -> tuple[jax.Array, jax.Array]:
    return 3 * params["forcing"] / params["reynolds"], jnp.zeros_like(params["forcing"])


def _walls(params: Params) -> Walls:
    return jnp.zeros_like(params["wall_velocity"]), params["wall_velocity"]
