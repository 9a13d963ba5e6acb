"""Reductions of the frames of a run: means and extremes of frames, and values and integrals in time between them."""

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.expressions import arithmetic
from simkit.core.expressions.interpolation import where_defined

# Round-off of the time of a frame, a sum of time steps, as a fraction of the interval between frames.
ROUNDING = 1e-3


def value_at(series: jax.Array, times: jax.Array, moment: jax.Array | float) -> jax.Array:
    """Return a series at a time, by the cubic through the four nearest frames; NaN beyond the first and last frame.

        sum over the frames i of x_i product over the others j of (t - t_j)/(t_i - t_j)

    Args:
        series: ``(frames, ...)``.
        times: ``(frames,)`` of the frames; those after a stop repeat that of the stop.
        moment: the time t, scalar.
    """
    count = min(4, len(times))
    first = jnp.clip(jnp.searchsorted(times, moment) - count // 2, 0, len(times) - count)
    near = [times[first + k] for k in range(count)]
    new = [jnp.asarray(True), *(later > earlier for earlier, later in itertools.pairwise(near))]
    found = jnp.zeros(series.shape[1:], series.dtype)
    for i, own in enumerate(near):
        weight = jnp.where(new[i], jnp.ones((), times.dtype), 0)
        for j, other in enumerate(near):
            apart = new[j] & (own != other)
            weight = weight * jnp.where(apart, (moment - other) / jnp.where(apart, own - other, 1), 1)
        found = found + weight * series[first + i]
    return where_defined(_is_within(times, moment), found)


def integral(
    series: jax.Array,
    times: jax.Array,
    after: jax.Array | float | None = None,
    before: jax.Array | float | None = None,
) -> jax.Array:
    """Return the integral of a series over time by the trapezoidal rule; NaN if it begins or ends beyond the frames.

    Args:
        series: ``(frames, ...)``.
        times: ``(frames,)`` of the frames; those after a stop repeat that of the stop.
        after: time at which it begins, scalar; by default that of the first frame.
        before: time at which it ends; by default that of the last frame.
    """
    lengths = jnp.diff(times)

    def part(moment: jax.Array | float) -> jax.Array:
        """Return the part of each interval that has passed at a time."""
        return jnp.where(lengths > 0, jnp.clip((moment - times[:-1]) / jnp.where(lengths > 0, lengths, 1), 0, 1), 0)

    begin = jnp.zeros_like(lengths) if after is None else part(after)
    end = jnp.ones_like(lengths) if before is None else part(before)
    # The mean over a part of an interval is the value in the middle of that part.
    weight, middle = (x.reshape(-1, *[1] * (series.ndim - 1)) for x in (lengths * (end - begin), (begin + end) / 2))
    found = jnp.sum(weight * (series[:-1] + middle * (series[1:] - series[:-1])), 0)
    for moment in (after, before):
        found = found if moment is None else where_defined(_is_within(times, moment), found)
    return found


def _is_within(times: jax.Array, moment: jax.Array | float) -> jax.Array:
    margin = ROUNDING * (times[-1] - times[0]) / max(len(times) - 1, 1)
    return (moment >= times[0] - margin) & (moment <= times[-1] + margin)


def _extreme(function: Callable[..., jax.Array], series: jax.Array, chosen: jax.Array, other: float) -> jax.Array:
    """Return the largest or smallest of the chosen values; NaN if none is chosen."""
    return where_defined(jnp.any(chosen), function(jnp.where(chosen, series, other), 0))


def _mean_of(series: jax.Array, chosen: jax.Array) -> jax.Array:
    return jnp.sum(jnp.where(chosen, series, 0), 0) / jnp.sum(chosen, 0)


# Functions of a series ``(frames, ...)`` and of which of its frames count.
REDUCTIONS: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "time_mean": _mean_of,
    "time_sum": lambda series, chosen: jnp.sum(jnp.where(chosen, series, 0), 0),
    "time_rms": lambda series, chosen: arithmetic.UNARY["sqrt"](_mean_of(arithmetic.square(series), chosen)),
    "largest": lambda series, chosen: _extreme(jnp.max, series, chosen, -jnp.inf),
    "smallest": lambda series, chosen: _extreme(jnp.min, series, chosen, jnp.inf),
}
