"""Womersley flow: flow between two plane walls driven by an oscillating pressure gradient."""

import math

import jax
import jax.numpy as jnp

from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.quantities import described
from simkit.core.simulation import Params, Simulation
from simkit.errors import UserError
from simkit.flow.arrays import Velocity, like
from simkit.flow.boundary.domain import domain, no_motion
from simkit.flow.diagnosis.measures import courant_number, flow_rate, interpolate, kinetic_energy, speed
from simkit.flow.diagnosis.quantities import flow_quantities
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis, coordinates_along, periodic_axis
from simkit.flow.operators.differences import at_centers, divergence
from simkit.flow.operators.diffusion import shear
from simkit.flow.stepping.stepper import FlowState, stepper
from simkit.flow.stepping.time_step import check_time_step, fixed_time_step

METHOD = "runge_kutta"
DYE_WAVES = 3


PARAMETERS = {
    "womersley": Parameter(
        8.0,
        POSITIVE,
        "1",
        "Womersley number h sqrt(omega / nu): half-width over the thickness of the layers at the walls",
    ),
    "amplitude": Parameter(
        1.0,
        unit="h",
        doc="amplitude of the pressure gradient per density and omega^2: displacement of a fluid without friction",
    ),
    "initial_share": Parameter(
        1.0, unit="1", doc="fraction of the periodic flow present at the start; 0 starts from rest"
    ),
    "time_step": Parameter(2 * math.pi / 200, POSITIVE, "1/omega", "time step; the period is 2 pi"),
}


@described(
    flow_quantities("h", "h omega", "1/omega", "omega"),
    dye=("1", "lines of dye, carried by the flow"),
    displacement=("h", "displacement along the channel"),
    amplitude_ratio=("1", "amplitude of the displacement over the exact one"),
    phase_error=("rad", "phase of the displacement less the exact one"),
)
def womersley(*, cells: tuple[int, int] = (64, 64), length: float = 4.0, stretching: float = 0.0) -> Simulation:
    """Return plane channel flow that a pressure gradient drives to and fro.

        du/dt + div(u u) = -grad(p) + 1/alpha^2 laplacian(u) + (A cos(t), 0),   div(u) = 0,
        u = (0, 0) at y = -1 and y = 1,   everything periodic in x

    The unit of length is the half-width h, the unit of time 1/omega with the angular frequency omega, so that a period
    is 2 pi and A is the amplitude of the to and fro of a fluid without viscosity, unit h. What remains after a while is

        displacement = real part of -A (1 - cosh(b y)/cosh(b)) exp(i t),   b = alpha sqrt(i),   u = d displacement/dt

    At a small Womersley number alpha this is Poiseuille's parabola in step with the pressure gradient; at a large one
    the fluid moves like a block that lags by a quarter of a period, but for layers at the walls of thickness 1/alpha,
    which lead it and overshoot.

    Viscosity is implicit, and the whole of second order in time.

    alpha is the parameter ``womersley`` and A ``amplitude``; all of `PARAMETERS` may be swept and differentiated.

    Diagnostics, besides those that explain themselves:
        bulk_velocity: flow rate per unit area.
        velocity_error: largest distance of the mean profile from the exact one, unit A.
        amplitude_ratio: amplitude of the displacement at the center over the exact one.
        phase_error: its phase less the exact one; these two compare displacement and velocity, and mean nothing until
            the oscillation is periodic.
        divergence: its largest absolute value; rounding errors only.

    Args:
        cells: number of cells along and across the channel, each at least 4; a few within 1/alpha of the walls.
        length: period of the flow along the channel, unit h.
        stretching: 0 for equal cells, more for finer ones at the walls, see `bounded_axis`.

    Raises:
        UserError: if the configuration is not of that kind.

    Reference: Womersley, J. Physiol. 127, 553 (1955), doi:10.1113/jphysiol.1955.sp005276, for the pipe.
    """
    if not isinstance(cells, list | tuple) or len(cells) != 2:
        raise UserError(f"cells = {cells!r} is not two integers of at least 4; choose for example cells = [64, 64]")
    axes = periodic_axis(cells[0], length), bounded_axis(cells[1], 2.0, -1.0, stretching)
    walls = domain(axes, (None, ("wall", "wall")))
    grid, across, rest = walls.grid, axes[1], no_motion(walls)
    equations = Equations(
        domain=walls,
        viscosity=lambda params: params["womersley"] ** -2,
        time_step=fixed_time_step,
        force=lambda velocity, displacement, params, time: (params["amplitude"] * jnp.cos(time), 0.0),
        scalar=_Displacement(),
        method=METHOD,
        implicit=(0, 1),
    )
    start, step = stepper(equations)

    def init(params: Params, key: jax.Array) -> FlowState:
        displacement = exact_displacement(like(params["womersley"], across.centers), params)
        velocity = params["initial_share"] * -displacement.imag
        still = jnp.zeros(grid.shape(1), velocity.dtype)
        return start((jnp.broadcast_to(velocity, grid.shape(0)), still), params, displacement.real)

    def observe(state: FlowState, params: Params) -> dict[str, jax.Array]:
        u, v = at_centers(state.velocity, grid)
        x = like(u, axes[0].centers)
        phase = (x[:, None] - state.scalar) * (2 * math.pi * DYE_WAVES / length)
        return {"dye": jnp.sin(phase), "u": u, "v": v, "profile": u.mean(axis=0), "displacement": state.scalar}

    def diagnose(state: FlowState, params: Params) -> dict[str, jax.Array]:
        u, time = state.velocity[0], state.time[0]
        profile = u.mean(axis=0)
        slopes = shear(u, 0, 1, rest, walls).mean(axis=0)
        turn = jax.lax.complex(jnp.cos(time), jnp.sin(time))
        exact = exact_displacement(like(u, across.centers), params) * turn
        center = interpolate(profile, 0.0, across)
        found = jax.lax.complex(interpolate(state.scalar, 0.0, across), -center)
        ratio = found / (exact_displacement(like(u, 0.0), params) * turn)
        return {
            "time": time,
            "pressure_gradient": params["amplitude"] * jnp.cos(time),
            "bulk_velocity": flow_rate(profile, slopes, across),
            "centerline_velocity": center,
            "wall_shear_stress": slopes[0] / params["womersley"] ** 2,
            "kinetic_energy": kinetic_energy(state.velocity, grid),
            "velocity_error": jnp.max(jnp.abs(profile + exact.imag)) / params["amplitude"],
            "amplitude_ratio": jnp.abs(ratio),
            "phase_error": jnp.arctan2(ratio.imag, ratio.real),
            "divergence": jnp.max(jnp.abs(divergence(state.velocity, grid))),
            "largest_velocity": jnp.max(speed(state.velocity, grid)),
            "courant_number": courant_number(state.velocity, params["time_step"], grid),
        }

    def check(params: Params, key: jax.Array) -> None:
        del key
        values = {name: float(value) for name, value in params.items()}
        viscosity, reached = values["womersley"] ** -2, (values["amplitude"], 0.0)
        check_time_step(values["time_step"], reached, viscosity, walls, METHOD, equations.explicit)

    return Simulation(
        init=init,
        step=step,
        observe=observe,
        diagnose=diagnose,
        check=check,
        params=PARAMETERS,
        dimensions={name: ("x", "y") for name in ("dye", "u", "v")} | {"profile": ("y",), "displacement": ("y",)},
        coordinates=coordinates_along(x=axes[0], y=across) | {"sides": walls.drawn_sides()},
    )


def exact_displacement(y: jax.Array, params: Params) -> jax.Array:
    """Return the complex amplitude ``-A (1 - cosh(b y)/cosh(b))`` of the displacement at heights ``y``."""
    half = params["womersley"] / math.sqrt(2)
    b = jax.lax.complex(half, half)
    # Written so that no exponent is positive, for cosh(b) overflows.
    layers = jnp.exp(-b * (1 - jnp.abs(y))) * (1 + jnp.exp(-2 * b * jnp.abs(y))) / (1 + jnp.exp(-2 * b))
    return -params["amplitude"] * (1 - layers)


class _Displacement:
    """Displacement of the fluid along the channel at each height, ``(n,)``."""

    def rate(
        self, scalar: jax.Array, velocity: Velocity, params: Params, time: jax.Array, explicit: tuple[int, ...]
    ) -> jax.Array:
        """Return the mean velocity along the channel at each height."""
        return velocity[0].mean(axis=0)

    def implicit_diffusion(self, axes: tuple[int, ...]) -> None:
        """Return None: displacements do not diffuse."""

    # Written so that no exponent is positive, for cosh(b) overflows.
