"""L-BFGS: quasi-Newton steps from the last gradients, with a line search."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from simkit.core.bounded import Bounds
from simkit.core.optimizers.optimizer import Iterate, Optimizer, Problem, gradient_is_zero, gradient_norm
from simkit.core.simulation import Arrays

# Line searches in a row that find nothing lower, after which rounding is taken to hide all further progress.
PATIENCE = 5


def lbfgs(tolerance: float) -> Optimizer:
    """Return the method L-BFGS, for smooth objectives.

    Args:
        tolerance: of the gradient, see `simkit.core.optimizers.optimizer.gradient_is_zero`.

    Reference: Liu and Nocedal, Math. Program. 45, 503 (1989), doi:10.1007/BF01589116.
    """
    rule: Any = optax.lbfgs()

    def begin(problem: Problem, position: Arrays) -> Iterate:
        value, gradient = problem.evaluate(position)
        return Iterate(position=position, value=value, gradient=gradient, memory=rule.init(position))

    def advance(problem: Problem, iterate: Iterate) -> Iterate:
        known = {"value": iterate.value, "grad": iterate.gradient, "value_fn": _with_gradient(problem.evaluate)}
        updates, memory = rule.update(iterate.gradient, iterate.memory, iterate.position, **known)
        # Value and gradient are those at the end of the line search, so that no run is repeated.
        return Iterate(
            position=jax.tree.map(jnp.add, iterate.position, updates),
            value=optax.tree.get(memory, "value"),
            gradient=optax.tree.get(memory, "grad"),
            memory=memory,
        )

    def converged(iterate: Iterate, idle: jax.Array, bounds: Bounds) -> jax.Array:
        return gradient_is_zero(iterate, bounds, tolerance)

    return Optimizer(begin, advance, converged, lambda iterate, idle: idle >= PATIENCE, gradient_norm)


def _with_gradient(evaluate: Callable[[Arrays], tuple[jax.Array, Arrays]]) -> Callable[[Arrays], jax.Array]:
    """Return ``position -> value`` whose reverse-mode derivative is the gradient computed by ``evaluate``."""

    @jax.custom_vjp
    def value(position: Arrays) -> jax.Array:
        return evaluate(position)[0]

    def backward(gradient: Arrays, cotangent: jax.Array) -> tuple[Arrays]:
        return (jax.tree.map(lambda slope: cotangent * slope, gradient),)

    value.defvjp(evaluate, backward)
    return value
