"""The Taylor-Green vortex, carried by a uniform flow: an exact solution that moves through the grid and decays."""

import math

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.quantities import described
from simkit.core.simulation import Params, Simulation
from simkit.errors import UserError, nearest
from simkit.flow.arrays import Velocity, like
from simkit.flow.boundary.domain import domain, no_motion
from simkit.flow.diagnosis.measures import courant_number, kinetic_energy, magnitude, mean_velocity, speed, vorticity
from simkit.flow.diagnosis.quantities import flow_quantities
from simkit.flow.equations import Equations
from simkit.flow.grid import periodic_axis
from simkit.flow.operators.differences import at_centers, divergence
from simkit.flow.stepping.stepper import FlowState, stepper
from simkit.flow.stepping.time_step import check_time_step, fixed_time_step

METHODS = ("runge_kutta", "adams_bashforth")
# Cells that a wave needs for differences of second order to carry it at all well.
CELLS_PER_WAVE = 8


PARAMETERS = {
    "viscosity": Parameter(0.01, NOT_NEGATIVE, "1", "kinematic viscosity nu"),
    "vortex_velocity": Parameter(1.0, unit="1", doc="largest velocity of the vortices at the start"),
    "carrying_velocity": Parameter(1.0, unit="1", doc="velocity of the uniform flow, along both axes"),
    "time_step": Parameter(0.02, POSITIVE, "1", "time step; keep courant_number below 1.7"),
}


@described(
    flow_quantities(),
    vortex_energy=("1", "kinetic energy without that of the mean flow"),
    vortex_strength=("1", "largest velocity of the vortices"),
    exact_strength=("1", "largest velocity of the exact vortices"),
)
def taylor_green(*, cells: int = 64, waves: int = 1, method: str = "runge_kutta") -> Simulation:
    """Return vortices in a periodic square of side 2 pi that drift and decay without changing their shape.

        du/dt + div(u u) = -grad(p) + nu laplacian(u),   div(u) = 0,   x' = x - U t,   y' = y - U t,
        u = U - V cos(k x') sin(k y') exp(-2 nu k^2 t),   v = U + V sin(k x') cos(k y') exp(-2 nu k^2 t)

    This is an exact solution for every viscosity nu, also for none. Where it does not move (U = 0), pressure balances
    advection on a grid as well, and much that may be wrong goes unseen; the uniform flow brings it to light. In two
    dimensions the solution is stable but for slow instabilities of many vortices, which start from rounding errors.

    nu is the parameter ``viscosity``, V ``vortex_velocity`` and U ``carrying_velocity``; all of `PARAMETERS` may be
    swept and differentiated. Keep ``courant_number`` below 1.7 (Runge-Kutta) or 0.5 (Adams-Bashforth).

    Diagnostics, besides those that explain themselves:
        vortex_energy: kinetic energy without that of the mean flow; ``V^2 exp(-4 nu k^2 t) / 4`` in the exact solution.
        vortex_strength: the largest velocity of the exact solution that has this energy, ``V exp(-2 nu k^2 t)``.
        exact_strength: that of the exact solution at this time.
        velocity_error: largest distance of a velocity component from the exact solution.
        divergence: its largest absolute value; rounding errors only.

    Args:
        cells: number of cells along each side, at least 8 for each wave.
        waves: k, the number of waves along each side, at least 1; there are 4 k^2 vortices.
        method: "runge_kutta" or "adams_bashforth"; viscosity is explicit in both.

    Raises:
        UserError: if the configuration is not of that kind.

    Reference: Taylor and Green, Proc. R. Soc. Lond. A 158, 499 (1937), doi:10.1098/rspa.1937.0036.
    """
    if isinstance(waves, bool) or not isinstance(waves, int) or waves < 1:
        raise UserError(f"waves = {waves!r} is not an integer of at least 1; choose for example waves = 1")
    axis = periodic_axis(cells, 2 * math.pi)
    if cells < CELLS_PER_WAVE * waves:
        raise UserError(f"cells = {cells} is too few for waves = {waves}; choose at least {CELLS_PER_WAVE * waves}")
    if method not in METHODS:
        raise UserError(
            f"method = {method!r} is unknown{nearest(str(method), list(METHODS))}; choose one of {', '.join(METHODS)}"
        )
    square = domain((axis, axis), (None, None))
    grid = square.grid
    equations = Equations(
        domain=square, viscosity=lambda params: params["viscosity"], time_step=fixed_time_step, method=method
    )
    start, step = stepper(equations)

    def exact(params: Params, time: jax.Array) -> Velocity:
        drift = params["carrying_velocity"] * time
        points, centers = (waves * (like(time, x) - drift) for x in (axis.points, axis.centers))
        u = -jnp.cos(points)[:, None] * jnp.sin(centers)
        v = jnp.sin(centers)[:, None] * jnp.cos(points)
        return tuple(params["carrying_velocity"] + strength(params, time) * f for f in (u, v))

    def strength(params: Params, time: jax.Array) -> jax.Array:
        return params["vortex_velocity"] * jnp.exp(-2 * params["viscosity"] * waves**2 * time)

    def vortices(velocity: Velocity) -> Velocity:
        return tuple(f - mean_velocity(velocity, i, grid) for i, f in enumerate(velocity))

    def init(params: Params, key: jax.Array) -> FlowState:
        return start(exact(params, jnp.zeros((), params["viscosity"].dtype)), params)

    def observe(state: FlowState, params: Params) -> dict[str, jax.Array]:
        u, v = at_centers(state.velocity, grid)
        return {
            "vorticity": vorticity(state.velocity, no_motion(square), square),
            "speed": magnitude((u, v)),
            "u": u,
            "v": v,
        }

    def diagnose(state: FlowState, params: Params) -> dict[str, jax.Array]:
        energy = kinetic_energy(vortices(state.velocity), grid)
        distances = jax.tree.map(lambda f, e: jnp.max(jnp.abs(f - e)), state.velocity, exact(params, state.time[0]))
        return {
            "time": state.time[0],
            "kinetic_energy": kinetic_energy(state.velocity, grid),
            "vortex_energy": energy,
            "vortex_strength": 2 * jnp.sqrt(energy),
            "exact_strength": strength(params, state.time[0]),
            "velocity_error": jnp.maximum(*distances),
            "divergence": jnp.max(jnp.abs(divergence(state.velocity, grid))),
            "largest_velocity": jnp.max(speed(state.velocity, grid)),
            "courant_number": courant_number(state.velocity, params["time_step"], grid),
        }

    def check(params: Params, key: jax.Array) -> None:
        del key
        values = {name: abs(float(value)) for name, value in params.items()}
        # Where u is largest, v is that of the carrying flow.
        reached = values["carrying_velocity"] + values["vortex_velocity"], values["carrying_velocity"]
        check_time_step(values["time_step"], reached, values["viscosity"], square, method, equations.explicit)

    return Simulation(
        init=init,
        step=step,
        observe=observe,
        diagnose=diagnose,
        check=check,
        params=PARAMETERS,
        dimensions={name: ("x", "y") for name in ("vorticity", "speed", "u", "v")},
        coordinates={"x": axis.centers, "y": axis.centers},
    )
