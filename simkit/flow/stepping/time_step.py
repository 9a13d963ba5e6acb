"""Time steps: fixed, or following from the flow and the speeds of sides and obstacles; limits of stability."""

import functools
import math
from collections.abc import Callable, Sequence
from operator import itemgetter, truediv
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.boundary.domain import Domain
from simkit.flow.boundary.side_data import on_side
from simkit.flow.diagnosis.measures import crossing_rate
from simkit.flow.equations import Equations, TimeStep
from simkit.flow.grid import Grid, Velocity, like
from simkit.flow.viscosity import field_at_centers, uniform


def rate_of_given_speeds(equations: Equations, params: Params, time: jax.Array) -> jax.Array | None:
    """Return the largest number of cells per time that a velocity given at a time crosses; None where nothing moves.

    Such a velocity is that on a side, ``|u|/dx + |v|/dy + |w|/dz`` with the narrowest cells beside each face, or that
    of an obstacle.

    Args:
        equations: of the flow.
        params: parameters.
        time: the time, scalar.
    """
    rates = [] if equations.boundary is None else _rates_on_sides(equations, params, time)
    if equations.obstacle is not None:
        rates += [equations.obstacle.crossing_rate(params, time)]
    moving = [rate for rate in rates if rate is not None]
    return functools.reduce(jnp.maximum, moving) if moving else None


def _rates_on_sides(equations: Equations, params: Params, time: jax.Array) -> list[jax.Array | None]:
    domain = equations.domain
    side_values = equations.on_sides(params, time)
    rates: list[jax.Array | None] = []
    for axis in domain.bounded():
        for side in (0, 1):
            terms = [
                jnp.max(jnp.abs(value) * like(time, _per_cell(domain.grid, component, axis, side)))
                for component, value in enumerate(on_side(side_values, axis, side))
                if not (isinstance(value, int | float) and value == 0)
            ]
            rates += [functools.reduce(jnp.add, terms)] if terms else []
    return rates


def _per_cell(grid: Grid, component: int, axis: int, side: int) -> np.ndarray:
    """Return one over the width of the cells that a component crosses on a side, the narrower ones beside each face."""
    widths = grid.axes[component].widths
    if component == axis:
        return 1 / widths[-1 if side else 0]
    if grid.axes[component].periodic:
        return 1 / widths[0]
    beside = np.minimum(np.append(widths[:1], widths), np.append(widths, widths[-1:]))
    return grid.along(1 / beside, component)


# Stability limits of each method: largest time step times decay rate, and largest Courant number of central advection.
DECAY_LIMIT = {"runge_kutta": 2.51, "adams_bashforth": 1.0}
CARRY_LIMIT = {"runge_kutta": 1.73, "adams_bashforth": 0.5}


def fixed_time_step(
    equations: Equations, velocity: Velocity, scalar: Any, params: Params, time: jax.Array
) -> jax.Array:
    """Return the parameter ``time_step``, whatever the flow.

    Example:
        >>> axes = (flow.periodic_axis(4, 1.0), flow.periodic_axis(4, 1.0))
        >>> equations = flow.Equations(flow.domain(axes, (None, None)), "nu", time_step=flow.fixed_time_step)
        >>> velocity, params = (jnp.ones((4, 4)), jnp.ones((4, 4))), {"nu": 0.1, "time_step": 0.01}
        >>> equations.step_length(velocity, (), params, jnp.array(0.0))
        0.01
    """
    return params["time_step"]


def adaptive_time_step(courant_number: Callable[[Params], Any] = itemgetter("courant_number")) -> TimeStep:
    """Return the time step at which the flow crosses a given number of cells, as ``Equations.time_step``.

        1/dt = max(1/time_step, rate/courant_number, 2 D/limit),    rate = max(|u|/dx + |v|/dy + |w|/dz)

    The rate is that of the flow, and at both ends of the step that of the velocities given on sides and of obstacles. D
    is the largest viscosity or diffusivity, ``limit`` that of `diffusion_limit`: friction and diffusion along explicit
    axes take half of their limit of stability. The parameter ``time_step`` is the longest step, which a flow at rest
    takes; choose it so that it resolves what forces and sources do.

    The step is differentiated: a derivative is that of the numbers that the steps compute, whose time is a result too.

    Args:
        courant_number: ``params -> number``, of cells; by default the parameter ``courant_number``. See `CARRY_LIMIT`.

    Example:
        >>> axes = (flow.periodic_axis(10, 1.0), flow.periodic_axis(10, 1.0))
        >>> equations = flow.Equations(flow.domain(axes, (None, None)), "nu", time_step=flow.adaptive_time_step())
        >>> velocity = (jnp.full((10, 10), 2.0), jnp.zeros((10, 10)))
        >>> params = {"nu": 0.0, "time_step": 1.0, "courant_number": 0.5}
        >>> print(f"{equations.step_length(velocity, (), params, jnp.array(0.0)):.3f} = 0.5 * 0.1 / 2, below 1")
        0.025 = 0.5 * 0.1 / 2, below 1
    """

    def time_step(equations: Equations, velocity: Velocity, scalar: Any, params: Params, time: jax.Array) -> jax.Array:
        cells = courant_number(params)
        rates = [1 / params["time_step"], jnp.max(crossing_rate(velocity, equations.domain.grid)) / cells]
        for diffusivity, axes in _spreading(equations, velocity, scalar, params, time):
            if axes:
                rates += [2 / diffusion_limit(equations.domain, equations.method, axes) * diffusivity]
        rate = functools.reduce(jnp.maximum, rates)
        for moment in (time, time + 1 / rate):
            side_values = rate_of_given_speeds(equations, params, moment)
            rate = rate if side_values is None else jnp.maximum(rate, side_values / cells)
        # A flow that is not finite takes the longest step, so that its time still tells when that happened.
        return 1 / jnp.where(jnp.isnan(rate), 1 / params["time_step"], rate)

    return time_step


def _spreading(
    equations: Equations, velocity: Velocity, scalar: Any, params: Params, time: jax.Array
) -> list[tuple[Any, tuple[int, ...]]]:
    """Return the largest diffusivity of each scalar and the viscosity, with the axes along which they are explicit."""
    explicit = equations.explicit
    rates = [] if equations.scalar is None else equations.scalar.spreading(scalar, params, time, explicit)
    if not equations.varies:
        return [*rates, (uniform(equations.viscosity, params), explicit)]
    cells = equations.domain.grid.cells
    field = field_at_centers(equations.viscosity, velocity, params, cells, (scalar, time))
    return [*rates, (jnp.max(field), explicit)]


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
    diffusivities: Sequence[tuple[Any, tuple[int, ...]]] = (),
) -> None:
    """Refuse a fixed time step above the limit of stability.

    Args:
        time_step: the time step.
        speed: the largest velocity expected; or the size of each of its components, where they are known.
        viscosity: the kinematic viscosity; the largest, where it varies.
        domain: the domain.
        method: of the stepper.
        explicit: axes along which friction and diffusion are explicit.
        diffusivities: largest one of each scalar, with the axes along which its diffusion is explicit.

    Raises:
        UserError: if the time step is above the limit, which it names.
    """
    widths = [float(a.widths.min()) for a in domain.grid.axes]
    crossing = sum(map(truediv, speed, widths)) if isinstance(speed, tuple) else speed / min(widths)
    spreads = [diffusion_limit(domain, method, axes) / max(float(value), 1e-300) for value, axes in diffusivities]
    limits = {
        "advection": CARRY_LIMIT[method] / max(crossing, 1e-300),
        "explicit friction": diffusion_limit(domain, method, explicit) / max(viscosity, 1e-300),
        "explicit diffusion of the scalar": min(spreads, default=math.inf),
    }
    remedies = {
        "advection": "",
        "explicit friction": ", or implicit axes (if the viscosity is a field, with method = 'adams_bashforth' and "
        f"implicit_viscosity = {viscosity:.3g}, its largest value)",
        "explicit diffusion of the scalar": ", or implicit axes",
    }
    reason = min(limits, key=lambda name: limits[name])
    if time_step > limits[reason]:
        raise UserError(
            f"time_step = {time_step:g} is above the stability limit of {reason} on this grid, "
            f"{limits[reason]:.3g}; choose a smaller one, or fewer cells{remedies[reason]}"
        )


def check_damping(equations: Equations, velocity: Velocity, scalar: Any, params: Params, time: jax.Array) -> None:
    """Refuse a time step at which a force that damps the velocity, such as a stiff drag, is unstable.

    Args:
        equations: of the flow.
        velocity: components on their faces, at which the force is linearized.
        scalar: the scalars.
        params: concrete parameters.
        time: time.

    Raises:
        UserError: if the time step is above the limit, which it names.
    """
    rate = float(jax.jit(functools.partial(_damping, equations))(velocity, scalar, params, time))
    limit = DECAY_LIMIT[equations.method] / rate if rate > 0 else math.inf
    if params["time_step"] > limit:
        raise UserError(
            f"time_step = {float(params['time_step']):g} is above the stability limit of the force, {limit:.3g}, which "
            f"damps the velocity at the rate {rate:.3g}; choose a smaller one, or give the part of the force that is "
            "proportional to the velocity as the table drag, which limits no time step"
        )


def _damping(equations: Equations, velocity: Velocity, scalar: Any, params: Params, time: jax.Array) -> jax.Array:
    """Return the largest rate ``-df_i/du_i`` of the force."""
    force, rates = equations.force, []
    assert force is not None, "what damps is a force"
    for i, f in enumerate(velocity):

        def along(component: jax.Array, i: int = i) -> jax.Array:
            return jnp.asarray(
                force((*velocity[:i], component, *velocity[i + 1 :]), scalar, params, time)[i], component.dtype
            )

        slope = jax.jvp(along, (f,), (jnp.ones_like(f),))[1]
        rates.append(jnp.max(jnp.where(jnp.isfinite(slope), -slope, 0)))
    return jnp.max(jnp.stack(rates))
