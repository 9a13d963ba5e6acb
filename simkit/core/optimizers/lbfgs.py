"""L-BFGS: quasi-Newton steps from the last gradients, with a line search."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from simkit.core.optimizers.methods import method
from simkit.core.optimizers.optimizer import Iterate, Optimizer, Problem, gradient_is_zero, gradient_norm
from simkit.core.pytrees import pytree
from simkit.core.simulation import Arrays

# Line searches in a row that find nothing lower, after which rounding is taken to hide all further progress.
PATIENCE = 5
# Value of a trial that is not finite, above the present one, relative to one and the present one: no trial is accepted.
TOO_LARGE = 1e3


@pytree
class Memory:
    """What L-BFGS carries to its next update.

    Attributes:
        history: last gradients and steps, and results of the line search, of the scaled function.
        factor: factor by which the function is scaled.
    """

    history: Any
    factor: jax.Array


@method()
def lbfgs(*, numbers: int, tolerance: float) -> Optimizer:
    """Return the method L-BFGS, for smooth objectives.

    Args:
        numbers: how many are optimized; of no effect.
        tolerance: of the gradient, see `simkit.core.optimizers.optimizer.gradient_is_zero`.

    Reference: Liu and Nocedal, Math. Program. 45, 503 (1989), doi:10.1007/BF01589116.
    """
    del numbers
    rule: Any = optax.lbfgs()

    def begin(problem: Problem, position: Arrays) -> Iterate:
        value, gradient = problem.evaluate(position)
        memory = Memory(history=rule.init(position), factor=jnp.ones_like(value))
        return Iterate(position=position, value=value, gradient=gradient, memory=memory)

    def advance(problem: Problem, iterate: Iterate) -> Iterate:
        value, factor, history = iterate.value, iterate.memory.factor, iterate.memory.history
        evaluate = _with_gradient(_scaled(problem.evaluate, factor, value))
        gradient = jax.tree.map(lambda slope: factor * slope, iterate.gradient)
        evaluated = {"value": factor * value, "grad": gradient, "value_fn": evaluate}
        updates, kept = rule.update(gradient, history, iterate.position, **evaluated)
        # Value and gradient are those at the end of the line search, so that no run is repeated.
        candidate = Iterate(
            position=jax.tree.map(jnp.add, iterate.position, updates),
            value=optax.tree.get(kept, "value") / factor,
            gradient=jax.tree.map(lambda slope: slope / factor, optax.tree.get(kept, "grad")),
            memory=Memory(history=kept, factor=factor),
        )
        # A line search without success starts again from steepest descent with a step of length one: the first line
        # search of a function with a small slope may end, after all its doublings, where the curvature is still
        # negative, and the direction computed from it leads uphill.
        size = optax.tree.norm(iterate.gradient)
        restarted = Memory(history=rule.init(iterate.position), factor=jnp.where(size > 0, 1 / size, factor))
        kept_back = dataclasses.replace(iterate, memory=restarted)
        return jax.tree.map(lambda new, old: jnp.where(candidate.value < value, new, old), candidate, kept_back)

    return Optimizer(begin, advance, gradient_is_zero(tolerance), lambda iterate, idle: idle >= PATIENCE, gradient_norm)


def _scaled(
    evaluate: Callable[[Arrays], tuple[jax.Array, Arrays]], factor: jax.Array, value: jax.Array
) -> Callable[[Arrays], tuple[jax.Array, Arrays]]:
    """Return a function multiplied by a number, with a large value instead of those that are not finite.

    Args:
        evaluate: ``position -> (value, gradient)``.
        factor: the number.
        value: value at the start of the line search, below the large one.
    """

    def scaled(position: Arrays) -> tuple[jax.Array, Arrays]:
        scaled, gradient = evaluate(position)
        finite = jnp.isfinite(scaled) & jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in gradient.values()]))
        large = value + TOO_LARGE * (1 + jnp.abs(value))
        return factor * jnp.where(finite, scaled, large), {
            name: jnp.where(finite, factor * slope, 0) for name, slope in gradient.items()
        }

    return scaled


def _with_gradient(evaluate: Callable[[Arrays], tuple[jax.Array, Arrays]]) -> Callable[[Arrays], jax.Array]:
    """Return ``position -> value`` whose reverse-mode derivative is the gradient computed by ``evaluate``."""

    @jax.custom_vjp
    def value(position: Arrays) -> jax.Array:
        return evaluate(position)[0]

    def backward(gradient: Arrays, cotangent: jax.Array) -> tuple[Arrays]:
        return (jax.tree.map(lambda slope: cotangent * slope, gradient),)

    value.defvjp(evaluate, backward)
    return value
