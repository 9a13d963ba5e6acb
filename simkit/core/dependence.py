"""Parameters that a function depends on, found by tracing it."""

from collections.abc import Callable
from typing import Any

import jax
from jax.interpreters import partial_eval

from simkit.core import paths
from simkit.core.simulation import Params, Simulation


def without_effect(function: Callable[..., Any], params: Params, *arguments: Any) -> list[str]:
    """Return the paths of the parameters that change nothing in what ``function(params, *arguments)`` returns.

    The function is traced and its program cut down to what its result is made of; nothing is computed. A parameter
    that enters with a weight of zero counts as one that has an effect.

    Args:
        function: of params and arrays.
        params: arrays, or their shapes.
        *arguments: pytrees of arrays or of their shapes.
    """
    used = _used(function, params, *arguments)
    # Arguments are flattened in order, the params first.
    names = jax.tree.leaves(paths.mapped(lambda path, _: path, params))
    return [name for name, is_used in zip(names, used, strict=False) if not is_used]


def idle_parameters(simulation: Simulation) -> list[str]:
    """Return the paths of a simulation's parameters that change nothing in its start, steps, frames or status.

    Args:
        simulation: any; it is traced, which takes a second or so, and nothing is computed.
    """

    def everything(params: Params, key: jax.Array) -> Any:
        start = simulation.init(params, key)
        then = simulation.step(start, params)
        functions = (simulation.observe, simulation.diagnose, simulation.status)
        return then, [function(then, params) for function in functions if function is not None]

    return without_effect(everything, simulation.params, jax.eval_shape(jax.random.key, 0))


def depends(function: Callable[..., Any], *arguments: Any) -> bool:
    """Return whether what ``function(*arguments)`` returns depends on any of its arguments.

    The function is traced and cut down as in `without_effect`.

    Args:
        function: of arrays.
        *arguments: pytrees of arrays or of their shapes.
    """
    return any(_used(function, *arguments))


def _used(function: Callable[..., Any], *arguments: Any) -> list[bool]:
    """Return for each array among the arguments, in the order of their leaves, whether it has an effect."""
    traced = jax.make_jaxpr(function)(*arguments)
    return partial_eval.dce_jaxpr(traced.jaxpr, [True] * len(traced.out_avals))[1]
