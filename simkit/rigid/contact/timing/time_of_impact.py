"""Time of impact: the first root of a gap, approached from below so that no impact is missed."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.formulation import is_for_accelerators
from simkit.rigid.algebra.quadratic import first_root

# One iteration suffices where the gap is quadratic in time; otherwise each about doubles the correct digits.
ITERATIONS = 5


def first_closing(
    gap: Callable[[jax.Array], tuple[jax.Array, jax.Array]],
    bend: jax.Array,
    bend_now: jax.Array,
    least_rate: jax.Array,
    horizon: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the first time at which gaps close, whether it has converged to round-off, and their rates at that time.

    From a time with gap c and rate b, the parabola ``c + b t + m t^2 / 2`` with a lower bound m of the curvature stays
    below the gap, so its first root is a lower bound of the time of closing, exact for a gap quadratic in time.
    Repeating this approaches the closing from below, quadratically if the gap closes at a nonzero rate. After a fixed
    number of iterations the lower bound reached is returned, from which a later call can continue.

    Not to be differentiated: see `simkit.core.implicit`.

    Args:
        gap: ``t -> (gap, its rate)``, elementwise.
        bend: m, a lower bound of the second derivative of the gap up to the horizon.
        bend_now: second derivative at t = 0.
        least_rate: rate that counts as rounding; a gap of zero at t = 0 closes only at a larger rate.
        horizon: latest time.

    Returns:
        The time, infinite where the gap stays open up to the horizon; whether it has converged, bool; the rate.
    """

    def advance(number: int, reached: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        time, _, step, _ = reached
        at_start, time = number == 0, time + step
        within_horizon = time <= horizon
        gap_left, rate = gap(jnp.minimum(time, horizon))
        closed = gap_left <= 0
        # A gap of zero with zero rate and no closing acceleration counts as open.
        still = at_start & closed & (jnp.abs(rate) <= least_rate)
        following = first_root(jnp.maximum(gap_left, 0), jnp.where(still, 0, rate), bend)
        # At its closing a gap may be zero and its rate positive by rounding alone.
        following = jnp.where(closed & ~at_start, 0, following)
        # Beyond the horizon the bound does not hold, and need not.
        following = jnp.where(within_horizon & ~(still & (bend_now >= 0)), following, jnp.inf)
        return time, step, following, rate

    # Each iteration computes the step to the next time; the last one computes the rate at the time reached.
    zero = jnp.zeros_like(bend)
    time, step, _, rate = jax.lax.fori_loop(
        0, ITERATIONS + 1, advance, (zero, zero, zero, zero), unroll=is_for_accelerators()
    )
    time = jnp.where(time <= horizon, time, jnp.inf)
    return time, step <= jnp.sqrt(jnp.finfo(step.dtype).eps) * horizon, rate
