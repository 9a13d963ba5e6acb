"""Dependence of a function on its parameters, from its traced program."""

from collections.abc import Callable
from typing import Any

import jax
from jax.interpreters import partial_eval

from simkit.core import paths
from simkit.core.simulation import Params, Simulation


def without_effect(function: Callable[..., Any], params: Params, *arguments: Any) -> list[str]:
    """Return the paths of the parameters on which ``function(params, *arguments)`` does not depend.

    The function is traced and operations that do not contribute to its result are removed (dead-code elimination);
    nothing is computed. A parameter that is multiplied by zero counts as used.

    Args:
        function: function of params and arrays.
        params: arrays, or their shapes.
        *arguments: pytrees of arrays or of their shapes.
    """
    used = _used(function, params, *arguments)
    # Arguments are flattened in order, the params first.
    names = jax.tree.leaves(paths.mapped(lambda path, _: path, params))
    return [name for name, is_used in zip(names, used, strict=False) if not is_used]


def idle_parameters(simulation: Simulation) -> list[str]:
    """Return the paths of the parameters on which start, steps, frames and status of a simulation do not depend.

    Args:
        simulation: any; it is traced, which takes about a second, and nothing is computed.
    """

    def outputs(params: Params, key: jax.Array) -> Any:
        state = simulation.step(simulation.init(params, key), params)
        functions = (simulation.observe, simulation.diagnose, simulation.status)
        return state, [function(state, params) for function in functions if function is not None]

    return without_effect(outputs, simulation.params, jax.eval_shape(jax.random.key, 0))


def depends(function: Callable[..., Any], *arguments: Any) -> bool:
    """Return whether the result of ``function(*arguments)`` depends on any of its arguments, as `without_effect` does.

    Args:
        function: function of arrays.
        *arguments: pytrees of arrays or of their shapes.
    """
    return any(_used(function, *arguments))


def _used(function: Callable[..., Any], *arguments: Any) -> list[bool]:
    """Return for each leaf of the arguments whether the result depends on it."""
    traced = jax.make_jaxpr(function)(*arguments)
    return partial_eval.dce_jaxpr(traced.jaxpr, [True] * len(traced.out_avals))[1]
