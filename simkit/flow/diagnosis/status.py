"""Status of a flow: limits of stability, bodies that come too near, sides that take in what they should let out."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.core.status import Status, is_finite
from simkit.flow.boundary.domain import passing
from simkit.flow.diagnosis.measures import crossing_rate
from simkit.flow.equations import Equations
from simkit.flow.obstacles.bodies import Bodies, are_clear
from simkit.flow.obstacles.immersed_boundary import ImmersedBoundary
from simkit.flow.scalar import TransportedScalar, TransportedScalars
from simkit.flow.stepping.stepper import FlowState
from simkit.flow.stepping.time_step import CARRY_LIMIT, diffusion_limit
from simkit.flow.viscosity import field_at_centers

# The check of the start refuses a time step above the limit itself; rounding between the two must not stop a run.
ROUNDING = 1 + 1e-5
# Mean inward velocity on an outflow side, relative to the largest velocity, above which it takes in fluid.
BACKFLOW = 1e-3
# Largest difference of what enters and what leaves, relative to what enters: that of values at the centers of cells.
IMBALANCE = 1e-2


def flow_status(equations: Equations) -> Callable[[FlowState, Params], jax.Array]:
    """Return the function ``(state, params) -> code`` that gives the `simkit.core.status.Status` of a flow.

    Failures come before cautions, and a state that is not finite before both.

    Args:
        equations: of the flow.
    """
    bodies = equations.obstacle

    def status(state: FlowState, params: Params) -> jax.Array:
        time = state.time[0]
        conditions = [(Status.COURANT_ABOVE_LIMIT, is_carried_stably(equations, state, params))]
        if equations.domain.exits():
            conditions.append((Status.BACKFLOW, lets_out(equations, state)))
        elif equations.domain.entrances() and not equations.domain.open_sides():
            conditions.append((Status.UNBALANCED, is_balanced(equations, params, time)))
        if equations.varies:
            conditions.append((Status.VISCOSITY_OUT_OF_RANGE, viscosity_in_range(equations, state, params)))
        if any(scalar.varies for scalar in _scalars(equations)):
            conditions.append((Status.VISCOSITY_OUT_OF_RANGE, diffusivity_in_range(equations, state, params)))
        if equations.drag is not None:
            lowest = [jnp.min(coefficient) for coefficient in equations.drag(params, time)[0]]
            conditions.append((Status.VISCOSITY_OUT_OF_RANGE, jnp.min(jnp.stack(lowest)) >= 0))
        if isinstance(bodies, Bodies) and bodies.moves:
            conditions.append((Status.BODY_TOO_NEAR, are_clear(bodies, params, time)))
        if isinstance(bodies, ImmersedBoundary):
            conditions.append((Status.OUTLINE_TOO_COARSE, bodies.are_resolved(params, time)))
        conditions.append((Status.NON_FINITE, is_finite(state)))
        code = jnp.int32(Status.OK)
        for failure, holds in conditions:
            code = jnp.where(holds, code, jnp.int32(failure))
        return code

    return status


def is_carried_stably(equations: Equations, state: FlowState, params: Params) -> jax.Array:
    """Return whether the Courant number of the next step is within the limit of explicit advection, a boolean.

    Args:
        equations: of the flow.
        state: of the flow.
        params: parameters.
    """
    length = equations.step_length(state.velocity, state.scalar, params, state.time[0])
    cells = length * jnp.max(crossing_rate(state.velocity, equations.domain.grid))
    return cells <= ROUNDING * CARRY_LIMIT[equations.method]


def lets_out(equations: Equations, state: FlowState) -> jax.Array:
    """Return whether as much fluid leaves through each outflow side as enters by it, or more, a boolean.

    What an outflow side takes in carries whatever velocity and scalar the side happens to have: nothing gives them.

    Args:
        equations: of a flow with an outflow side.
        state: of the flow.
    """
    domain, velocity = equations.domain, state.velocity
    places = [domain.place(axis, side) for axis, side in domain.exits()]
    means = jnp.stack([place.flux(velocity) / place.area for place in places])
    fastest = jnp.max(jnp.stack([jnp.max(jnp.abs(f)) for f in velocity]))
    return jnp.min(means) >= -BACKFLOW * fastest


def is_balanced(equations: Equations, params: Params, time: jax.Array) -> jax.Array:
    """Return whether the flows given through all sides balance at a time, a boolean.

    Args:
        equations: of a flow whose velocity is given on all sides through which it passes.
        params: parameters.
        time: the time, scalar.
    """
    entering, leaving = passing(equations.on_sides(params, time), equations.domain, time.dtype)
    return jnp.abs(entering - leaving) <= IMBALANCE * entering


def viscosity_in_range(equations: Equations, state: FlowState, params: Params) -> jax.Array:
    """Return whether the viscosity field of a state is stable, a boolean scalar.

    A field may follow time, velocity and scalars out of the range that was checked at the start.

    Args:
        equations: equations whose viscosity is a field.
        state: state of the flow.
        params: parameters.
    """
    carried = state.scalar, state.time[0]
    viscosity = field_at_centers(equations.viscosity, state.velocity, params, equations.domain.grid.cells, carried)
    return _in_range(viscosity, equations.explicit, equations, state, params)


def _scalars(equations: Equations) -> list[TransportedScalar]:
    carried = equations.scalar
    each = carried.scalars.values() if isinstance(carried, TransportedScalars) else [carried]
    return [scalar for scalar in each if isinstance(scalar, TransportedScalar)]


def diffusivity_in_range(equations: Equations, state: FlowState, params: Params) -> jax.Array:
    """Return whether the diffusivities of a state that vary are stable, a boolean scalar.

    Args:
        equations: of a flow with scalars.
        state: of the flow.
        params: parameters.
    """
    axes = tuple(range(equations.domain.grid.dimension))
    fields = [
        scalar.diffusivity_at(state.scalar, params, state.time[0]) for scalar in _scalars(equations) if scalar.varies
    ]
    return jnp.all(jnp.stack([_in_range(field, axes, equations, state, params) for field in fields]))


def _in_range(
    field: jax.Array, axes: tuple[int, ...], equations: Equations, state: FlowState, params: Params
) -> jax.Array:
    """Return whether a viscosity or diffusivity that is explicit along axes is stable, a boolean scalar."""
    length = equations.step_length(state.velocity, state.scalar, params, state.time[0])
    limit = diffusion_limit(equations.domain, equations.method, axes)
    return (jnp.min(field) >= 0) & (jnp.max(field) * length <= ROUNDING * limit)
