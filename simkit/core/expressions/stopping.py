"""Stop condition of a run, defined by an expression."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.expressions.expression import expression
from simkit.core.expressions.moment import Moment
from simkit.core.simulation import Params, Simulation, State
from simkit.core.status import Status, status_of, stops
from simkit.errors import UserError


def stopped_when(simulation: Simulation, text: str, where: str) -> Simulation:
    """Return the simulation with the status ``STOPPED`` once a condition holds.

    The condition is evaluated after every step. Derivatives are those of the steps taken; they do not include the
    change of the time at which it stops.

    Args:
        simulation: one that runs a fixed number of steps.
        text: a comparison of quantities, parameters and coordinates, such as ``"height < 0 and time > 1"``.
        where: file and key, for messages.

    Raises:
        UserError: that marks the column of a mistake; if the condition is an array; or if the simulation runs until it
            converges.
    """
    if simulation.converges:
        raise UserError(f"{where}: the simulation runs until it converges, and needs no condition; leave it out")
    moment, own = Moment(simulation), status_of(simulation)
    condition = expression(text, where, moment.known, is_condition=True)
    if condition.syntax.over_frames:
        raise UserError(f"{where}: '{text}' reduces frames, and a stop condition has the present one only")

    def status(state: State, params: Params) -> jax.Array:
        code = own(state, params)
        holds = condition(moment.values(state, params, condition.syntax.names))
        if holds.axes:
            raise UserError(f"{where}: '{text}' is one for each {' and '.join(holds.axes)}; reduce it by max or min")
        return jnp.where(jnp.asarray(holds.array) & ~stops(code), jnp.int32(Status.STOPPED), code)

    jax.eval_shape(status, *moment.shapes)
    return dataclasses.replace(simulation, status=status, watched=True)
