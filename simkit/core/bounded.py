"""Unbounded coordinates of bounded parameters, and the active bounds of a parameter."""

import math
from collections.abc import Collection, Mapping

import jax
import jax.numpy as jnp

from simkit.core import paths
from simkit.core.parameter import UNBOUNDED
from simkit.core.simulation import Arrays

type Bounds = Mapping[str, tuple[float, float]]

# Distance from the bound at which an optimization starts that was to start at a bound, as a fraction of the interval
# (in the unit of the parameter where there is one bound only).
INSIDE = 1e-2
# Distance from a bound, as a fraction of the interval, within which an outward slope makes the bound active.
NEAR = 1e-2
# Factor by which a slope must exceed that of a parabola with its minimum at the bound, for the bound to be active.
BEYOND = 2.0


def bounds_of(names: Collection[str], bounds: Bounds, known: Collection[str]) -> dict[str, tuple[float, float]]:
    """Return the bounds of parameters: those given for its path, or for the innermost branch around it.

    Args:
        names: paths of parameters.
        bounds: ``{path: (low, high)}`` of parameters and branches.
        known: paths of all parameters.

    Raises:
        UserError: if a name in ``bounds`` is neither a parameter nor a branch.
    """
    by_leaf: dict[str, tuple[float, float]] = {}
    for name in sorted(bounds, key=len):
        by_leaf |= dict.fromkeys(paths.selected(name, known), bounds[name])
    return {name: by_leaf.get(name, UNBOUNDED) for name in names}


def to_unbounded(values: Arrays, bounds: Bounds) -> Arrays:
    """Map parameters in (low, high) to the whole real line: ``z = log((p - a) / (b - p))``.

    With one bound only, ``z = log(exp(d) - 1)`` of the distance d to it.

    Args:
        values: ``{name: array}``; a value at a bound is first moved inside by a hundredth of the interval (by 0.01 with
            one bound only).
        bounds: ``{path: (low, high)}``.
    """

    def at_end(distance: jax.Array, end: float) -> jax.Array:
        # Within the round-off of the bound itself; any larger distance is a start inside.
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
    """Return dp/dz of a parameter p and its unbounded coordinate z, relative to its value at mid-interval.

    Args:
        position: z, see `to_unbounded`.
        bounds: ``{path: (low, high)}``.
        name: path of the parameter.
    """
    _, _, below, above = _ends(bounds, name)
    if below and above:
        return 4 * jax.nn.sigmoid(position) * jax.nn.sigmoid(-position)
    return jax.nn.sigmoid(position) if below or above else jnp.ones_like(position)


def descends_inward(position: jax.Array, gradient: jax.Array, bounds: Bounds, name: str) -> jax.Array:
    """Return whether a step against the gradient leads away from the nearest bound; arguments as for `rate_of`."""
    _, _, below, above = _ends(bounds, name)
    # A single bound lies at z = -infinity.
    return gradient * position > 0 if below and above else gradient < 0


def _ends(bounds: Bounds, name: str) -> tuple[float, float, bool, bool]:
    """Return the bounds of a parameter, and whether each is finite."""
    low, high = bounds.get(name, UNBOUNDED)
    return low, high, math.isfinite(low), math.isfinite(high)


def side_of(
    position: jax.Array, gradient: jax.Array, start: jax.Array, first: jax.Array, bounds: Bounds, name: str
) -> jax.Array:
    """Return the active bound of each entry of a parameter, int32: -1 the lower, 1 the upper, 0 none.

    A bound is active where the value is at it, or has come near it while the objective still improves beyond it. The
    objective also improves toward the bound on the way to a minimum inside, and around that minimum half of the time;
    but then the slope s decreases with the distance d from the bound at least as fast as that of a parabola with its
    minimum at the bound, ``s / s_start = d / d_start``, that is ``g / g_start = (d / d_start)^2`` for the slope g in
    unbounded coordinates.

    Args:
        position: unbounded coordinate, see `to_unbounded`.
        gradient: derivative of the minimized function with respect to ``position``.
        start: ``position`` at the start of the optimization.
        first: ``gradient`` at the start.
        bounds: ``{path: (low, high)}``.
        name: path of the parameter.
    """
    low, high, below, above = _ends(bounds, name)
    if not below and not above:
        return jnp.zeros(position.shape, jnp.int32)
    lower = position <= 0 if below and above else jnp.full(position.shape, below)
    away, began = (_log_distance(z, lower, both=below and above) for z in (position, start))
    value = to_bounded({name: position}, bounds)[name]
    at = (value <= low) | (value >= high)
    # log(d_start / d), clipped so that exp(2 * nearer) neither overflows nor underflows.
    nearer = jnp.clip(began - away, -30, 30)
    came_near = (away < math.log(NEAR)) & (nearer > math.log(2))
    steep = jnp.abs(gradient) * jnp.exp(2 * nearer) > BEYOND * jnp.abs(first)
    leads_out = ~descends_inward(position, gradient, bounds, name)
    return jnp.where(at | (came_near & steep & leads_out), jnp.where(lower, -1, 1), 0).astype(jnp.int32)


def nearest_side(position: jax.Array, bounds: Bounds, name: str) -> jax.Array:
    """Return the bound at which each entry of a parameter lies, without a derivative, int32: -1, 1, or 0 for none.

    At it means that a smooth objective does not resolve the distance: within the square root of round-off of the
    interval, or of ``max(|bound|, 1)`` with one bound only.

    Args:
        position: unbounded coordinate, see `to_unbounded`.
        bounds: ``{path: (low, high)}``.
        name: path of the parameter.
    """
    low, high, below, above = _ends(bounds, name)
    value = to_bounded({name: position}, bounds)[name]
    ends = [abs(end) for end, is_finite in ((low, below), (high, above)) if is_finite]
    size = high - low if len(ends) == 2 else max([1.0, *ends])
    margin = float(jnp.finfo(value.dtype).eps) ** 0.5 * size
    return jnp.where(value <= low + margin, -1, jnp.where(value >= high - margin, 1, 0)).astype(jnp.int32)


def _log_distance(position: jax.Array, lower: jax.Array, *, both: bool) -> jax.Array:
    """Return log of the distance from the lower (else upper) bound as a fraction of the interval.

    With one bound only, log of the distance from it.
    """
    if both:
        return jax.nn.log_sigmoid(jnp.where(lower, position, -position))
    # The distance is log(1 + exp(z)), which is exp(z) long before it underflows.
    return jnp.where(position < -20, position, jnp.log(jax.nn.softplus(jnp.maximum(position, -20))))
