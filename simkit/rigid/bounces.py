"""Bouncing, sliding and rolling of a solid sphere on a plane, in closed form.

Each flight is shorter than the one before by the coefficient of restitution, so times and impulses are geometric
series: a step may contain any number of bounces, including the infinitely many that bring a sphere to rest.
"""

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once
from simkit.core.implicit import root_change
from simkit.core.pytrees import pytree
from simkit.rigid.algebra.quadratic import first_root
from simkit.rigid.algebra.quaternion import Quaternion, turn
from simkit.rigid.algebra.vector import Vector, cross, dot, norm, select

# m r^2 / I with the moment of inertia I = 2/5 m r^2.
INVERSE_INERTIA = 5 / 2


@pytree
class Ball:
    """State of one solid sphere; its mass cancels from the motion.

    Attributes:
        position: of the center in m.
        orientation: rotation from the body frame to the world frame.
        velocity: of the center in m/s.
        angular_velocity: in the world frame, in rad/s.
    """

    position: Vector
    orientation: Quaternion
    velocity: Vector
    angular_velocity: Vector


def slip_velocity(ball: Ball, normal: Vector, radius: jax.Array) -> Vector:
    """Return the slip velocity of the contact point along the plane, ``v - (v.n) n - r omega x n``.

    Args:
        ball: state of the sphere.
        normal: unit normal n of the plane, towards the sphere.
        radius: r in m.

    Returns:
        Slip velocity in m/s, zero for a rolling sphere.
    """
    along = ball.velocity - dot(ball.velocity, normal) * normal
    return along - radius * cross(ball.angular_velocity, normal)


def push(ball: Ball, impulse: Vector, shift: Vector, duration: jax.Array, normal: Vector, radius: jax.Array) -> Ball:
    """Return a sphere after a time t during which it receives impulses at its contact point.

    ``v' = v + J``, ``omega' = omega - 5/(2r) n x J``, ``x' = x + v t + X``, and a rotation by ``omega t - 5/(2r) n x
    X``, where X is the time integral of the impulse received so far. A single impact has t = 0 and X = 0.

    Args:
        ball: state before.
        impulse: J per mass, the total, in m/s.
        shift: X in m.
        duration: t in s.
        normal: unit normal n of the plane, towards the sphere.
        radius: r in m.

    Returns:
        State after; its orientation is exact if the axis of rotation is constant, as in any throw without side spin.
    """
    lever = INVERSE_INERTIA / radius
    return Ball(
        position=ball.position + duration * ball.velocity + shift,
        orientation=turn(ball.orientation, duration * ball.angular_velocity - lever * cross(normal, shift)),
        velocity=ball.velocity + impulse,
        angular_velocity=ball.angular_velocity - lever * cross(normal, impulse),
    )


# Change of the slip velocity per tangential impulse per mass: 1 by translation, m r^2 / I by rotation.
SLIP_PER_IMPULSE = 1 + INVERSE_INERTIA


def friction_impulse(slip: Vector, normal_impulse: jax.Array, friction: jax.Array) -> tuple[Vector, jax.Array]:
    """Return the friction impulse for a normal impulse N, instantaneous or spread over time.

    ``J = -2/7 s`` ends the slip s if that takes no more than ``mu N``; otherwise ``J = -mu N s/|s|``. Friction does
    not change the direction of the slip, so only the sum of the normal impulses matters.

    Args:
        slip: s, velocity of the contact point along the plane in m/s.
        normal_impulse: N per mass in m/s, not negative.
        friction: mu.

    Returns:
        J per mass in m/s, and the fraction of ``mu N`` used: 1 while slipping, less if the slip ends before.
        Derivatives are finite at zero slip, zero friction and zero normal impulse.
    """
    limit = friction * normal_impulse
    squared = dot(slip, slip)
    rolls = squared <= (SLIP_PER_IMPULSE * limit) ** 2
    # Arguments of roots and divisors are 1 where the result is not selected, so that derivatives are finite.
    slipping = -limit / jnp.sqrt(jnp.where(rolls, 1, squared)) * slip
    part = norm(slip) / SLIP_PER_IMPULSE / jnp.where(rolls & (limit > 0), limit, 1)
    return select(rolls, -slip / SLIP_PER_IMPULSE, slipping), jnp.where(rolls, part, 1)


def slide(slip: Vector, duration: jax.Array, friction: jax.Array, gravity: jax.Array) -> tuple[Vector, Vector]:
    """Return the friction impulse on a solid sphere that stays on a horizontal plane, slipping and then rolling.

    The slip s ends after ``2 |s| / (7 mu g)``; a sphere that starts without spin then rolls at 5/7 of its speed.

    Args:
        slip: s, velocity of the contact point at the start in m/s.
        duration: in s.
        friction: mu.
        gravity: g in m/s^2.

    Returns:
        The friction impulse per mass in m/s, and its time integral in m: the changes of velocity and of displacement
        by friction. Exact for any duration.
    """
    impulse, part = friction_impulse(slip, gravity * duration, friction)
    # Friction is constant during the first part of the time and absent after it.
    return impulse, duration * (1 - part / 2) * impulse


# Number of terms that means infinity: finite, so that 0 times it is 0, and so large that q^n = 0 for every q < 1.
ENDLESS = 1e18


@jax.custom_jvp
def whole_power(base: jax.Array, exponent: jax.Array) -> jax.Array:
    """Return ``q^n`` with derivatives of any order in q, also at q = 0; the derivative in n is zero.

    Args:
        base: q, between 0 and 1.
        exponent: n, a whole number from 0 stored as a float.
    """
    return base**exponent


@whole_power.defjvp
def _derivative_of_power(
    values: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    base, exponent = values
    # The value by `whole_power`, too, so that higher derivatives use this rule again.
    return whole_power(base, exponent), exponent * whole_power(base, jnp.maximum(exponent - 1, 0)) * tangents[0]


def geometric_sum(ratio: jax.Array, count: jax.Array) -> jax.Array:
    """Return ``S(n) = 1 + q + ... + q^(n-1)``.

    Args:
        ratio: q, between 0 and 1.
        count: n, a whole number stored as a float; `ENDLESS` is allowed if q < 1.
    """
    loss = 1 - ratio
    # (1 - q^n) / (1 - q) loses digits as n (1 - q) approaches 0; six terms of its binomial series are exact there.
    near = loss * count < 0.01
    small = jnp.where(near, loss, 0)
    series = jnp.ones_like(loss)
    for order in range(6, 1, -1):
        series = 1 - (count - order + 1) / order * small * series
    direct = (1 - whole_power(jnp.where(near, 1, ratio), count)) / jnp.where(near, 1, loss)
    return jnp.where(near, count * series, direct)


def terms_of(ratio: jax.Array, total: jax.Array) -> jax.Array:
    """Return the real number n at which the geometric sum equals a total; infinite if the sum stays below it.

    Args:
        ratio: q, between 0 and 1.
        total: S(n) = (1 - q^n) / (1 - q), not negative.
    """
    # Within these bounds both logarithms are finite; the lower bound is so small that n = S(n), as for q = 1.
    loss = jnp.clip(1 - ratio, 1e-30, 1 - jnp.finfo(ratio.dtype).eps)
    return jnp.log1p(-jnp.minimum(total * loss, 1)) / jnp.log1p(-loss)


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
