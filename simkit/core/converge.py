"""Run to convergence, with the derivative of the solution instead of the derivative of the iteration."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.compilation import compiled
from simkit.core.pytree import pytree
from simkit.core.simulation import Equilibrium, Params, Simulation, State
from simkit.core.status import Status, status_of, stops
from simkit.core.symmetric_solve import solve_symmetric


@pytree
class Converged:
    """Where a simulation came to rest.

    Attributes:
        state: the last state.
        status: int32, a code of `simkit.core.status.Status` that stops, or ``MAX_STEPS``.
        iterations: int32, number of steps taken.
    """

    state: State
    status: jax.Array
    iterations: jax.Array


def converge(simulation: Simulation, max_steps: int) -> Callable[[State, Params], Converged]:
    """Return ``(state, params) -> Converged`` that steps until its status stops it: once to ``max_steps`` times.

    The derivative with respect to ``params`` is the implicit one. With r(x, p) = 0 at the solution x(p),
    ``dx/dp = -(dr/dx)^-1 dr/dp``, by conjugate gradients on Hessian-vector products with the zero modes projected
    out. It does not depend on the path or the number of iterations. Where it is not defined (the run did not
    converge, or its solution is a saddle) the derivative is NaN rather than wrong. Under ``vmap`` every member stops
    on its own.

    Args:
        simulation: one that converges; without ``equilibrium`` its derivative is zero by construction: refused.
        max_steps: largest number of steps.

    Raises:
        ValueError: if the simulation does not converge, or has no ``equilibrium``.
    """
    equilibrium, status_after = simulation.equilibrium, status_of(simulation)
    if not simulation.converges or equilibrium is None:
        raise ValueError(
            "converge needs a simulation with converges=True and an equilibrium; use trajectory for this one"
        )

    def run(state: State, params: Params) -> Converged:
        fixed = jax.lax.stop_gradient(params)

        # The first step is taken unasked: a state relaxed under other parameters must not count as done under these.
        def unfinished(carry: tuple[State, jax.Array, jax.Array]) -> jax.Array:
            _, status, iterations = carry
            return ~stops(status) & (iterations < max_steps)

        def step(carry: tuple[State, jax.Array, jax.Array]) -> tuple[State, jax.Array, jax.Array]:
            state, _, iterations = carry
            state = simulation.step(state, fixed)
            return state, status_after(state, fixed), iterations + 1

        start = jax.lax.stop_gradient(state), jnp.int32(Status.OK), jnp.int32(0)
        state, status, iterations = jax.lax.while_loop(unfinished, step, start)
        status = jnp.where(stops(status), status, jnp.int32(Status.MAX_STEPS))
        state = differentiable_solution(equilibrium, state, params, status)
        return Converged(state=state, status=status, iterations=iterations)

    return compiled(run)


def differentiable_solution(equilibrium: Equilibrium, state: State, params: Params, status: jax.Array) -> State:
    """Return ``state`` with the implicit derivative of its unknowns with respect to ``params``.

    Args:
        equilibrium: what the unknowns solve.
        state: a state at rest.
        params: those it came to rest under.
        status: a code of `simkit.core.status.Status`; the derivative is NaN unless it is ``CONVERGED``.
    """
    defined = status == Status.CONVERGED
    # On both sides of the residual, which may leave out unknowns (rattlers) and a NaN with them.
    given = _differentiable_where(defined, params)
    solution = jax.lax.custom_root(
        lambda x: equilibrium.residual(x, given),
        equilibrium.unknowns(state),
        solve=lambda _, x: x,
        tangent_solve=lambda jacobian, b: solve_symmetric(jacobian, b, equilibrium.project),
    )
    return equilibrium.replace(state, _differentiable_where(defined, solution))


@jax.custom_jvp
def _differentiable_where(defined: jax.Array, x: Any) -> Any:
    """Return ``x`` with a derivative that is NaN unless ``defined``: an unfinished run has no implicit derivative."""
    del defined
    return x


@_differentiable_where.defjvp
def _differentiable_where_jvp(primals: tuple[jax.Array, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    defined, x = primals
    return x, jax.tree.map(lambda tangent: tangent * jnp.where(defined, 1.0, jnp.nan), tangents[1])
