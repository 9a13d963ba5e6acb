"""Optimization as a simulation whose step is one update of the parameters."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax

from simkit.core import paths
from simkit.core.bounded import Bounds, bounds_of, descends_inward, rate_of, side_of, to_bounded, to_unbounded
from simkit.core.compilation import compiled
from simkit.core.gradient import Function, Mode, value_and_derivative
from simkit.core.pytree import pytree
from simkit.core.simulation import Arrays, Params, Quantity, Simulation
from simkit.core.status import Status, is_finite
from simkit.errors import UserError

type Method = Literal["adam", "lbfgs"]

QUANTITIES = {
    "iteration": Quantity("1", "updates of the parameters"),
    "loss": Quantity("1", "the objective"),
    "best_loss": Quantity("1", "the best value of the objective so far"),
    "gradient_norm": Quantity("1", "largest component of the gradient in unbounded coordinates"),
}


@pytree
class OptimizationState:
    """The state of an optimization.

    Attributes:
        position: optimized parameters by path in unbounded coordinates, see `simkit.core.bounded`.
        optimizer: state of the optax optimizer.
        value: minimized function at ``position``, the negative objective if it is maximized.
        gradient: derivative of ``value`` with respect to ``position``.
        first: ``gradient`` at the start.
        best_value: smallest ``value`` so far.
        best: parameters (in their own units) at ``best_value``.
        held: active bound of each entry of ``best``, int32: -1 the lower, 1 the upper, 0 none.
        iteration: int32, number of updates.
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
    key: jax.Array


def optimization(
    objective: Function,
    params: Params,
    wrt: str | Sequence[str],
    bounds: Bounds,
    *,
    method: Method = "lbfgs",
    maximize: bool = False,
    learning_rate: float | None = None,
    tolerance: float = 1e-6,
    mode: Mode = "shortest",
) -> Simulation:
    """Return the optimization of an objective as a `Simulation`, to be run, shown and resumed like any other.

    Each bounded parameter p in (a, b) is replaced by z with ``p = a + (b - a) / (1 + exp(-z))``, so that no step
    leaves the bounds and one learning rate suits parameters of any magnitude. It has converged when
    ``max(|z|, 1) |d value/dz| <= tolerance * (1 + |value|)`` for every component; a component that leads away from a
    bound is first divided by dp/dz relative to mid-interval, which is small near the bound.

    Args:
        objective: ``(params, key) -> scalar``.
        params: starting point; parameters not in ``wrt`` keep these values.
        wrt: paths of the parameters to optimize; a branch stands for all below it.
        bounds: ``{path: (low, high)}`` of parameters and branches; either may be infinite, and parameters without
            bounds are unbounded.
        method: ``"lbfgs"`` (smooth objectives; line search) or ``"adam"`` (noisy ones).
        maximize: whether to maximize instead of minimize.
        learning_rate: learning rate of Adam, in units of z; good values are 0.01 to 0.3. ``None`` for 0.1.
        tolerance: see above.
        mode: mode of differentiation, see `simkit.core.gradient.with_derivative`.

    Returns:
        A simulation whose diagnostics are ``iteration``, ``loss``, ``best_loss``, ``gradient_norm`` and every scalar
        parameter in ``wrt``, and whose frames hold the best parameters so far, ``best_PATH``, and their active bounds,
        ``bound_PATH``: -1 the lower, 1 the upper, 0 none.

    Raises:
        UserError: if a name is not a parameter or is the name of a diagnostic, ``wrt`` is empty, or a learning rate is
            given to L-BFGS.
    """
    known = paths.leaves(params)
    names = paths.selected(wrt, known)
    if not names:
        raise UserError("wrt names no parameter; name each parameter once")
    if taken := next((name for name in names if name in QUANTITIES), None):
        raise UserError(f"parameter '{taken}' has the name of a diagnostic of an optimization; rename it")
    if method == "lbfgs" and learning_rate is not None:
        raise UserError('learning_rate is for adam; lbfgs has a line search; pass method="adam", or leave it out')
    bounds = bounds_of(names, bounds, known)
    sign = -1.0 if maximize else 1.0
    optimizer: Any = optax.lbfgs() if method == "lbfgs" else optax.adam(0.1 if learning_rate is None else learning_rate)

    def loss(position: Arrays, params: Params, key: jax.Array) -> jax.Array:
        return sign * objective(paths.replaced(params, to_bounded(position, bounds)), key)

    def evaluate(position: Arrays, params: Params, key: jax.Array) -> tuple[jax.Array, Arrays]:
        def derive(position: Arrays) -> tuple[jax.Array, Arrays]:
            value, _, gradient = value_and_derivative(lambda z: (loss(z, params, key), None), position, mode)
            return value, gradient

        return compiled(derive)(position)

    def start_position(params: Params) -> Arrays:
        leaves = paths.leaves(params)
        return to_unbounded({name: leaves[name] for name in names}, bounds)

    def active_bounds(position: Arrays, gradient: Arrays, start: Arrays, first: Arrays) -> Arrays:
        return {name: side_of(position[name], gradient[name], start[name], first[name], bounds, name) for name in names}

    def init(params: Params, key: jax.Array) -> OptimizationState:
        position = start_position(params)
        value, gradient = evaluate(position, params, key)
        return OptimizationState(
            position=position,
            optimizer=jax.tree.map(jnp.asarray, optimizer.init(position)),
            value=value,
            gradient=gradient,
            first=gradient,
            best_value=value,
            best=to_bounded(position, bounds),
            held=active_bounds(position, gradient, position, gradient),
            iteration=jnp.int32(0),
            key=key,
        )

    def step(state: OptimizationState, params: Params) -> OptimizationState:
        searches = method == "lbfgs"
        extra = {}
        if searches:
            values = _with_gradient(lambda position: evaluate(position, params, state.key))
            extra = {"value": state.value, "grad": state.gradient, "value_fn": values}
        updates, memory = optimizer.update(state.gradient, state.optimizer, state.position, **extra)
        position: Arrays = jax.tree.map(jnp.add, state.position, updates)
        if searches:
            # Those at the end of the line search, so that no run is repeated.
            value, gradient = optax.tree.get(memory, "value"), optax.tree.get(memory, "grad")
        else:
            value, gradient = evaluate(position, params, state.key)
        better = value < state.best_value
        active = active_bounds(position, gradient, start_position(params), state.first)
        return _like(
            state,
            OptimizationState(
                position=position,
                optimizer=memory,
                value=value,
                gradient=gradient,
                first=state.first,
                best_value=jnp.where(better, value, state.best_value),
                best=jax.tree.map(
                    lambda new, old: jnp.where(better, new, old), to_bounded(position, bounds), state.best
                ),
                held=jax.tree.map(lambda new, old: jnp.where(better, new, old), active, state.held),
                iteration=state.iteration + 1,
                key=state.key,
            ),
        )

    def gradient_norm(state: OptimizationState) -> jax.Array:
        return jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(state.gradient)]).max()

    def diagnose(state: OptimizationState, params: Params) -> Arrays:
        scalars = {name: value for name, value in to_bounded(state.position, bounds).items() if value.ndim == 0}
        return {
            "iteration": state.iteration,
            "loss": sign * state.value,
            "best_loss": sign * state.best_value,
            "gradient_norm": gradient_norm(state),
            **scalars,
        }

    def converged(state: OptimizationState, params: Params) -> jax.Array:
        # Near a bound dp/dz is small, so a small gradient counts as converged only if it leads out of the bounds. The
        # gradient is relative to value and position (Dennis and Schnabel 1996, section 7.2), so that an objective that
        # decreases without limit does not converge.
        scaled = {
            name: jnp.max(
                jnp.maximum(jnp.abs(state.position[name]), 1.0)
                * jnp.abs(slope)
                / jnp.where(descends_inward(state.position[name], slope, bounds, name), rate, 1)
            )
            for name, slope in state.gradient.items()
            for rate in [rate_of(state.position[name], bounds, name)]
        }
        return jnp.stack(list(scaled.values())).max() <= tolerance * (1.0 + jnp.abs(state.value))

    def status(state: OptimizationState, params: Params) -> jax.Array:
        # The state of an optimizer may contain infinities; only the objective and its gradient have to be finite.
        finite = is_finite((state.value, state.gradient))
        code = jnp.where(converged(state, params), jnp.int32(Status.CONVERGED), jnp.int32(Status.OK))
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


def _with_gradient(evaluate: Callable[[Arrays], tuple[jax.Array, Arrays]]) -> Callable[[Arrays], jax.Array]:
    """Return ``position -> value`` whose reverse-mode derivative is the gradient computed by ``evaluate``."""

    @jax.custom_vjp
    def value(position: Arrays) -> jax.Array:
        return evaluate(position)[0]

    def backward(gradient: Arrays, cotangent: jax.Array) -> tuple[Arrays]:
        return (jax.tree.map(lambda slope: cotangent * slope, gradient),)

    value.defvjp(evaluate, backward)
    return value


def _like[T](example: T, tree: T) -> T:
    """Cast every leaf to the dtype of ``example``: optimizers promote and weaken dtypes between updates."""

    def cast(old: jax.Array, new: jax.Array) -> jax.Array:
        return new if jnp.issubdtype(old.dtype, jax.dtypes.extended) else jnp.asarray(new).astype(old.dtype)

    return jax.tree.map(cast, example, tree)
