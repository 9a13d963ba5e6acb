"""Runs to convergence with the implicit derivative of the solution, repeated with larger buffers after an overflow."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.buffers import enlarged, overflow_of, sized_like
from simkit.core.compilation import compiled
from simkit.core.implicit import solve_symmetric
from simkit.core.pytrees import pytree
from simkit.core.simulation import Equilibrium, Params, Simulation, State
from simkit.core.status import Status, status_of, stops


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
    converge, or its solution is a saddle) the derivative is NaN rather than wrong; at saddles it is defined, by MINRES,
    if the equilibrium has ``is_definite=False``. Under ``vmap`` every member stops independently.

    Args:
        simulation: one that converges and has an ``equilibrium``, without which its derivative would be zero.
        max_steps: largest number of steps.

    Raises:
        ValueError: if the simulation does not converge, or has no ``equilibrium``.

    Example:
        >>> dimer = molecular.system(
        ...     particles={"atom": {}},
        ...     start={"positions": [[0, 0, 0], [1.3, 0, 0]]},
        ...     interactions=[{"potential": "lennard_jones"}],
        ...     relax={"force_tolerance": 1e-5},
        ...     parameters={"epsilon": 1.0, "sigma": 1.0},
        ... )
        >>> end = simkit.converge(dimer, 100)(dimer.init(dimer.params, jax.random.key(0)), dimer.params)
        >>> simkit.Status(int(end.status)).name, round(float(dimer.diagnose(end.state, dimer.params)["energy"]), 4)
        ('CONVERGED', -1.0)
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
    guarded = _differentiable_where(defined, params)
    solution = jax.lax.custom_root(
        lambda x: equilibrium.residual(x, guarded),
        equilibrium.unknowns(state),
        solve=lambda _, x: x,
        tangent_solve=lambda jacobian, b: solve_symmetric(
            jacobian, b, equilibrium.project, is_definite=equilibrium.is_definite
        ),
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


def with_room[T](
    simulation: Simulation,
    attempt: Callable[[Simulation, State], tuple[State, jax.Array | np.ndarray, T]],
    start: State = None,
) -> T:
    """Return the result of an attempt, repeated with larger buffers as long as one overflows.

    Buffers of compiled code have fixed sizes, so a run can only stop with the status ``BUFFER_OVERFLOW``.

    Args:
        simulation: the simulation; without ``sized_like`` there is one attempt.
        attempt: ``(simulation, start) -> (state, status, result)``: the last state, and the status codes of the run, of
            any shape.
        start: state from which the attempt continues, without overflow; ``None`` if it begins by ``init``.
    """
    while True:
        state, status, result = attempt(simulation, start)
        can_grow = simulation.sized_like is not None and bool(np.any(np.asarray(status) == Status.BUFFER_OVERFLOW))
        # The status may come from the simulation itself, without an overflowed buffer that could be enlarged.
        if not can_grow or not bool(np.any(overflow_of(state))):
            return result
        example = enlarged(state)
        simulation = simulation.with_buffers_of(example)
        start = start if start is None else sized_like(start, example)


def converge_with_growth(
    simulation: Simulation, max_steps: int
) -> Callable[[Params, jax.Array], tuple[Simulation, Converged]]:
    """Return ``(params, key) -> (simulation, Converged)`` that converges from the initial state, enlarging buffers.

    The returned simulation has buffers of sufficient size: use it to converge again nearby, or to differentiate.

    Args:
        simulation: one that converges, with an ``equilibrium``.
        max_steps: largest number of steps.

    Example:
        >>> dimer = molecular.system(
        ...     particles={"atom": {}},
        ...     start={"positions": [[0, 0, 0], [1.3, 0, 0]]},
        ...     interactions=[{"potential": "lennard_jones"}],
        ...     relax={"force_tolerance": 1e-5},
        ...     parameters={"epsilon": 1.0, "sigma": 1.0},
        ... )
        >>> dimer, end = core.converge_with_growth(dimer, 100)(dimer.params, jax.random.key(0))
        >>> simkit.Status(int(end.status)).name, int(end.state.descent.iteration) < 100
        ('CONVERGED', True)
    """

    def run(params: Params, key: jax.Array) -> tuple[Simulation, Converged]:
        def attempt(simulation: Simulation, _: State) -> tuple[State, jax.Array, tuple[Simulation, Converged]]:
            result = simulation.programs.cached(
                ("converge", max_steps), lambda: jax.jit(_converge_from_init(simulation.unshared(), max_steps))
            )(params, key)
            return result.state, result.status, (simulation, result)

        return with_room(simulation, attempt)

    return run


def _converge_from_init(simulation: Simulation, max_steps: int) -> Callable[[Params, jax.Array], Converged]:
    return lambda params, key: converge(simulation, max_steps)(simulation.init(params, key), params)
