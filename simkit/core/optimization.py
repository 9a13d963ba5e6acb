"""Optimization as a simulation whose step is one update of the parameters."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core import paths
from simkit.core.bounded import Bounds, bounds_of, nearest_side, side_of, to_bounded, to_unbounded
from simkit.core.gradient import Function, Mode, check_mode, differentiable
from simkit.core.objective import Objective
from simkit.core.optimizers.cma_es import batched_by_members
from simkit.core.optimizers.methods import OPTIMIZERS, check_options, chosen, evaluated, options_of
from simkit.core.optimizers.optimizer import Iterate, Problem
from simkit.core.pytrees import pytree
from simkit.core.simulation import Arrays, Params, Quantity, Simulation, as_arrays
from simkit.core.status import Status, is_finite
from simkit.errors import UserError, untaken

QUANTITIES = {
    "iteration": Quantity("1", "updates of the parameters"),
    "loss": Quantity("1", "the objective"),
    "best_loss": Quantity("1", "the best value of the objective so far"),
    "gradient_norm": Quantity("1", "largest component of the gradient in unbounded coordinates"),
    "search_width": Quantity("1", "largest standard deviation of the samples in unbounded coordinates, relative"),
}
# Smallest relative decrease that counts as an improvement, in units of round-off.
IMPROVEMENT = 2.0


@pytree
class OptimizationState:
    """The state of an optimization.

    Attributes:
        position: optimized parameters by path in unbounded coordinates, see `simkit.core.bounded`.
        optimizer: memory of the method, see `simkit.core.optimizers.optimizer.Iterate`.
        value: minimized function at ``position``, the negative objective if it is maximized.
        gradient: derivative of ``value`` with respect to ``position``; empty for a method without derivatives.
        first: ``gradient`` at the start.
        best_value: smallest ``value`` so far.
        best: parameters (in their own units) at ``best_value``.
        held: active bound of each entry of ``best``, int32: -1 the lower, 1 the upper, 0 none.
        iteration: int32, number of updates.
        idle: int32, number of updates since ``best_value`` last improved, see `Optimizer.improvement`.
        key: random key of the objective, the same at every iteration.
    """

    position: Arrays
    optimizer: Any
    value: jax.Array
    gradient: Arrays
    first: Arrays
    best_value: jax.Array
    best: Arrays
    held: Arrays
    iteration: jax.Array
    idle: jax.Array
    key: jax.Array

    @property
    def iterate(self) -> Iterate:
        """The part that the method reads."""
        return Iterate(position=self.position, value=self.value, gradient=self.gradient, memory=self.optimizer)


def optimization(
    objective: Function,
    params: Params,
    wrt: str | Sequence[str],
    bounds: Bounds,
    *,
    method: str = "lbfgs",
    maximize: bool = False,
    learning_rate: float | None = None,
    tolerance: float = 1e-6,
    mode: Mode = "shortest",
) -> Simulation:
    """Return the optimization of an objective as a `Simulation`, to be run, shown and resumed like any other.

    Each bounded parameter p in (a, b) is replaced by z with ``p = a + (b - a) / (1 + exp(-z))``, so that no step
    leaves the bounds and one learning rate suits parameters of any magnitude. It has converged when
    ``max(|z|, 1) |d value/dz| <= tolerance * (1 + |value|)`` for every component; a component that leads away from a
    bound is first divided by dp/dz relative to mid-interval, which is small near the bound. Without derivatives
    convergence is that of `simkit.core.optimizers.cma_es.cma_es`. It has stalled when several updates in a row find
    nothing better in its precision.

    Args:
        objective: ``(params, key) -> scalar``.
        params: starting point; parameters not in ``wrt`` keep these values.
        wrt: paths of the parameters to optimize; a branch stands for all below it.
        bounds: ``{path: (low, high)}`` of parameters and branches; either may be infinite, and parameters without
            bounds are unbounded.
        method: ``"lbfgs"`` (smooth objectives; line search), ``"adam"`` (noisy derivatives), ``"levenberg_marquardt"``
            (sums of squares: a `simkit.core.optimizers.levenberg_marquardt.SumOfSquares`, or an `Objective` that is
            one), ``"cma_es"`` (no derivatives; needs evosax), or that of another package. Options follow a colon:
            ``"adam:learning_rate=0.05"``.
        maximize: whether to maximize instead of minimize.
        learning_rate: learning rate of Adam, in units of z; good values are 0.01 to 0.3. ``None`` for 0.1.
        tolerance: see above.
        mode: mode of differentiation, see `simkit.core.gradient.with_derivative`.

    Returns:
        A simulation whose diagnostics are ``iteration``, ``loss``, ``best_loss``, ``gradient_norm`` (of CMA-ES
        ``search_width``) and every scalar parameter in ``wrt``, and whose frames hold the best parameters so far,
        ``best_PATH``, and their active bounds, ``bound_PATH``: -1 the lower, 1 the upper, 0 none.

    Raises:
        UserError: if a name is not a parameter or is the name of a diagnostic, ``wrt`` is empty, a method or mode is
            unknown, a learning rate is given to another method than Adam, or Levenberg-Marquardt is to maximize, or to
            minimize what is not a sum of squares.
    """
    known = paths.leaves(as_arrays(params))
    names = differentiable(wrt, known)
    for name in names:
        untaken(name, QUANTITIES, f"params.{name}")
    settings = chosen(method, learning_rate=learning_rate)
    name = settings["method"]
    check_mode(mode)
    check_options(name, maximize=maximize, mode=mode)
    bounds = bounds_of(names, bounds, known)
    sign = -1.0 if maximize else 1.0
    numbers = sum(jnp.size(known[name]) for name in names)
    optimizer = OPTIMIZERS.resolve(name)(numbers=numbers, tolerance=tolerance, **options_of(settings))
    objective, residuals = _prepared(objective, name, params)

    def problem(params: Params, key: jax.Array) -> Problem:
        def at(position: Arrays) -> Params:
            return paths.replaced(params, to_bounded(position, bounds))

        return Problem(
            value=lambda position: sign * objective(at(position), key),
            residuals=residuals and (lambda position: residuals(at(position), key)),
            key=key,
            mode=mode,
        )

    def start_position(params: Params) -> Arrays:
        leaves = paths.leaves(params)
        return to_unbounded({name: leaves[name] for name in names}, bounds)

    def active_bounds(iterate: Iterate, start: Arrays, first: Arrays) -> Arrays:
        if not iterate.gradient:
            return {name: nearest_side(iterate.position[name], bounds, name) for name in names}
        return {
            name: side_of(iterate.position[name], iterate.gradient[name], start[name], first[name], bounds, name)
            for name in names
        }

    def init(params: Params, key: jax.Array) -> OptimizationState:
        start = start_position(params)
        iterate = optimizer.begin(problem(params, key), start)
        return OptimizationState(
            position=iterate.position,
            optimizer=jax.tree.map(jnp.asarray, iterate.memory),
            value=iterate.value,
            gradient=iterate.gradient,
            first=iterate.gradient,
            best_value=iterate.value,
            best=to_bounded(iterate.position, bounds),
            held=active_bounds(iterate, start, iterate.gradient),
            iteration=jnp.int32(0),
            idle=jnp.int32(0),
            key=key,
        )

    def step(state: OptimizationState, params: Params) -> OptimizationState:
        iterate = optimizer.advance(problem(params, state.key), state.iterate)
        better = iterate.value < state.best_value
        rounding = IMPROVEMENT * jnp.finfo(state.value.dtype).eps * jnp.abs(state.best_value)
        least = jnp.maximum(rounding, optimizer.improvement * (1 + jnp.abs(state.best_value)))
        improved = state.best_value - iterate.value > least
        active = active_bounds(iterate, start_position(params), state.first)

        def chosen(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where(better, new, old)

        return _like(
            state,
            OptimizationState(
                position=iterate.position,
                optimizer=iterate.memory,
                value=iterate.value,
                gradient=iterate.gradient,
                first=state.first,
                best_value=chosen(iterate.value, state.best_value),
                best=jax.tree.map(chosen, to_bounded(iterate.position, bounds), state.best),
                held=jax.tree.map(chosen, active, state.held),
                iteration=state.iteration + 1,
                idle=jnp.where(improved, 0, state.idle + 1),
                key=state.key,
            ),
        )

    def diagnose(state: OptimizationState, params: Params) -> Arrays:
        scalars = {name: value for name, value in to_bounded(state.position, bounds).items() if value.ndim == 0}
        return {
            "iteration": state.iteration,
            "loss": sign * state.value,
            "best_loss": sign * state.best_value,
            **optimizer.diagnose(state.iterate),
            **scalars,
        }

    def status(state: OptimizationState, params: Params) -> jax.Array:
        iterate = state.iterate
        # The state of an optimizer may contain infinities; only the objective and its gradient have to be finite.
        finite = is_finite((state.value, state.gradient))
        code = jnp.where(optimizer.stalled(iterate, state.idle), jnp.int32(Status.STALLED), jnp.int32(Status.OK))
        code = jnp.where(optimizer.converged(iterate, state.idle, bounds), jnp.int32(Status.CONVERGED), code)
        return jnp.where(finite, code, jnp.int32(Status.NON_FINITE))

    return Simulation(
        init=init,
        step=step,
        observe=lambda state, params: {
            **{f"best_{name}": value for name, value in state.best.items()},
            **{f"bound_{name}": side for name, side in state.held.items()},
        },
        diagnose=diagnose,
        params=params,
        converges=True,
        status=status,
        quantities=QUANTITIES,
    )


def _prepared(objective: Function, method: str, params: Params) -> tuple[Function, Any]:
    """Return the objective as the method evaluates it, and its residuals where the method needs them.

    Raises:
        UserError: if residuals are needed and the objective is not a sum of squares.
    """
    evaluates = evaluated(method)
    if evaluates == "values" and isinstance(objective, Objective):
        return dataclasses.replace(objective, simulation=batched_by_members(objective.simulation)), None
    if evaluates != "residuals":
        return objective, None
    residuals = getattr(objective, "residuals", None)
    if residuals is None:
        raise UserError(
            f"{method} needs the residuals of a sum of squares; give a SumOfSquares(residuals), see "
            "simkit.core.optimizers.levenberg_marquardt"
        )
    jax.eval_shape(residuals, params, jax.eval_shape(jax.random.key, 0))
    return objective, residuals


def _like[T](example: T, tree: T) -> T:
    """Cast every leaf to the dtype of ``example``: optimizers promote and weaken dtypes between updates."""

    def cast(old: jax.Array, new: jax.Array) -> jax.Array:
        return new if jnp.issubdtype(old.dtype, jax.dtypes.extended) else jnp.asarray(new).astype(old.dtype)

    return jax.tree.map(cast, example, tree)
