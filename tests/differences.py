"""Central differences, with which derivatives are compared."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.simulation import Params


def central_difference(
    function: Callable[[Params], jax.Array], params: Params, wrt: Sequence[str], relative_step: float | None = None
) -> dict[str, np.ndarray]:
    """Differentiate by ``(f(p + h) - f(p - h)) / 2h``, one number at a time.

    Args:
        function: ``params -> scalar``; one that is compiled already is not compiled again.
        params: where to differentiate.
        wrt: paths of the parameters.
        relative_step: h relative to the largest magnitude in the parameter's array (or absolute where all is zero); by
            default the cube root of the rounding unit, where truncation and rounding errors balance.
    """
    leaves = paths.leaves(params)
    chosen = {name: leaves[name] for name in wrt}
    compiled = function if hasattr(function, "lower") else jax.jit(function)
    found: dict[str, np.ndarray] = {}
    for name, value in chosen.items():
        exact = np.asarray(value)
        step = relative_step or float(np.finfo(exact.dtype).eps) ** (1 / 3)
        difference, scale = np.empty(exact.shape, exact.dtype), float(np.max(np.abs(exact), initial=0)) or 1.0
        for index in np.ndindex(exact.shape):
            ends = []
            for sign in (1, -1):
                moved = exact.copy()
                moved[index] += sign * step * scale
                ends.append((moved[index], compiled(paths.replaced(params, {name: jnp.asarray(moved)}))))
            (above, value_above), (below, value_below) = ends
            difference[index] = (value_above - value_below) / (above - below)
        found[name] = difference
    return found


def fourth_order(function: Callable[[Any], Any], at: Any, step: Any) -> Any:
    """Differentiate each output by ``(8 (f(p + h) - f(p - h)) - (f(p + 2 h) - f(p - 2 h))) / 12 |h|``.

    Args:
        function: ``p -> arrays``, compiled.
        at: p, a number or an array.
        step: h, a number, or an array with one entry that is not zero.
    """
    far2, far1, next1, next2 = (function(at + k * step) for k in (-2, -1, 1, 2))
    size = np.sum(step)
    return jax.tree.map(lambda a, b, c, d: (8 * (c - b) - (d - a)) / (12 * size), far2, far1, next1, next2)
