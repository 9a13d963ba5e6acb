"""Run to convergence, with the derivative of the solution instead of the derivative of the iteration."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from simkit.core.pytree import pytree
from simkit.core.simulation import Params, Simulation, State
from simkit.core.status import Status, is_finite


@pytree
class Converged:
    """Where a simulation came to rest.

    Attributes:
        state: the last state.
        status: int32, ``CONVERGED``, ``MAX_STEPS`` or ``NON_FINITE`` of `simkit.core.status.Status`.
        iterations: int32, number of steps taken.
    """

    state: State
    status: jax.Array
    iterations: jax.Array


def converge(simulation: Simulation, max_steps: int) -> Callable[[State, Params], Converged]:
    """Return ``(state, params) -> Converged`` that steps until ``done``, at least once and at most ``max_steps`` times.

    The derivative with respect to ``params`` is the implicit one. With r(x, p) = 0 at the solution x(p),
    ``dx/dp = -(dr/dx)^-1 dr/dp``, by conjugate gradients on Hessian-vector products with the zero modes projected
    out. It does not depend on the path or the number of iterations. Where it is not defined (the run did not
    converge, or its solution is a saddle) the derivative is NaN rather than wrong. Under ``vmap`` every member stops
    on its own.

    Args:
        simulation: one with ``done``; without ``equilibrium`` its derivative is zero by construction, so it is refused.
        max_steps: largest number of steps.

    Raises:
        ValueError: if the simulation has no ``done`` or no ``equilibrium``.
    """
    done, equilibrium = simulation.done, simulation.equilibrium
    if done is None or equilibrium is None:
        raise ValueError("converge needs a simulation with both done and equilibrium; use trajectory for this one")

    def run(state: State, params: Params) -> Converged:
        fixed = jax.lax.stop_gradient(params)

        # The first step is taken unasked: a state relaxed under other parameters must not count as done under these.
        def unfinished(carry: tuple[State, jax.Array]) -> jax.Array:
            state, iterations = carry
            return (iterations == 0) | (~done(state, fixed) & is_finite(state) & (iterations < max_steps))

        def step(carry: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
            state, iterations = carry
            return simulation.step(state, fixed), iterations + 1

        state, iterations = jax.lax.while_loop(unfinished, step, (jax.lax.stop_gradient(state), jnp.int32(0)))
        status = jnp.where(done(state, fixed), jnp.int32(Status.CONVERGED), jnp.int32(Status.MAX_STEPS))
        status = jnp.where(is_finite(state), status, jnp.int32(Status.NON_FINITE))
        solution = jax.lax.custom_root(
            lambda x: equilibrium.residual(x, params),
            equilibrium.unknowns(state),
            solve=lambda _, x: x,
            tangent_solve=lambda jacobian, b: _solve_symmetric(jacobian, b, equilibrium.project),
        )
        solution = _differentiable_where(status == Status.CONVERGED, solution)
        return Converged(state=equilibrium.replace(state, solution), status=status, iterations=iterations)

    return run


@jax.custom_jvp
def _differentiable_where(defined: jax.Array, x: Any) -> Any:
    """Return ``x`` with a derivative that is NaN unless ``defined``: an unfinished run has no implicit derivative."""
    del defined
    return x


@_differentiable_where.defjvp
def _differentiable_where_jvp(primals: tuple[jax.Array, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    defined, x = primals
    return x, jax.tree.map(lambda tangent: tangent * jnp.where(defined, 1.0, jnp.nan), tangents[1])


def _solve_symmetric(matvec: Callable[[Any], Any], b: Any, project: Callable[[Any], Any]) -> Any:
    """Solve ``A x = b`` on the complement of the zero modes that ``project`` removes."""

    def regular(x: Any) -> Any:
        inside = project(x)
        # The identity on the zero modes makes the operator definite without touching the rest of the spectrum.
        return jax.tree.map(lambda a, x, i: a + (x - i), project(matvec(inside)), x, inside)

    return jax.lax.custom_linear_solve(regular, project(b), _conjugate_gradients, symmetric=True)


def _conjugate_gradients(matvec: Callable[[Any], Any], b: Any) -> Any:
    """Solve ``A x = b`` for a positive definite ``A``; NaN if a direction of no or negative curvature turns up.

    Hestenes and Stiefel, J. Res. NBS 49, 409 (1952), doi:10.6028/jres.049.044.
    """
    flat, unflatten = ravel_pytree(b)
    # Far below the accuracy asked of a derivative (1e-5), far above what round-off lets the residual reach.
    tolerance = jnp.finfo(flat.dtype).eps ** 0.75 * jnp.linalg.norm(flat)

    def apply(x: jax.Array) -> jax.Array:
        return ravel_pytree(matvec(unflatten(x)))[0]

    def unfinished(carry: tuple[jax.Array, ...]) -> jax.Array:
        _, _, _, square, iterations, definite = carry
        return (jnp.sqrt(square) > tolerance) & definite & (iterations < 10 * flat.size)

    def step(carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        x, residual, direction, square, iterations, definite = carry
        image = apply(direction)
        curvature = direction @ image
        alpha = square / curvature
        x, residual = x + alpha * direction, residual - alpha * image
        next_square = residual @ residual
        direction = residual + next_square / square * direction
        return x, residual, direction, next_square, iterations + 1, definite & (curvature > 0)

    start = (jnp.zeros_like(flat), flat, flat, flat @ flat, jnp.int32(0), jnp.bool_(True))
    x, _, _, square, _, definite = jax.lax.while_loop(unfinished, step, start)
    solved = definite & (jnp.sqrt(square) <= tolerance)
    return unflatten(jnp.where(solved, x, jnp.nan))
