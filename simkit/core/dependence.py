"""Which parameters a function depends on, found by tracing it."""

from collections.abc import Callable
from typing import Any

import jax
from jax.interpreters import partial_eval

from simkit.core.simulation import Params, Simulation


def without_effect(function: Callable[..., Any], params: Params, *arguments: Any) -> list[str]:
    """Return the names of the parameters that change nothing in what ``function(params, *arguments)`` returns.

    The function is traced and its program cut down to what its result is made of; nothing is computed. A parameter
    that enters with a weight of zero counts as one that has an effect.

    Args:
        function: of params and arrays.
        params: arrays, or their shapes, by name.
        *arguments: pytrees of arrays or of their shapes.
    """
    traced = jax.make_jaxpr(function)(params, *arguments)
    _, used = partial_eval.dce_jaxpr(traced.jaxpr, [True] * len(traced.out_avals))
    # Arguments are flattened in order, the params first, by their sorted names.
    return [name for name, is_used in zip(sorted(params), used, strict=False) if not is_used]


def idle_parameters(simulation: Simulation) -> list[str]:
    """Return the names of a simulation's parameters that change nothing in its start, steps, frames or status.

    Args:
        simulation: any; it is traced, which takes a second or so, and nothing is computed.
    """

    def everything(params: Params, key: jax.Array) -> Any:
        start = simulation.init(params, key)
        then = simulation.step(start, params)
        functions = (simulation.observe, simulation.diagnose, simulation.done, simulation.status)
        return then, [function(then, params) for function in functions if function is not None]

    return without_effect(everything, simulation.params, jax.eval_shape(jax.random.key, 0))
