"""Controls held constant over steps: parameters that take another value at each decision."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core import paths
from simkit.core.rollout import segment
from simkit.core.simulation import Arrays, Params, Simulation, State
from simkit.errors import UserError


def controlled(simulation: Simulation, steps: int = 1) -> Callable[[State, Params, Params], tuple[State, Arrays]]:
    """Return ``(state, params, controls) -> (state, diagnostics)`` that holds each control for some steps.

    A controller decides at fixed times and holds what it decided: a force that jumps in time at the ends of steps. A
    load that depends on time cannot say that, since methods look at loads within a step; a parameter can, since it is
    constant while a step is taken. The derivative
    reaches every control; reverse mode recomputes the steps of each decision.

    Args:
        simulation: one whose step depends on the controls, by a load that takes a parameter for instance.
        steps: that each value is held, at least 1.

    Returns:
        The function. Its ``controls`` are ``{path of a parameter: (decisions, ...)}``, in the unit of the parameter;
        the diagnostics are those after each decision, (decisions,).

    Raises:
        UserError: for less than one step; and, when called, for a name that is no parameter or unequal lengths.
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
                    f"give one value of shape {jnp.shape(known[name])} for each decision along a first axis"
                )
        lengths = {name: len(values) for name, values in controls.items()}
        if len(set(lengths.values())) != 1:
            raise UserError(f"controls have {lengths or 'no'} values; give as many for each, at least one control")

        def decide(state: State, values: Params) -> tuple[State, Arrays]:
            here = paths.replaced(params, values)
            state = advance(state, here)
            return state, simulation.diagnose(state, here)

        series = {name: jnp.asarray(values, known[name].dtype) for name, values in controls.items()}
        return jax.lax.scan(jax.checkpoint(decide, prevent_cse=False), state, series)

    return run
