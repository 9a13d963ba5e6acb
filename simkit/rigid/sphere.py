"""A solid sphere on a plane: how its contact point moves, and how impulses there move and turn it."""

import jax
import jax.numpy as jnp

from simkit.rigid.body import Body
from simkit.rigid.rotation import turn

# m r^2 / I with the moment of inertia I = 2/5 m r^2.
INVERSE_INERTIA = 5 / 2


def slip_velocity(body: Body, normal: jax.Array, radius: jax.Array) -> jax.Array:
    """Return the velocity of the contact point along the plane, ``v - (v.n) n - r omega x n``: zero when rolling.

    Args:
        body: the sphere.
        normal: unit normal n of the plane, towards the sphere, (3,).
        radius: r in m.

    Returns:
        Velocity in m/s, (3,).
    """
    along = body.velocity - jnp.dot(body.velocity, normal) * normal
    return along - radius * jnp.cross(body.angular_velocity, normal)


def push(
    body: Body, impulse: jax.Array, shift: jax.Array, duration: jax.Array, normal: jax.Array, radius: jax.Array
) -> Body:
    """Move a sphere for a time t during which it receives impulses at its contact point.

    ``v' = v + J``, ``omega' = omega - 5/(2r) n x J``, ``x' = x + v t + X``, and a turn by ``omega t - 5/(2r) n x X``,
    where X integrates over time the impulse received so far. A single blow has t = 0 and X = 0.

    Args:
        body: the sphere before.
        impulse: J per mass, the sum of all, in m/s, (3,).
        shift: X in m, (3,).
        duration: t in s.
        normal: unit normal n of the plane, towards the sphere, (3,).
        radius: r in m.

    Returns:
        The sphere after; its orientation is exact where the spin keeps its axis, as in any throw without side spin.
    """
    lever = INVERSE_INERTIA / radius
    return Body(
        position=body.position + duration * body.velocity + shift,
        orientation=turn(body.orientation, duration * body.angular_velocity - lever * jnp.cross(normal, shift)),
        velocity=body.velocity + impulse,
        angular_velocity=body.angular_velocity - lever * jnp.cross(normal, impulse),
    )
