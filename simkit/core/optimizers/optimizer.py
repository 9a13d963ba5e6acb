"""Contract of a method of optimization: a start and an update, as pure functions of a problem."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.bounded import Bounds, descends_inward, rate_of
from simkit.core.compilation import compiled
from simkit.core.gradient import Mode, value_and_derivative
from simkit.core.pytrees import pytree
from simkit.core.simulation import Arrays


@dataclasses.dataclass(frozen=True)
class Problem:
    """A function to minimize over unbounded coordinates ``{path: z}``, see `simkit.core.bounded`.

    Attributes:
        value: ``position -> scalar``.
        residuals: ``position -> (m,)``, of which ``value`` is the sum of squares; ``None`` where it is not one.
        key: random key of the objective.
        mode: mode of differentiation, see `simkit.core.gradient.with_derivative`.
    """

    value: Callable[[Arrays], jax.Array]
    residuals: Callable[[Arrays], jax.Array] | None
    key: jax.Array
    mode: Mode

    def evaluate(self, position: Arrays) -> tuple[jax.Array, Arrays]:
        """Return the value and its gradient."""

        def derive(position: Arrays) -> tuple[jax.Array, Arrays]:
            value, _, gradient = value_and_derivative(lambda z: (self.value(z), None), position, self.mode)
            return value, gradient

        return compiled(derive)(position)


@pytree
class Iterate:
    """Result of an update of a method.

    Attributes:
        position: unbounded coordinates by path.
        value: minimized function at ``position``.
        gradient: its derivative there; empty for a method without derivatives.
        memory: whatever else the method carries to its next update.
    """

    position: Arrays
    value: jax.Array
    gradient: Arrays
    memory: Any


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """A method of optimization.

    Attributes:
        begin: ``(problem, position) -> iterate`` at the start.
        advance: ``(problem, iterate) -> iterate``, one update.
        converged: ``(iterate, idle, bounds) -> bool``, with ``idle`` the number of updates since the last improvement.
        stalled: ``(iterate, idle) -> bool``, whether rounding hides all further progress.
        diagnose: ``iterate -> {name: scalar}``, diagnostics of this method.
        improvement: smallest decrease that counts as an improvement, relative to ``1 + |value|``; round-off at least.
    """

    begin: Callable[[Problem, Arrays], Iterate]
    advance: Callable[[Problem, Iterate], Iterate]
    converged: Callable[[Iterate, jax.Array, Bounds], jax.Array]
    stalled: Callable[[Iterate, jax.Array], jax.Array]
    diagnose: Callable[[Iterate], Arrays]
    improvement: float = 0.0


def gradient_is_zero(tolerance: float) -> Callable[[Iterate, jax.Array, Bounds], jax.Array]:
    """Return a test of ``max(|z|, 1) |d value/dz| <= tolerance (1 + |value|)`` for every component.

    Near a bound dp/dz is small, so a small gradient counts only if it leads out of the bounds; one that leads inward is
    first divided by dp/dz relative to mid-interval. The gradient is relative to value and position, so that an
    objective that decreases without limit does not converge.

    Args:
        tolerance: see above.

    Reference: Dennis and Schnabel, Numerical Methods for Unconstrained Optimization (1996), section 7.2.
    """

    def converged(iterate: Iterate, idle: jax.Array, bounds: Bounds) -> jax.Array:
        scaled = [
            jnp.max(
                jnp.maximum(jnp.abs(z), 1.0)
                * jnp.abs(slope)
                / jnp.where(descends_inward(z, slope, bounds, name), rate_of(z, bounds, name), 1)
            )
            for name, slope in iterate.gradient.items()
            for z in [iterate.position[name]]
        ]
        return jnp.stack(scaled).max() <= tolerance * (1.0 + jnp.abs(iterate.value))

    return converged


def gradient_norm(iterate: Iterate) -> Arrays:
    """Return the largest component of the gradient, as the diagnostic ``gradient_norm``."""
    largest = [jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(iterate.gradient)]
    return {"gradient_norm": jnp.stack(largest).max()}
