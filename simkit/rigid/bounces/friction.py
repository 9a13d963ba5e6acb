"""Coulomb friction at the contact point of a solid sphere, from slipping to rolling."""

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.vector import Vector, dot, norm, select
from simkit.rigid.bounces.sphere import INVERSE_INERTIA

# Slip velocity that a unit of tangential impulse per mass adds: it moves the center and turns the sphere.
SLIP_PER_IMPULSE = 1 + INVERSE_INERTIA


def friction_impulse(slip: Vector, normal_impulse: jax.Array, friction: jax.Array) -> tuple[Vector, jax.Array]:
    """Return the impulse of friction that goes with a normal impulse N, in one blow or over time.

    ``J = -2/7 s`` ends the slip s and takes no more than ``mu N``; otherwise ``J = -mu N s/|s|``. Friction never
    turns the slip, so only the sum of the normal impulses matters, not how they are spread.

    Args:
        slip: s, velocity of the contact point along the plane in m/s.
        normal_impulse: N per mass in m/s, not negative.
        friction: mu.

    Returns:
        J per mass in m/s, and the part of ``mu N`` it needs: 1 while slipping, less if the slip ends before.
        Derivatives are finite at no slip, no friction and no normal impulse.
    """
    limit = friction * normal_impulse
    squared = dot(slip, slip)
    rolls = squared <= (SLIP_PER_IMPULSE * limit) ** 2
    # Each root and quotient sees a harmless 1 wherever its own value is not the one used.
    slipping = -limit / jnp.sqrt(jnp.where(rolls, 1, squared)) * slip
    part = norm(slip) / SLIP_PER_IMPULSE / jnp.where(rolls & (limit > 0), limit, 1)
    return select(rolls, -slip / SLIP_PER_IMPULSE, slipping), jnp.where(rolls, part, 1)


def slide(slip: Vector, duration: jax.Array, friction: jax.Array, gravity: jax.Array) -> tuple[Vector, Vector]:
    """Follow a solid sphere that stays on a horizontal plane: it slips until it rolls, then rolls on.

    The slip s ends after ``2 |s| / (7 mu g)``; a sphere that starts without spin then rolls at 5/7 of its speed.

    Args:
        slip: s, velocity of the contact point at the start in m/s.
        duration: in s.
        friction: mu.
        gravity: g in m/s^2.

    Returns:
        The impulse of friction per mass in m/s, and its integral over the time in m: what it adds to
        the velocity and to the way. Exact for any duration.
    """
    impulse, part = friction_impulse(slip, gravity * duration, friction)
    # Friction is constant during the first part of the time and absent after it.
    return impulse, duration * (1 - part / 2) * impulse
