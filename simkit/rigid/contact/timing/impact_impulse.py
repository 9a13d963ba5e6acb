"""Impulse of one impact: restitution along the normal, Coulomb friction along the surface."""

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.vector import Vector, dot, shortened


def impact_impulse(
    velocity: Vector,
    normal: Vector,
    inverse_mass: jax.Array,
    mobility: jax.Array,
    restitution: jax.Array,
    friction: jax.Array,
) -> tuple[jax.Array, Vector]:
    """Return the impulse on the first body, ``N`` along the normal and ``J`` of friction.

    With the speed of approach w = -u.n and the slip s = u + w n the normal impulse is ``N = (1 + e) w / (1/m)``.
    Friction ends the slip if that takes no more than mu N, ``J = -s / k``; otherwise ``J = -mu N s/|s|``. For balls
    this is Coulomb's law throughout the impact, not only at its end: the slip keeps its direction and only decreases.

    Args:
        velocity: u, of the first body's surface relative to the second's at the point of contact, in m/s.
        normal: n, unit vector from the second body to the first.
        inverse_mass: 1/m, the sum of both bodies' 1/mass in 1/kg.
        mobility: k, slip per tangential impulse in 1/kg: the sum of both bodies' 1/mass + radius^2 / moment of inertia.
        restitution: e, 0 to 1.
        friction: mu, not negative.

    Returns:
        N and J in N s: zero if the bodies do not approach. Their derivatives are finite at zero slip, friction and
        approach.
    """
    along = dot(velocity, normal)
    impulse = (1 + restitution) * jnp.maximum(-along, 0) / inverse_mass
    slip = velocity - along * normal
    return impulse, friction_impulse(slip, mobility, friction * impulse)


def friction_impulse(slip: Vector, mobility: jax.Array, limit: jax.Array) -> Vector:
    """Return the friction impulse, ``-s / k`` where that is within its limit and ``-limit s/|s|`` elsewhere.

    Args:
        slip: s in m/s, along the surface.
        mobility: k in 1/kg.
        limit: mu N in N s.
    """
    return shortened(-slip / mobility, limit)
