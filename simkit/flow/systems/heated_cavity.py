"""Natural convection in a square cavity between a hot and a cold wall."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.quantities import described
from simkit.core.simulation import Params, Simulation
from simkit.errors import UserError
from simkit.flow.boundary.domain import domain
from simkit.flow.diagnosis.measures import courant_number, kinetic_energy, magnitude
from simkit.flow.diagnosis.quantities import flow_quantities
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis
from simkit.flow.operators.differences import at_centers, divergence, mean_at_faces
from simkit.flow.scalar import TransportedScalar, mean_scalar
from simkit.flow.stepping.stepper import FlowState, stepper
from simkit.flow.stepping.time_step import check_time_step, fixed_time_step

HOT, COLD = 0.5, -0.5
METHOD = "runge_kutta"


PARAMETERS = {
    "rayleigh": Parameter(
        100000.0, POSITIVE, "1", "Rayleigh number g beta dT H^3 / (nu kappa): how strongly the heat drives the flow"
    ),
    "prandtl": Parameter(0.71, POSITIVE, "1", "Prandtl number nu / kappa; 0.71 for air"),
    "time_step": Parameter(4e-05, POSITIVE, "H^2/kappa", "time step; keep courant_number below 1.7"),
}


@described(
    flow_quantities("H", "kappa/H", "H^2/kappa", "kappa/H^2"),
    temperature=("dT", "temperature above the mean of the walls"),
    nusselt=("1", "heat through the hot wall over that of conduction alone"),
    nusselt_cold=("1", "heat through the cold wall over that of conduction alone"),
    mean_temperature=("dT", "mean temperature of the box"),
    largest_rise=("kappa/H", "largest upward velocity"),
)
def heated_cavity(*, cells: tuple[int, int] = (48, 48), stretching: float = 1.0) -> Simulation:
    """Return the flow in a square box whose left wall is hot and whose right wall is cold.

        du/dt + div(u u) = -grad(p) + Pr laplacian(u) + (0, Ra Pr T),    div(u) = 0
        dT/dt + div(u T) = laplacian(T)
        T = 1/2 at x = 0,  T = -1/2 at x = 1,  no heat through y = 0 and 1,  u = 0 on all walls

    The fluid starts at rest with T = 0. Warm fluid rises along the left wall and cold fluid sinks along the right one
    (Boussinesq's approximation: density varies in the weight alone). The unit of length is the side H, of time
    H^2/kappa, of temperature the difference between the walls. The flow is steady at the end up to Ra = 1e8 or so.

    All of `PARAMETERS` may be swept and differentiated.

    Diagnostics, besides those that explain themselves:
        nusselt: heat through the hot wall, relative to conduction through fluid at rest, the mean over the wall.
        nusselt_cold: the same for the cold wall; equal in steady state.
        mean_temperature: over the box; zero by symmetry.
        largest_rise: largest upward velocity at the cell centers, unit kappa/H.
        divergence: its largest absolute value; rounding errors only.

    Args:
        cells: number of cells along x and y, each at least 4. The layers at the walls are about Ra^(-1/4) thick and
            ask for 4 cells each: 32 will do at Ra = 1e4, 48 at 1e5, 80 at 1e6.
        stretching: 0 for equal cells, more for finer ones at the walls, see `bounded_axis`; at 1 those are 0.55 as wide
            as the mean.

    Raises:
        UserError: if the configuration is not of that kind, or the time step above the limit of stability.

    Reference: de Vahl Davis, Int. J. Numer. Methods Fluids 3, 249 (1983), doi:10.1002/fld.1650030305.
    """
    if not isinstance(cells, list | tuple) or len(cells) != 2:
        raise UserError(f"cells = {cells!r} is not two integers of at least 4; choose for example cells = [48, 48]")
    axes = tuple(bounded_axis(n, 1.0, 0.0, stretching) for n in cells)
    cavity = domain(axes, (("wall", "wall"), ("wall", "wall")))
    grid = cavity.grid
    temperature = TransportedScalar(
        domain=cavity,
        sides=(("value", "value"), ("insulated", "insulated")),
        diffusivity=lambda params: jnp.ones_like(params["prandtl"]),
        values=lambda params, time: ((HOT, COLD), (0.0, 0.0)),
    )

    def buoyancy(velocity, scalar: jax.Array, params: Params, time: jax.Array) -> tuple:
        del velocity, time
        return 0.0, params["rayleigh"] * params["prandtl"] * mean_at_faces(scalar, 1, grid)

    start, step = stepper(
        Equations(
            domain=cavity,
            viscosity=lambda params: params["prandtl"],
            time_step=fixed_time_step,
            force=buoyancy,
            scalar=temperature,
            method=METHOD,
        )
    )

    def init(params: Params, key: jax.Array) -> FlowState:
        del key
        dtype = params["rayleigh"].dtype
        rest = tuple(jnp.zeros(grid.shape(i), dtype) for i in range(2))
        return start(rest, params, jnp.zeros(grid.cells, dtype))

    def observe(state: FlowState, params: Params) -> dict[str, jax.Array]:
        del params
        u, v = at_centers(state.velocity, grid)
        return {"temperature": state.scalar, "speed": magnitude((u, v)), "u": u, "v": v}

    def diagnose(state: FlowState, params: Params) -> dict[str, jax.Array]:
        def nusselt(side: int) -> jax.Array:
            flux = temperature.side_flux(state.scalar, params, state.time[0], 0, side)[0]
            return jnp.sum(flux * jnp.asarray(axes[1].widths, flux.dtype)) / (HOT - COLD)

        return {
            "time": state.time[0],
            "nusselt": nusselt(0),
            "nusselt_cold": -nusselt(1),
            "mean_temperature": mean_scalar(state.scalar, grid),
            "largest_rise": jnp.max(at_centers(state.velocity, grid)[1]),
            "kinetic_energy": kinetic_energy(state.velocity, grid),
            "courant_number": courant_number(state.velocity, params["time_step"], grid),
            "divergence": jnp.max(jnp.abs(divergence(state.velocity, grid))),
        }

    def check(params: Params, key: jax.Array) -> None:
        del key
        values = {name: float(value) for name, value in params.items()}
        # The rise along the wall of de Vahl Davis' tables is 0.2 to 0.22 of this.
        rise = 0.2 * math.sqrt(values["rayleigh"] * min(values["prandtl"], 1.0))
        check_time_step(values["time_step"], (0.0, rise), values["prandtl"], cavity, METHOD, (0, 1), diffusivity=1.0)

    return Simulation(
        init=init,
        step=step,
        observe=observe,
        diagnose=diagnose,
        params=PARAMETERS,
        check=check,
        dimensions={name: ("x", "y") for name in ("temperature", "speed", "u", "v")},
        coordinates={"x": axes[0].centers, "y": axes[1].centers, "sides": np.array(["hot", "cold", "wall", "wall"])},
    )
