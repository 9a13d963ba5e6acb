"""Piecewise-constant controls: parameters that take a new value every few steps."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core import paths
from simkit.core.rollout import segment
from simkit.core.simulation import Arrays, Params, Simulation, State
from simkit.errors import UserError


def controlled(simulation: Simulation, steps: int = 1) -> Callable[[State, Params, Params], tuple[State, Arrays]]:
    """Return ``(state, params, controls) -> (state, diagnostics)`` that holds each control value for some steps.

    Zero-order hold: the control jumps at the ends of steps. A load that depends on time cannot do this, since methods
    evaluate loads within a step; a parameter is constant during a step. Derivatives with respect to every control value
    exist; reverse mode recomputes the steps of each interval.

    Args:
        simulation: one whose step depends on the controls, by a load that takes a parameter for instance.
        steps: number of steps for which each value is held, at least 1.

    Returns:
        The function. Its ``controls`` are ``{path of a parameter: (intervals, ...)}``, in the unit of the parameter;
        the diagnostics are those at the end of each interval, (intervals,).

    Raises:
        UserError: if ``steps`` is below 1; and, when called, for a name that is not a parameter or unequal lengths.
    """
    if steps < 1:
        raise UserError(f"steps = {steps} is below 1; hold each control for 1 step or more")
    advance = segment(simulation, steps)

    def run(state: State, params: Params, controls: Params) -> tuple[State, Arrays]:
        known = paths.leaves(params)
        for name, values in controls.items():
            if name not in known:
                raise UserError(f"control '{name}' is not a parameter{paths.hint(name, known)}")
            if jnp.shape(values)[1:] != jnp.shape(known[name]) or jnp.ndim(values) == 0:
                raise UserError(
                    f"control '{name}' has shape {jnp.shape(values)}; "
                    f"give one value of shape {jnp.shape(known[name])} for each interval along a first axis"
                )
        lengths = {name: len(values) for name, values in controls.items()}
        if len(set(lengths.values())) != 1:
            raise UserError(f"controls have {lengths or 'no'} values; give as many for each, at least one control")

        def interval(state: State, values: Params) -> tuple[State, Arrays]:
            current = paths.replaced(params, values)
            state = advance(state, current)
            return state, simulation.diagnose(state, current)

        series = {name: jnp.asarray(values, known[name].dtype) for name, values in controls.items()}
        return jax.lax.scan(jax.checkpoint(interval, prevent_cse=False), state, series)

    return run
