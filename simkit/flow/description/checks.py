"""Checks of a flow described as data: finite formulas and a stable time step."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.scope import precision_of, refuse_non_finite, refuse_out_of_bounds
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.boundary.domain import passing, velocity_on_sides
from simkit.flow.boundary.side_data import on_side
from simkit.flow.description.equations import ComposedFlow
from simkit.flow.description.formulas import COMPONENTS
from simkit.flow.description.measurements import check_surface
from simkit.flow.description.sides import check_parts
from simkit.flow.diagnosis.status import is_balanced
from simkit.flow.grid import Velocity, like
from simkit.flow.obstacles.distance import distance_and_normal, positions
from simkit.flow.stepping.time_step import CARRY_LIMIT, check_damping, check_time_step

# Sides and obstacles are checked at time 0 and at this many times, the first time step times powers of two.
LOOKS = 7
# Estimated ratio of the speed beside an obstacle to that of the undisturbed stream.
FASTER = 1.5


def check_start(flow: ComposedFlow, params: Params, key: jax.Array) -> None:
    """Raise if a formula is not finite at the start, or if time step or Courant number are above the stability limit.

    Args:
        flow: the flow.
        params: parameters at the start of the run.
        key: random key of the start.

    Raises:
        UserError: that names the formula, or the limit.
    """
    places, equations = flow.places, flow.equations
    zero = jnp.zeros((), precision_of(params))
    start = flow.initial
    components, velocity, scalars = flow.fields_at_start(params, key)
    for i, formula in start.components.items():
        refuse_non_finite(formula, components[i])
    if start.stream is not None:
        refuse_non_finite(start.stream, components[0])
    if start.eddies is not None:
        start.eddies.check(params)
    for name, scalar in flow.scalars.items():
        refuse_non_finite(scalar.initial, scalars[name])
    for name, scalar in flow.scalars.items():
        refuse_out_of_bounds(scalar.diffusivity, flow.carried[name].diffusivity_at(scalars, params, zero))
    check_parts(flow.sides, places, params, zero)
    pressures = [(formula, places.of_side(formula, *which)) for which, formula in flow.sides.pressures.items()]
    on_scalars = [each for scalar in flow.scalars.values() for each in scalar.on_sides]
    for formula, value in (*pressures, *flow.sides.data, *on_scalars):
        refuse_out_of_bounds(formula, value(params, zero))
    length = _first_step(flow, velocity, scalars, params)
    times = [0.0, *(length * 2.0**k for k in range(LOOKS))]
    times = [time for time in times if not any(each.has_ended(params, time) for each in flow.tables_in_time)]
    speeds = _speeds_on_sides(flow, params, times)
    if places.domain.entrances() and not (places.domain.exits() or places.domain.open_sides()):
        entering, leaving = map(float, passing(equations.on_sides(params, zero), places.domain, zero.dtype))
        if not is_balanced(equations, params, zero):
            raise UserError(
                f"the velocity is given on all sides through which fluid passes, and {entering:.4g} enters while "
                f"{leaving:.4g} leaves, per time; let both be equal, or make one side an outflow"
            )
    if flow.obstacles:
        bodies = _speeds_of_obstacles(flow, params, times)
        speeds = tuple(FASTER * max(pair) for pair in zip(speeds, bodies, strict=True))
    for i, formula in flow.force.items():
        refuse_non_finite(formula, places.at_faces(formula, i, velocity, scalars, params, zero))
    if any(formula.takes(COMPONENTS[i]) for i, formula in flow.force.items()):
        check_damping(equations, velocity, scalars or (), params, zero)
    if equations.drag is not None:
        coefficients, velocities = equations.drag(params, zero)
        for coefficient in coefficients:
            refuse_out_of_bounds(flow.drag["coefficient"], coefficient)
        for name, value in zip(places.components, velocities, strict=True):
            refuse_non_finite(flow.drag[name], value)
    if flow.flow_rate is not None:
        refuse_non_finite(flow.flow_rate, flow.flow_rate.number(params, time=zero))

    def boundary() -> Any:
        return velocity_on_sides(equations.boundary, places.domain, params, zero)

    viscosity = places.at_centers(flow.viscosity, velocity, scalars, params, zero, boundary)
    refuse_out_of_bounds(flow.viscosity, viscosity)
    if flow.implicit_viscosity is not None:
        refuse_out_of_bounds(flow.implicit_viscosity, flow.implicit_viscosity.number(params))
    for scalar in flow.scalars.values():
        if scalar.source is not None:
            refuse_non_finite(scalar.source, places.at_centers(scalar.source, velocity, scalars, params, zero))
    if flow.courant_number is not None:
        return
    carried = equations.scalar
    diffusivities = [] if carried is None else carried.spreading(scalars, params, zero, equations.explicit)
    speed: Any
    if flow.largest_speed:
        speed = _largest_speed(flow, params)
    else:
        faster = FASTER if flow.obstacles else 1.0
        speed = tuple(max(faster * float(jnp.max(jnp.abs(f))), s) for f, s in zip(velocity, speeds, strict=True))
    check_time_step(
        float(params["time_step"]),
        speed,
        float(jnp.max(viscosity)),
        places.domain,
        equations.method,
        equations.explicit,
        diffusivities,
    )


def _largest_speed(flow: ComposedFlow, params: Params) -> float | tuple[float, ...]:
    """Return the largest speed expected, or the largest size of each component, after checking that it is one."""
    sizes = []
    for formula in flow.largest_speed:
        sizes.append(float(formula.number(params)))
        refuse_out_of_bounds(formula, formula.number(params))
    return sizes[0] if len(sizes) == 1 else tuple(sizes)


def _first_step(flow: ComposedFlow, velocity: Velocity, scalars: Any, params: Params) -> float:
    """Return the length of the first step, after checking the Courant number by which the flow sets it."""
    formula, method, longest = flow.courant_number, flow.equations.method, float(params["time_step"])
    if formula is None:
        return longest
    number, limit = float(formula.number(params)), CARRY_LIMIT[method]
    if not 0 < number <= limit:
        raise UserError(
            f"{formula.where}: is {number:g} at the start; choose a number above 0, and at most {limit:g}, the limit "
            f"of stability of {method}"
        )
    zero = jnp.zeros((), precision_of(params))
    step = float(flow.equations.step_length(velocity, scalars or (), params, zero))
    # Formulas that are not finite are named by the checks that follow.
    return step if np.isfinite(step) else longest


def _speeds_of_obstacles(flow: ComposedFlow, params: Params, times: list[float]) -> tuple[float, ...]:
    """Return the largest absolute value of each velocity component of obstacles, after checking that they fit."""
    bodies = flow.equations.obstacle
    for obstacle in flow.obstacles.values():
        for formula in obstacle.formulas:
            refuse_out_of_bounds(formula, formula.number(params, time=0.0))
        obstacle.check_shape(params)
    moves = bodies.moves  # type: ignore[union-attr]
    for name, obstacle in flow.obstacles.items():
        check_surface(name, obstacle, flow, params)
    bodies.check(params, times if moves else times[:1])  # type: ignore[union-attr]
    _check_covered_sides(flow, params)
    speeds = np.zeros(len(flow.places.axes))
    moving = [body for body in bodies.bodies.values() if body.motion is not None]  # type: ignore[union-attr]
    # One program for all times compiles faster than each of its operations.
    speeds_at = jax.jit(lambda params, time: [jnp.abs(jnp.stack(body.now(params, time).velocity)) for body in moving])
    for time in times if moving else ():
        speeds = np.max([speeds, *speeds_at(params, jnp.asarray(time, precision_of(params)))], axis=0)
    return tuple(speeds)


def _check_covered_sides(flow: ComposedFlow, params: Params) -> None:
    """Refuse fluid that is given to enter or leave where an obstacle covers a side."""
    if not any(obstacle.attached for obstacle in flow.obstacles.values()):
        return
    equations, domain, zero = flow.equations, flow.places.domain, jnp.zeros((), precision_of(params))
    centers = [like(zero, p) for p in positions(None, domain.grid)]
    shapes = equations.obstacle.shapes(params, zero)  # type: ignore[union-attr]
    for axis, side in domain.entrances():
        place, velocity = domain.place(axis, side), on_side(equations.on_sides(params, zero), axis, side)[axis]
        face = domain.grid.axes[axis].faces[-1 if side else 0]
        points = [jnp.full_like(p, face) if k == axis else p for k, p in enumerate(centers)]
        for name, shape in shapes.items():
            if jnp.any((distance_and_normal(shape, points)[0] < 0) & (jnp.abs(velocity) > 0)):
                raise UserError(
                    f"obstacle '{name}' covers a part of {place.name} through which fluid is given to flow; let the "
                    "velocity be 0 there"
                )


def _speeds_on_sides(flow: ComposedFlow, params: Params, times: list[float]) -> tuple[float, ...]:
    """Return the largest absolute value of each component of the velocity on the sides, at the given times."""
    speeds = np.zeros(len(flow.places.axes))
    for (axis, side, component), formula in flow.sides.velocities.items():
        of_time = flow.velocities_on_sides[axis, side, component]
        for time in times if formula.takes("time") else times[:1]:
            value = of_time(params, jnp.asarray(time, precision_of(params)))
            if time == 0:
                refuse_non_finite(formula, value)
            speeds[component] = max(speeds[component], float(np.nanmax(np.abs(value))))
    return tuple(speeds)
