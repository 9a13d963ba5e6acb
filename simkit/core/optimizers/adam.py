"""Adam: a step of fixed rate along the gradient, averaged and scaled by component."""

import jax
import jax.numpy as jnp
import optax

from simkit.core.optimizers.methods import method
from simkit.core.optimizers.optimizer import Iterate, Optimizer, Problem, gradient_is_zero, gradient_norm
from simkit.core.parameter import POSITIVE
from simkit.core.settings import number
from simkit.core.simulation import Arrays


@method(keys={"learning_rate": number("step in unbounded coordinates", 0.1, (POSITIVE[0], 10.0))})
def adam(*, numbers: int, tolerance: float, learning_rate: float) -> Optimizer:
    """Return the method Adam, for noisy derivatives.

    Args:
        numbers: how many are optimized; of no effect.
        tolerance: of the gradient, see `simkit.core.optimizers.optimizer.gradient_is_zero`.
        learning_rate: step in unbounded coordinates; good values are 0.01 to 0.3.

    Reference: Kingma and Ba, arXiv:1412.6980.
    """
    del numbers
    rule = optax.adam(learning_rate)

    def begin(problem: Problem, position: Arrays) -> Iterate:
        value, gradient = problem.evaluate(position)
        return Iterate(position=position, value=value, gradient=gradient, memory=rule.init(position))

    def advance(problem: Problem, iterate: Iterate) -> Iterate:
        updates, memory = rule.update(iterate.gradient, iterate.memory, iterate.position)
        position: Arrays = jax.tree.map(jnp.add, iterate.position, updates)
        value, gradient = problem.evaluate(position)
        return Iterate(position=position, value=value, gradient=gradient, memory=memory)

    # Its values go up and down, so that updates without improvement prove nothing.
    return Optimizer(begin, advance, gradient_is_zero(tolerance), lambda iterate, idle: jnp.bool_(False), gradient_norm)
