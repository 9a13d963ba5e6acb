"""Broad phase of collision detection: pairs whose enclosing spheres may meet within a step."""

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.vector import Vector, dot, each, norm
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.collision.rounds import rounds

# An impact may make a light body faster than all were: the margin allows this multiple of the largest speed.
FASTER = 2.0
# Margin on the radii, so that rounding does not miss bodies that touch.
WIDER = 1.01


def enclosing_radius(bodies: Bodies) -> jax.Array:
    """Return the radius of the sphere about its center that encloses each body, in m.

    Args:
        bodies: of the scene.
    """
    return bodies.radius + norm(bodies.half_lengths)


def nearby(bodies: Bodies, position: Vector, velocity: Vector, time_step: jax.Array) -> jax.Array:
    """Return whether the enclosing spheres of each pair may meet within a step, (rounds, pairs per round, ...).

    Args:
        bodies: the n bodies; pairs are in the order of `simkit.rigid.collision.rounds.rounds`.
        position: of their centers in m.
        velocity: of their centers in m/s.
        time_step: in s.
    """
    first, second = rounds(len(bodies.kinds))
    reach = WIDER * enclosing_radius(bodies) + FASTER * time_step * jnp.max(norm(velocity), axis=0)
    # With an odd number of bodies one body per round has no partner (index n); `mode="clip"` reads the last body
    # instead, and `real` masks the result.
    position, reach = jax.lax.stop_gradient((position, reach))
    one, other = (
        each(lambda values, side=side: jnp.take(values, side, axis=0, mode="clip"), (position, reach))
        for side in (first, second)
    )
    apart, limit = one[0] - other[0], one[1] + other[1]
    real = (jnp.maximum(first, second) < len(bodies.kinds)).reshape(first.shape + (1,) * (reach.ndim - 1))
    return real & (dot(apart, apart) < limit**2)
