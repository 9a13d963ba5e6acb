"""Time of impact of a body on a surface, and the impulse of the impact."""

import jax
import jax.numpy as jnp

from simkit.core.implicit import root_change
from simkit.rigid.algebra.quadratic import first_root
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bounces.friction import friction_impulse


def time_of_impact(gap: jax.Array, rate: jax.Array, acceleration: jax.Array) -> jax.Array:
    """Return the first time t >= 0 at which a gap closes, ``gap + rate t + acceleration t^2 / 2 = 0``.

    The root is computed without derivatives; its first and second derivatives are those of the implicit function
    theorem. They are finite for a body that starts on the surface, where those of the quadratic formula are not.

    Args:
        gap: distance to the surface in m; a negative one counts as rounding of zero.
        rate: its rate of change in m/s.
        acceleration: its second derivative in m/s^2, constant.

    Returns:
        Time in s; infinite where the gap never closes.
    """
    gap = gap + jax.lax.stop_gradient(jnp.maximum(-gap, 0))
    start, speed, bend = jax.lax.stop_gradient((gap, rate, acceleration))
    time = first_root(start, speed, bend)
    closes = ~jnp.isposinf(time)
    time = jnp.where(closes, time, 0)
    slope = speed + bend * time
    # One Newton step removes the rounding of the formula.
    remainder = start + time * (speed + time / 2 * bend)
    time = time - jnp.where(slope < 0, remainder / jnp.where(slope < 0, slope, 1), 0)

    def gap_at(change: jax.Array, start: tuple[jax.Array, ...]) -> jax.Array:
        gap, rate, acceleration, time = start
        return gap + (time + change) * (rate + (time + change) / 2 * acceleration)

    # The time of a gap that only grazes zero gets no derivative.
    change = root_change(gap_at, jnp.where(slope < 0, slope, 0), (gap, rate, acceleration, time))
    return jnp.where(closes, time + change, jnp.inf)


def impact_impulse(
    approach: jax.Array, slip: Vector, restitution: jax.Array, friction: jax.Array
) -> tuple[jax.Array, Vector]:
    """Return the normal impulse ``N = (1 + e) w`` and the friction impulse on a solid sphere that hits a fixed plane.

    Friction ends the slip if that takes no more than ``mu N``, otherwise it is ``mu N`` against the slip. Tangential
    restitution of real balls (Cross, American Journal of Physics 70, 1093 (2002), doi:10.1119/1.1507792) is not
    modeled.

    Args:
        approach: w, speed towards the plane in m/s, not negative.
        slip: velocity of the contact point along the plane in m/s.
        restitution: e, between 0 and 1.
        friction: mu, not negative.

    Returns:
        N per mass in m/s, and the friction impulse per mass in m/s.
    """
    normal_impulse = (1 + restitution) * approach
    return normal_impulse, friction_impulse(slip, normal_impulse, friction)[0]
