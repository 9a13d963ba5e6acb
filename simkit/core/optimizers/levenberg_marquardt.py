"""Levenberg-Marquardt: damped Gauss-Newton steps for sums of squares."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import solve_triangular

from simkit.core.formulation import precise_product
from simkit.core.gradient import goes_forward
from simkit.core.optimizers.methods import method
from simkit.core.optimizers.optimizer import Iterate, Optimizer, Problem, gradient_is_zero, gradient_norm
from simkit.core.pytrees import pytree
from simkit.core.simulation import Arrays, Params

# Damping of the first step, relative to the squared lengths of the columns of J.
DAMPING = 1e-3
# Trial steps of one update, each with more damping than the one before: by a factor of 2^36 in all.
TRIALS = 8
# Fraction of the predicted decrease that a step must achieve (Moré 1978).
ACCEPTED = 1e-4
# Updates in a row without improvement, after which rounding is taken to hide all further progress.
PATIENCE = 2


@dataclasses.dataclass(frozen=True)
class SumOfSquares:
    """An objective that is a sum of squares, f(p) = sum_i r_i(p)^2.

    Attributes:
        residuals: ``(params, key) -> array``.
    """

    residuals: Callable[[Params, jax.Array], jax.Array]

    def __call__(self, params: Params, key: jax.Array) -> jax.Array:
        """Return the sum of squares."""
        return jnp.sum(self.residuals(params, key) ** 2)


@pytree
class Linearized:
    """Residuals r + J d around a position, reduced by J = Q R, and the damping of the next step.

    Attributes:
        factor: R, (min(m, n), n) for m residuals of n numbers.
        projected: Q^T r, (min(m, n),).
        scale: largest length of each column of J so far, (n,), the unit of damping.
        damping: lambda, of the step (J^T J + lambda scale^2) d = -J^T r.
        growth: factor by which the next refused trial raises the damping.
    """

    factor: jax.Array
    projected: jax.Array
    scale: jax.Array
    damping: jax.Array
    growth: jax.Array


@pytree
class _Trial:
    count: jax.Array
    accepted: jax.Array
    position: jax.Array
    damping: jax.Array
    growth: jax.Array


@method(evaluates="residuals")
def levenberg_marquardt(*, numbers: int, tolerance: float) -> Optimizer:
    """Return the Levenberg-Marquardt method, for sums of squares of smooth residuals.

        min over d of |r + J d|^2 + lambda |D d|^2,    D_j = largest |J_j| so far

    One update is one step that decreases the sum: the damping lambda is raised until a trial step does. The derivative
    J costs one run in forward mode for each number, or one in reverse mode for each residual.

    Args:
        numbers: how many are optimized; of no effect.
        tolerance: of the gradient, see `simkit.core.optimizers.optimizer.gradient_is_zero`.

    References: Moré, Lecture Notes in Mathematics 630, 105 (1978), doi:10.1007/BFb0067700 (scales); Nielsen, Damping
    parameter in Marquardt's method, IMM-REP-1999-05, Technical University of Denmark (damping).
    """

    def linearized(problem: Problem, position: Arrays, scale: jax.Array | None, damping: jax.Array, growth: jax.Array):
        flat, unravel = ravel_pytree(position)
        r, jacobian = _derived(problem, flat, unravel)
        q, factor = jnp.linalg.qr(jacobian)
        lengths = jnp.linalg.norm(jacobian, axis=0)
        memory = Linearized(
            factor=factor,
            projected=precise_product(q.T, r),
            scale=lengths if scale is None else jnp.maximum(scale, lengths),
            damping=damping,
            growth=growth,
        )
        gradient = unravel(precise_product(2 * jacobian.T, r))
        return Iterate(position=position, value=jnp.sum(r**2), gradient=gradient, memory=memory)

    def begin(problem: Problem, position: Arrays) -> Iterate:
        dtype = ravel_pytree(position)[0].dtype
        return linearized(problem, position, None, jnp.asarray(DAMPING, dtype), jnp.asarray(2, dtype))

    def advance(problem: Problem, iterate: Iterate) -> Iterate:
        flat, unravel = ravel_pytree(iterate.position)
        memory: Linearized = iterate.memory

        def attempt(trial: _Trial) -> _Trial:
            step, predicted = _damped(memory, trial.damping)
            value = jnp.sum(_residuals(problem, unravel(flat + step)) ** 2)
            ratio = (iterate.value - value) / predicted
            # False for a trial that is not finite.
            accepted = (value < iterate.value) & (ratio > ACCEPTED)
            lower = jnp.maximum(1 / 3, 1 - (2 * ratio - 1) ** 3)
            return _Trial(
                count=trial.count + 1,
                accepted=accepted,
                position=jnp.where(accepted, flat + step, flat),
                damping=trial.damping * jnp.where(accepted, lower, trial.growth).astype(flat.dtype),
                growth=jnp.where(accepted, 2, 2 * trial.growth).astype(flat.dtype),
            )

        first = _Trial(
            count=jnp.int32(0),
            accepted=jnp.bool_(False),
            position=flat,
            damping=memory.damping,
            growth=memory.growth,
        )
        last = jax.lax.while_loop(lambda trial: (trial.count < TRIALS) & ~trial.accepted, attempt, first)
        return linearized(problem, unravel(last.position), memory.scale, last.damping, jnp.asarray(2, flat.dtype))

    return Optimizer(begin, advance, gradient_is_zero(tolerance), lambda iterate, idle: idle >= PATIENCE, gradient_norm)


def _residuals(problem: Problem, position: Arrays) -> jax.Array:
    assert problem.residuals is not None  # refused before
    return problem.residuals(position).ravel()


def _derived(problem: Problem, flat: jax.Array, unravel: Callable[[jax.Array], Arrays]) -> tuple[jax.Array, jax.Array]:
    """Return the residuals (m,) and their derivatives (m, n)."""

    def twice(flat: jax.Array) -> tuple[jax.Array, jax.Array]:
        r = _residuals(problem, unravel(flat))
        return r, r

    count = jax.eval_shape(twice, flat)[0].size
    derive = jax.jacfwd if goes_forward(problem.mode, flat.size, count) else jax.jacrev
    jacobian, r = derive(twice, has_aux=True)(flat)
    return r, jacobian


def _damped(memory: Linearized, damping: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the damped step (n,) and the decrease of the sum of squares that it predicts."""
    scale = jnp.where(memory.scale > 0, memory.scale, 1)
    q, triangle = jnp.linalg.qr(jnp.concatenate([memory.factor, jnp.diag(jnp.sqrt(damping) * scale)]))
    step = -solve_triangular(triangle, precise_product(q[: len(memory.projected)].T, memory.projected))
    # |r|^2 - |r + J d|^2, from the normal equations, without its cancellation.
    return step, jnp.sum(precise_product(memory.factor, step) ** 2) + 2 * damping * jnp.sum((scale * step) ** 2)
