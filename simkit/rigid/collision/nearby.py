"""Broad phase: pairs whose enclosing spheres come near each other within the step."""

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.vector import Vector, dot, each, norm
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.collision.rounds import rounds

# Blows may make light bodies faster than any was: reach is for speeds up to this multiple of the largest one.
FASTER = 2.0
# Rounding must not part bodies that touch.
WIDER = 1.01


def enclosing_radius(bodies: Bodies) -> jax.Array:
    """Return the radius of the sphere about its center that holds each body, in m.

    Args:
        bodies: any.
    """
    return bodies.radius + norm(bodies.half_lengths)


def nearby(bodies: Bodies, position: Vector, velocity: Vector, time_step: jax.Array) -> jax.Array:
    """Return whether the enclosing spheres of each pair may meet within a step, (rounds, pairs per round, ...).

    Args:
        bodies: n of them, in the order of `simkit.rigid.collision.rounds.rounds`.
        position: of their centers in m.
        velocity: of their centers in m/s.
        time_step: in s.
    """
    first, second = rounds(len(bodies.kinds))
    reach = WIDER * enclosing_radius(bodies) + FASTER * time_step * jnp.max(norm(velocity), axis=0)
    # Where their number is odd, one body of each round has no partner; the last one stands in for it.
    position, reach = jax.lax.stop_gradient((position, reach))
    one, other = (
        each(lambda values, side=side: jnp.take(values, side, axis=0, mode="clip"), (position, reach))
        for side in (first, second)
    )
    apart, limit = one[0] - other[0], one[1] + other[1]
    real = (jnp.maximum(first, second) < len(bodies.kinds)).reshape(first.shape + (1,) * (reach.ndim - 1))
    return real & (dot(apart, apart) < limit**2)
