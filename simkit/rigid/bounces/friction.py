"""Coulomb friction at the contact point of a solid sphere, from slipping to rolling."""

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.vector import Vector, dot, norm, select
from simkit.rigid.bounces.sphere import INVERSE_INERTIA

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
