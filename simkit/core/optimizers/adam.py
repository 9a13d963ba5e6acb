"""Adam: a step of fixed rate along the gradient, averaged and scaled by component."""

import jax
import jax.numpy as jnp
import optax

from simkit.core.bounded import Bounds
from simkit.core.optimizers.optimizer import Iterate, Optimizer, Problem, gradient_is_zero, gradient_norm
from simkit.core.simulation import Arrays


def adam(learning_rate: float, tolerance: float) -> Optimizer:
    """Return the method Adam, for noisy derivatives.

    Args:
        learning_rate: step in unbounded coordinates; good values are 0.01 to 0.3.
        tolerance: of the gradient, see `simkit.core.optimizers.optimizer.gradient_is_zero`.

    Reference: Kingma and Ba, arXiv:1412.6980.
    """
    rule = optax.adam(learning_rate)

    def begin(problem: Problem, position: Arrays) -> Iterate:
        value, gradient = problem.evaluate(position)
        return Iterate(position=position, value=value, gradient=gradient, memory=rule.init(position))

    def advance(problem: Problem, iterate: Iterate) -> Iterate:
        updates, memory = rule.update(iterate.gradient, iterate.memory, iterate.position)
        position: Arrays = jax.tree.map(jnp.add, iterate.position, updates)
        value, gradient = problem.evaluate(position)
        return Iterate(position=position, value=value, gradient=gradient, memory=memory)

    def converged(iterate: Iterate, idle: jax.Array, bounds: Bounds) -> jax.Array:
        return gradient_is_zero(iterate, bounds, tolerance)

    # Its values go up and down, so that updates without improvement prove nothing.
    return Optimizer(begin, advance, converged, lambda iterate, idle: jnp.bool_(False), gradient_norm)
