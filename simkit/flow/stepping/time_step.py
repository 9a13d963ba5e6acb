"""Largest stable time step."""

import math
from collections.abc import Callable
from operator import truediv
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.arrays import Velocity
from simkit.flow.boundary.domain import Domain
from simkit.flow.diagnosis.measures import crossing_rate
from simkit.flow.viscosity import Viscosity, field_at_centers, is_field, uniform

# Stability limits of each method: largest time step times decay rate, and largest Courant number of central advection.
DECAY_LIMIT = {"runge_kutta": 2.51, "adams_bashforth": 1.0}
CARRY_LIMIT = {"runge_kutta": 1.73, "adams_bashforth": 0.5}


def fixed_time_step(velocity: Velocity, params: Params) -> jax.Array:
    """Return the parameter ``time_step``."""
    return params["time_step"]


def adaptive_time_step(
    domain: Domain,
    viscosity: Viscosity,
    method: str,
    explicit: tuple[int, ...],
    diffusivity: Callable[[Params], jax.Array] | None = None,
) -> Callable[[Velocity, Params], jax.Array]:
    """Return the function that gives the time step at which the flow crosses ``params["courant_number"]`` cells.

    At most half the stability limit of explicit friction and diffusion, and at most ``params["time_step"]``, which is
    used for a flow at rest.

    Args:
        domain: the domain.
        viscosity: as for `simkit.flow.equations.Equations`; the largest value of a field is used.
        method: method of the stepper.
        explicit: axes along which friction and diffusion are explicit.
        diffusivity: of the scalar, ``params -> number``; or None.
    """
    limit, varies = diffusion_limit(domain, method, explicit), is_field(viscosity)

    def largest(velocity: Velocity, params: Params) -> Any:
        if not varies:
            return uniform(viscosity, params)
        return jnp.max(field_at_centers(viscosity, velocity, params, domain.grid.cells))

    def time_step(velocity: Velocity, params: Params) -> jax.Array:
        crossing = jnp.max(crossing_rate(velocity, domain.grid)) / params["courant_number"]
        spreading = largest(velocity, params)
        if diffusivity is not None:
            spreading = jnp.maximum(spreading, diffusivity(params))
        return 1 / jnp.maximum(jnp.maximum(crossing, 2 / limit * spreading), 1 / params["time_step"])

    return time_step


def diffusion_limit(domain: Domain, method: str, axes: tuple[int, ...]) -> float:
    """Return the limit of stability of explicit diffusion: largest time step times diffusivity, infinite without axes.

    Second differences decay at the rate ``sum(4/dx^2)`` per unit diffusivity.

    Args:
        domain: the domain.
        method: method of the stepper.
        axes: axes along which diffusion is explicit.
    """
    rate = float(sum(4 / domain.grid.axes[i].widths.min() ** 2 for i in axes))
    return DECAY_LIMIT[method] / rate if axes else math.inf


def check_time_step(
    time_step: float,
    speed: float | tuple[float, ...],
    viscosity: float,
    domain: Domain,
    method: str,
    explicit: tuple[int, ...],
    diffusivity: float = 0.0,
) -> None:
    """Refuse a fixed time step above the limit of stability.

    Args:
        time_step: the time step.
        speed: the largest velocity expected; or the size of each of its components, where they are known.
        viscosity: the kinematic viscosity; the largest, where it varies.
        domain: the domain.
        method: of the stepper.
        explicit: axes along which friction and diffusion are explicit.
        diffusivity: of the scalar that the flow carries; 0 where there is none.

    Raises:
        UserError: if the time step is above the limit, which it names.
    """
    widths = [float(a.widths.min()) for a in domain.grid.axes]
    crossing = sum(map(truediv, speed, widths)) if isinstance(speed, tuple) else speed / min(widths)
    limit = diffusion_limit(domain, method, explicit)
    limits = {
        "advection": CARRY_LIMIT[method] / max(crossing, 1e-300),
        "explicit friction": limit / max(viscosity, 1e-300),
        "explicit diffusion of the scalar": limit / max(diffusivity, 1e-300),
    }
    reason = min(limits, key=lambda name: limits[name])
    if time_step > limits[reason]:
        raise UserError(
            f"time_step = {time_step:g} is above the stability limit of {reason} on this grid, "
            f"{limits[reason]:.3g}; choose a smaller one, or fewer cells"
        )
