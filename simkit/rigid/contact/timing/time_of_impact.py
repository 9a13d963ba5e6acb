"""Time of impact: the first root of a gap, bounded from below so that no impact is stepped over."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

# One suffices where the gap is quadratic in time; otherwise each about doubles the digits.
ITERATIONS = 5


def first_closing(
    gap: Callable[[jax.Array], tuple[jax.Array, jax.Array]],
    bend: jax.Array,
    bend_now: jax.Array,
    least_rate: jax.Array,
    horizon: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the first time at which gaps close, whether that was found to round-off, and their rates at that time.

    From a time with gap c and rate b, ``c + b t + m t^2 / 2`` with the smallest curvature m stays below the gap, so
    its first root is a time before which nothing closes: the exact one for a gap quadratic in time. Repeating this
    approaches the closing from below, quadratically where the gap closes with some speed. What is still on its way
    after a fixed number of repetitions gives the time reached so far, from which to go on.

    Not to be differentiated: see `simkit.core.roots`.

    Args:
        gap: ``t -> (gap, its rate)``, at a time for each.
        bend: m, a lower bound of the gap's second derivative up to the horizon.
        bend_now: second derivative at t = 0.
        least_rate: rate that rounding makes of zero; something that touches counts as closing if it is faster.
        horizon: latest time of interest.

    Returns:
        The time, infinite where the gap stays open up to the horizon; True where it is the closing itself; the rate.
    """

    def advance(number: int, reached: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        time, _, step, _ = reached
        at_start, time = number == 0, time + step
        open_yet = time <= horizon
        left, rate = gap(jnp.minimum(time, horizon))
        closed = left <= 0
        # What touches and neither moves nor is pressed stays open for now.
        still = at_start & closed & (jnp.abs(rate) <= least_rate)
        following = _descent(jnp.maximum(left, 0), jnp.where(still, 0, rate), bend)
        # At its closing a gap may be zero and its rate positive by rounding alone.
        following = jnp.where(closed & ~at_start, 0, following)
        # Beyond the horizon the bound does not hold, and need not.
        following = jnp.where(open_yet & ~(still & (bend_now >= 0)), following, jnp.inf)
        return time, step, following, rate

    # Each pass finds the way to the next place, and the last one the rate at the place reached.
    zero = jnp.zeros_like(bend)
    time, step, _, rate = jax.lax.fori_loop(0, ITERATIONS + 1, advance, (zero, zero, zero, zero))
    time = jnp.where(time <= horizon, time, jnp.inf)
    return time, step <= jnp.sqrt(jnp.finfo(step.dtype).eps) * horizon, rate


def _descent(gap: jax.Array, rate: jax.Array, bend: jax.Array) -> jax.Array:
    """Return the smallest t >= 0 with ``gap + rate t + bend t^2 / 2 = 0`` for a gap that is not negative."""
    squared = rate * rate - 2 * bend * gap
    root = jnp.sqrt(jnp.maximum(squared, 0))
    closing, falling = rate < 0, bend < 0
    # Of the two forms of the quadratic formula, each case takes the one that adds numbers of equal sign.
    direct = jnp.where(squared >= 0, 2 * gap / jnp.where(closing, root - rate, 1), jnp.inf)
    later = jnp.where(falling, (root + rate) / jnp.where(falling, -bend, 1), jnp.inf)
    return jnp.where(closing, direct, later)
