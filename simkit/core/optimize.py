"""Optimization as a simulation: each step is one update of the parameters."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax

from simkit.core.gradient import Function, Mode, value_and_grad
from simkit.core.parameter import UNBOUNDED
from simkit.core.pytree import pytree
from simkit.core.simulation import Arrays, Params, Quantity, Simulation
from simkit.core.status import Status, is_finite

type Method = Literal["adam", "lbfgs"]
type Bounds = Mapping[str, tuple[float, float]]

# Where an optimization begins that is to begin at a bound, and how near the bound counts as held by it whatever the
# slope, as parts of the interval.
INSIDE, AT = 1e-2, 1e-6
# Part of the interval next to a bound in which a slope that leads out shows that the bound holds a parameter.
NEAR = 1e-2


QUANTITIES = {
    "iteration": Quantity("1", "updates of the parameters"),
    "loss": Quantity("1", "the objective"),
    "best_loss": Quantity("1", "the best value of the objective so far"),
    "gradient_norm": Quantity("1", "largest component of the gradient in unbounded coordinates"),
}


@pytree
class Optimization:
    """The state of an optimization.

    Attributes:
        position: chosen parameters in unbounded coordinates, see `to_unbounded`.
        optimizer: state of the optax optimizer.
        value: objective at ``position``.
        gradient: its derivative in unbounded coordinates.
        best_value: best objective so far.
        best: parameters (in their own units) that reached it.
        held: the bound that holds each entry of them, int32: -1 the lower, 1 the upper, 0 none.
        iteration: int32, updates made.
        key: random key of the objective, the same at every iteration.
    """

    position: Params
    optimizer: Any
    value: jax.Array
    gradient: Params
    best_value: jax.Array
    best: Params
    held: Params
    iteration: jax.Array
    key: jax.Array


def optimize(
    objective: Function,
    params: Params,
    wrt: Sequence[str],
    bounds: Bounds,
    *,
    method: Method = "lbfgs",
    maximize: bool = False,
    learning_rate: float = 0.1,
    tolerance: float = 1e-6,
    mode: Mode = "shortest",
) -> Simulation:
    """Return the optimization of an objective as a `Simulation`, to be run, shown and resumed like any other.

    Each bounded parameter p in (a, b) is replaced by z with ``p = a + (b - a) / (1 + exp(-z))``, so that no step
    leaves the bounds and one learning rate serves parameters of any magnitude. It has converged when the largest
    component of the gradient with respect to z falls below ``tolerance * (1 + |value|)``; of those that lead away from
    a bound, the gradient that they would have in the middle of the bounds.

    Args:
        objective: ``(params, key) -> scalar``.
        params: starting point; parameters not in ``wrt`` keep these values.
        wrt: names of the parameters to choose.
        bounds: ``{name: (low, high)}``; either may be infinite, and a name without bounds is unbounded.
        method: ``"lbfgs"`` (smooth objectives; line search) or ``"adam"`` (noisy ones).
        maximize: whether to look for the largest value.
        learning_rate: of Adam, in units of z; 0.01 to 0.3 are good values.
        tolerance: see above.
        mode: how derivatives propagate, see `simkit.core.gradient.value_and_grad`.

    Returns:
        A simulation whose diagnostics are ``iteration``, ``loss``, ``best_loss``, ``gradient_norm`` and every scalar
        parameter in ``wrt``, and whose frames hold the best parameters so far, ``best_NAME``, and the bounds that hold
        them, ``bound_NAME``: -1 the lower, 1 the upper, 0 none.

    Raises:
        UserError: if a name in ``wrt`` is not a parameter (when run).
    """
    sign = -1.0 if maximize else 1.0
    optimizer: Any = optax.lbfgs() if method == "lbfgs" else optax.adam(learning_rate)

    def loss(position: Params, params: Params, key: jax.Array) -> jax.Array:
        return sign * objective({**params, **to_bounded(position, bounds)}, key)

    def evaluate(position: Params, params: Params, key: jax.Array) -> tuple[jax.Array, Params]:
        return value_and_grad(lambda position, key: loss(position, params, key), list(position), mode)(position, key)

    def held(position: Params, value: jax.Array, gradient: Params) -> Params:
        least = tolerance * (1.0 + jnp.abs(value))
        return {name: side_of(position[name], slope, bounds, name, least) for name, slope in gradient.items()}

    def init(params: Params, key: jax.Array) -> Optimization:
        chosen = {name: params[name] for name in wrt}
        position = to_unbounded(chosen, bounds)
        value, gradient = evaluate(position, params, key)
        return Optimization(
            position=position,
            optimizer=jax.tree.map(jnp.asarray, optimizer.init(position)),
            value=value,
            gradient=gradient,
            best_value=value,
            best=to_bounded(position, bounds),
            held=held(position, value, gradient),
            iteration=jnp.int32(0),
            key=key,
        )

    def step(state: Optimization, params: Params) -> Optimization:
        searches = method == "lbfgs"
        extra = {}
        if searches:
            values = _with_gradient(lambda position: evaluate(position, params, state.key))
            extra = {"value": state.value, "grad": state.gradient, "value_fn": values}
        updates, memory = optimizer.update(state.gradient, state.optimizer, state.position, **extra)
        position: Params = jax.tree.map(jnp.add, state.position, updates)
        if searches:
            # Where its search along the line ended, so that no run is repeated.
            value, gradient = optax.tree.get(memory, "value"), optax.tree.get(memory, "grad")
        else:
            value, gradient = evaluate(position, params, state.key)
        better = value < state.best_value
        return _like(
            state,
            Optimization(
                position=position,
                optimizer=memory,
                value=value,
                gradient=gradient,
                best_value=jnp.where(better, value, state.best_value),
                best=jax.tree.map(
                    lambda new, old: jnp.where(better, new, old), to_bounded(position, bounds), state.best
                ),
                held=jax.tree.map(
                    lambda new, old: jnp.where(better, new, old), held(position, value, gradient), state.held
                ),
                iteration=state.iteration + 1,
                key=state.key,
            ),
        )

    def gradient_norm(state: Optimization) -> jax.Array:
        return jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(state.gradient)]).max()

    def diagnose(state: Optimization, params: Params) -> Arrays:
        scalars = {name: value for name, value in to_bounded(state.position, bounds).items() if value.ndim == 0}
        return {
            "iteration": state.iteration,
            "loss": sign * state.value,
            "best_loss": sign * state.best_value,
            "gradient_norm": gradient_norm(state),
            **scalars,
        }

    def done(state: Optimization, params: Params) -> jax.Array:
        # Near a bound z hardly moves p: the gradient may be small there only where it leads out of the bounds.
        left = {
            name: jnp.max(jnp.abs(slope) / jnp.where(inward(state.position[name], slope, bounds, name), rate, 1))
            for name, slope in state.gradient.items()
            for rate in [rate_of(state.position[name], bounds, name)]
        }
        return jnp.stack(list(left.values())).max() <= tolerance * (1.0 + jnp.abs(state.value))

    def status(state: Optimization, params: Params) -> jax.Array:
        # An optimizer's memory may start at infinity; what must be finite is the objective and its gradient.
        finite = is_finite((state.value, state.gradient))
        code = jnp.where(done(state, params), jnp.int32(Status.CONVERGED), jnp.int32(Status.OK))
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


def to_unbounded(values: Params, bounds: Bounds) -> Params:
    """Map parameters in (low, high) to the whole real line: ``z = log((p - a) / (b - p))``.

    With one bound only, ``z = log(exp(d) - 1)`` of the distance d to it.

    Args:
        values: ``{name: array}``; a value at a bound is first moved inside by a hundredth of the interval (of 1, with
            one bound only).
        bounds: as for `optimize`.
    """

    def at_end(distance: jax.Array, end: float) -> jax.Array:
        # As near as the rounding of the bound itself: whatever is farther is a start of its own.
        return distance <= 8 * float(jnp.finfo(distance.dtype).eps) * abs(end)

    def transform(name: str, value: jax.Array) -> jax.Array:
        low, high, below, above = _ends(bounds, name)
        if not below and not above:
            return value
        if below and above:
            above_low, below_high, step = value - low, high - value, INSIDE * (high - low)
            is_low, is_high = at_end(above_low, low), at_end(below_high, high)
            above_low = jnp.where(is_low, step, jnp.where(is_high, high - low - step, above_low))
            below_high = jnp.where(is_high, step, jnp.where(is_low, high - low - step, below_high))
            return jnp.log(above_low) - jnp.log(below_high)
        distance, end = (value - low, low) if below else (high - value, high)
        distance = jnp.where(at_end(distance, end), INSIDE, distance)
        return distance + jnp.log(-jnp.expm1(-distance))

    return {name: transform(name, value) for name, value in values.items()}


def to_bounded(position: Params, bounds: Bounds) -> Params:
    """Map unbounded coordinates back to parameters, the inverse of `to_unbounded`.

    Args:
        position: ``{name: array}``.
        bounds: as for `optimize`.
    """

    def transform(name: str, value: jax.Array) -> jax.Array:
        low, high, below, above = _ends(bounds, name)
        if below and above:
            return low + (high - low) * jax.nn.sigmoid(value)
        if below:
            return low + jax.nn.softplus(value)
        return high - jax.nn.softplus(value) if above else value

    return {name: transform(name, value) for name, value in position.items()}


def rate_of(position: jax.Array, bounds: Bounds, name: str) -> jax.Array:
    """Return how fast a parameter moves with its unbounded coordinate, relative to the middle of its bounds.

    Args:
        position: the coordinate.
        bounds: as for `optimize`.
        name: of the parameter.
    """
    _, _, below, above = _ends(bounds, name)
    if below and above:
        return 4 * jax.nn.sigmoid(position) * jax.nn.sigmoid(-position)
    return jax.nn.sigmoid(position) if below or above else jnp.ones_like(position)


def inward(position: jax.Array, gradient: jax.Array, bounds: Bounds, name: str) -> jax.Array:
    """Tell whether a step against the gradient leads away from the nearest bound; arguments as for `rate_of`."""
    _, _, below, above = _ends(bounds, name)
    # With one bound only, it is where the coordinate goes to minus infinity.
    return gradient * position > 0 if below and above else gradient < 0


def _ends(bounds: Bounds, name: str) -> tuple[float, float, bool, bool]:
    """Return the bounds of a parameter, and whether each is finite."""
    low, high = bounds.get(name, UNBOUNDED)
    return low, high, math.isfinite(low), math.isfinite(high)


def side_of(position: jax.Array, gradient: jax.Array, bounds: Bounds, name: str, least: jax.Array) -> jax.Array:
    """Return the bound that holds each entry of a parameter, int32: -1 the lower, 1 the upper, 0 none.

    It is held where it is at the bound, or near it while the objective still improves toward it.

    Args:
        position: as for `rate_of`.
        gradient: of what is minimized with respect to the coordinate.
        bounds: as for `optimize`.
        name: of the parameter.
        least: a gradient, in the middle of the bounds, that counts as none.
    """
    _, _, below, above = _ends(bounds, name)
    if not below and not above:
        return jnp.zeros(position.shape, jnp.int32)
    rate, both = rate_of(position, bounds, name), below and above
    part = rate / 4 if both else rate
    # The rate may underflow, but not where it is compared.
    driven = jnp.abs(gradient) > least * rate
    leads_out = driven & ~inward(position, gradient, bounds, name)
    near = (part < AT) | ((part < NEAR) & leads_out)
    side = jnp.where(position > 0, 1, -1) if both else (-1 if below else 1)
    return jnp.where(near, side, 0).astype(jnp.int32)


def _with_gradient(evaluate: Callable[[Params], tuple[jax.Array, Params]]) -> Callable[[Params], jax.Array]:
    """Return ``position -> value`` whose derivative, in any mode, is the one that ``evaluate`` gives."""

    @jax.custom_vjp
    def value(position: Params) -> jax.Array:
        return evaluate(position)[0]

    def pulled_back(gradient: Params, change: jax.Array) -> tuple[Params]:
        return (jax.tree.map(lambda slope: change * slope, gradient),)

    value.defvjp(evaluate, pulled_back)
    return value


def _like[T](example: T, tree: T) -> T:
    """Give every leaf the dtype it has in ``example``: optimizers promote and weaken dtypes between updates."""

    def cast(old: jax.Array, new: jax.Array) -> jax.Array:
        return new if jnp.issubdtype(old.dtype, jax.dtypes.extended) else jnp.asarray(new).astype(old.dtype)

    return jax.tree.map(cast, example, tree)
