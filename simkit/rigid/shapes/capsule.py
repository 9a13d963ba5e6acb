"""The capsule: a solid cylinder with a half ball on either end."""

import math

import jax.numpy as jnp

from simkit.rigid.bodies.bodies import Bodies, Number, body
from simkit.rigid.shapes.solid import size, solid


@solid(
    values={
        "radius": size("radius of cylinder and half balls"),
        "length": size("distance of the centers of the two half balls, along z"),
    },
    volume=lambda radius, length: math.pi * radius**2 * (length + 4 / 3 * radius),
)
def capsule(mass: Number, radius: Number, length: Number, friction: Number = 0.0, restitution: Number = 0.0) -> Bodies:
    """Return a solid cylinder about z with a half ball on either end.

    Args:
        mass: m in kg.
        radius: of cylinder and balls in m.
        length: between the centers of the two balls in m.
        friction: coefficient of Coulomb friction.
        restitution: coefficient of restitution.

    Example:
        >>> pill = rigid.capsule(mass=1.0, radius=0.1, length=0.4)
        >>> bool(pill.inertia.z < pill.inertia.x), bool(pill.inertia.x == pill.inertia.y)
        (True, True)
    """
    mass, radius, length = jnp.asarray(mass), jnp.asarray(radius), jnp.asarray(length)
    # Shares of the volume: that of the ball equals a cylinder of length 4/3 r.
    ball = 4 / 3 * radius / (length + 4 / 3 * radius)
    cylinder = 1 - ball
    along = mass * radius**2 * (cylinder / 2 + 2 / 5 * ball)
    # The center of mass of a half ball is 3/8 r beyond the end; its moment about that center is 83/320 m r^2.
    ends = 83 / 320 * radius**2 + (length / 2 + 3 / 8 * radius) ** 2
    across = mass * (cylinder * (radius**2 / 4 + length**2 / 12) + ball * ends)
    return body("capsule", mass, (across, across, along), (0, 0, length / 2), radius, friction, restitution)
