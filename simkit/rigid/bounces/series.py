"""Series of bounces after an impact on a horizontal plane, in closed form.

Each flight is shorter than the one before by the coefficient of restitution, so times and impulses are geometric
series: a step may contain any number of bounces, including the infinitely many that bring a sphere to rest.
"""

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once
from simkit.core.pytrees import pytree
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bounces.friction import friction_impulse
from simkit.rigid.bounces.geometric import ENDLESS, geometric_sum, terms_of, whole_power


@pytree
class BounceSeries:
    """Totals of a series of bounces within a time.

    Attributes:
        impacts: number of impacts, as a float; `ENDLESS` if there are infinitely many.
        rests: whether there are infinitely many, so that the sphere stays on the plane, bool.
        duration: time from the start to the last impact in s.
        upward: vertical speed after the last impact in m/s; zero if the sphere comes to rest.
        impulse: sum of the friction impulses per mass in m/s.
        shift: time integral over the duration of the impulse received so far, in m.
    """

    impacts: jax.Array
    rests: jax.Array
    duration: jax.Array
    upward: jax.Array
    impulse: Vector
    shift: Vector


def bounce_series(
    upward: jax.Array,
    slip: Vector,
    time: jax.Array,
    restitution: jax.Array,
    friction: jax.Array,
    gravity: jax.Array,
) -> BounceSeries:
    """Return the totals of all impacts within a time of a solid sphere that leaves a horizontal plane.

    With the first flight ``d = 2 w / g`` and ``S(k) = 1 + e + ... + e^(k-1)``, k flights take ``d S(k)`` and their
    impacts give the normal impulse ``(1 + e) w S(k)``. Friction J_k grows in proportion until impact K, where the
    slip ends, so that the shift ``sum_k J_k d e^k`` needs ``sum_(k<K) e^k S(k) = S(K) (S(K) - 1) / (1 + e)``.

    Args:
        upward: w, speed at which the sphere leaves the plane in m/s, not negative.
        slip: velocity of the contact point along the plane in m/s.
        time: in s.
        restitution: e, between 0 and 1.
        friction: mu, not negative.
        gravity: g in m/s^2, positive.

    Returns:
        The series; derivatives are those at a fixed number of impacts.
    """
    first = 2 * upward / gravity
    # A sphere that does not leave the plane is at rest on it, the case e = 0.
    moves = upward > 0
    ratio = jnp.where(moves, restitution, 0)
    fixed_ratio, flights_in_time = jax.lax.stop_gradient((ratio, time / jnp.where(moves, first, 1)))
    most = jnp.where(moves, jnp.floor(terms_of(fixed_ratio, flights_in_time)), jnp.inf)
    impacts = jnp.minimum(most, ENDLESS)
    total = computed_once(geometric_sum(ratio, impacts))

    impulse, part = friction_impulse(slip, (1 + restitution) * upward * total, friction)
    needed = part * total
    last_slipping = jnp.ceil(terms_of(fixed_ratio, jax.lax.stop_gradient(needed)))
    slipping = computed_once(geometric_sum(ratio, jnp.clip(last_slipping, 1, jnp.maximum(impacts, 1))))
    pairs = slipping * (slipping - 1) / (1 + ratio)
    # The denominator is below 1 only without a second slipping impact; `pairs` is zero then.
    shift = impulse * (first * (pairs / jnp.maximum(needed, 1) + total - slipping))
    return BounceSeries(
        impacts=impacts,
        rests=jnp.isinf(most),
        duration=first * total,
        upward=upward * whole_power(ratio, impacts),
        impulse=impulse,
        shift=shift,
    )
