"""Unbounded coordinates of bounded parameters, and the active bounds of a parameter."""

import math
from collections.abc import Collection, Mapping

import jax
import jax.numpy as jnp

from simkit.core import paths
from simkit.core.parameter import UNBOUNDED
from simkit.core.simulation import Arrays

type Bounds = Mapping[str, tuple[float, float]]

# Where an optimization begins that is to begin at a bound, as part of the interval (of 1, with one bound only).
INSIDE = 1e-2
# Part of the interval next to a bound in which a slope that leads out shows that the bound holds a parameter.
NEAR = 1e-2
# By this factor a slope must exceed that of a parabola with its minimum at the bound, to lead beyond the bound.
BEYOND = 2.0


def bounds_of(names: Collection[str], bounds: Bounds, known: Collection[str]) -> dict[str, tuple[float, float]]:
    """Return the bounds of parameters: each one's own, or those of the innermost branch that has any.

    Args:
        names: paths of parameters.
        bounds: ``{path: (low, high)}`` of parameters and branches.
        known: paths of all parameters.

    Raises:
        UserError: if a name in ``bounds`` is neither a parameter nor a branch.
    """
    found: dict[str, tuple[float, float]] = {}
    for name in sorted(bounds, key=len):
        found |= dict.fromkeys(paths.selected(name, known), bounds[name])
    return {name: found.get(name, UNBOUNDED) for name in names}


def to_unbounded(values: Arrays, bounds: Bounds) -> Arrays:
    """Map parameters in (low, high) to the whole real line: ``z = log((p - a) / (b - p))``.

    With one bound only, ``z = log(exp(d) - 1)`` of the distance d to it.

    Args:
        values: ``{name: array}``; a value at a bound is first moved inside by a hundredth of the interval (of 1, with
            one bound only).
        bounds: ``{path: (low, high)}``.
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


def to_bounded(position: Arrays, bounds: Bounds) -> Arrays:
    """Map unbounded coordinates back to parameters, the inverse of `to_unbounded`.

    Args:
        position: ``{name: array}``.
        bounds: ``{path: (low, high)}``.
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
        bounds: ``{path: (low, high)}``.
        name: of the parameter.
    """
    _, _, below, above = _ends(bounds, name)
    if below and above:
        return 4 * jax.nn.sigmoid(position) * jax.nn.sigmoid(-position)
    return jax.nn.sigmoid(position) if below or above else jnp.ones_like(position)


def inward(position: jax.Array, gradient: jax.Array, bounds: Bounds, name: str) -> jax.Array:
    """Return whether a step against the gradient leads away from the nearest bound; arguments as for `rate_of`."""
    _, _, below, above = _ends(bounds, name)
    # With one bound only, it is where the coordinate goes to minus infinity.
    return gradient * position > 0 if below and above else gradient < 0


def _ends(bounds: Bounds, name: str) -> tuple[float, float, bool, bool]:
    """Return the bounds of a parameter, and whether each is finite."""
    low, high = bounds.get(name, UNBOUNDED)
    return low, high, math.isfinite(low), math.isfinite(high)


def side_of(
    position: jax.Array, gradient: jax.Array, start: jax.Array, first: jax.Array, bounds: Bounds, name: str
) -> jax.Array:
    """Return the bound that holds each entry of a parameter, int32: -1 the lower, 1 the upper, 0 none.

    It is held where it is at the bound, or where it came near it and the objective improves beyond it. The objective
    also improves toward the bound on the way to a minimum inside, and around that minimum half of the time; but then
    the slope s falls with the distance d from the bound at least as that of a parabola with its minimum at the bound,
    ``s / s_start = d / d_start``, where for slopes g in unbounded coordinates ``g / g_start = (d / d_start)^2``.

    Args:
        position: unbounded coordinate, see `to_unbounded`.
        gradient: of what is minimized with respect to it.
        start: where the optimization began.
        first: the gradient there.
        bounds: ``{path: (low, high)}``.
        name: of the parameter.
    """
    low, high, below, above = _ends(bounds, name)
    if not below and not above:
        return jnp.zeros(position.shape, jnp.int32)
    lower = position <= 0 if below and above else jnp.full(position.shape, below)
    away, began = (_log_distance(z, lower, both=below and above) for z in (position, start))
    value = to_bounded({name: position}, bounds)[name]
    at = (value <= low) | (value >= high)
    # As much as is told from underflow.
    nearer = jnp.clip(began - away, -30, 30)
    came_near = (away < math.log(NEAR)) & (nearer > math.log(2))
    steep = jnp.abs(gradient) * jnp.exp(2 * nearer) > BEYOND * jnp.abs(first)
    leads_out = ~inward(position, gradient, bounds, name)
    return jnp.where(at | (came_near & steep & leads_out), jnp.where(lower, -1, 1), 0).astype(jnp.int32)


def _log_distance(position: jax.Array, lower: jax.Array, *, both: bool) -> jax.Array:
    """Return the logarithm of the distance from the lower bound, or else the upper one, as part of the interval.

    With one bound only, of the distance from that.
    """
    if both:
        return jax.nn.log_sigmoid(jnp.where(lower, position, -position))
    # The distance is log(1 + exp(z)), which is exp(z) long before it underflows.
    return jnp.where(position < -20, position, jnp.log(jax.nn.softplus(jnp.maximum(position, -20))))
