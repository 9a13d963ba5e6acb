"""Runs to convergence, with the implicit derivative of the solution."""

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
    """Result of a run to convergence.

    Attributes:
        state: the last state.
        status: int32, a code of `simkit.core.status.Status`: one that stops a run, or ``MAX_STEPS``.
        iterations: int32, number of steps taken.
    """

    state: State
    status: jax.Array
    iterations: jax.Array


def converge(simulation: Simulation, max_steps: int) -> Callable[[State, Params], Converged]:
    """Return ``(state, params) -> Converged`` that takes 1 to ``max_steps`` steps, until the status stops it.

    The derivative with respect to ``params`` is the implicit one. With r(x, p) = 0 at the solution x(p),
    ``dx/dp = -(dr/dx)^-1 dr/dp``, by conjugate gradients on Hessian-vector products with the zero modes projected
    out. It does not depend on the path or the number of iterations. Where it is not defined (the run did not
    converge, or its solution is a saddle) the derivative is NaN rather than wrong. Under ``vmap`` every member stops
    independently.

    Args:
        simulation: one that converges and has an ``equilibrium``, without which its derivative would be zero.
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

        # One step before the status is evaluated: a state relaxed under other parameters is not yet converged here.
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
        equilibrium: equations of the unknowns.
        state: a converged state.
        params: parameters under which it converged.
        status: a code of `simkit.core.status.Status`; the derivative is NaN unless it is ``CONVERGED``.
    """
    defined = status == Status.CONVERGED
    # Applied to params and to the solution: the residual may omit unknowns (rattlers), and a NaN with them.
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
    """Return ``x`` with a derivative that is NaN unless ``defined``."""
    del defined
    return x


@_differentiable_where.defjvp
def _differentiable_where_jvp(primals: tuple[jax.Array, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    defined, x = primals
    return x, jax.tree.map(lambda tangent: tangent * jnp.where(defined, 1.0, jnp.nan), tangents[1])
