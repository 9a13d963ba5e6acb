"""The solid sphere."""

import math

import jax.numpy as jnp

from simkit.rigid.bodies.bodies import Bodies, Number, body
from simkit.rigid.shapes.solid import size, solid


@solid(
    values={"radius": size("radius")},
    volume=lambda radius: 4 / 3 * math.pi * radius**3,
)
def sphere(mass: Number, radius: Number, friction: Number = 0.0, restitution: Number = 0.0) -> Bodies:
    """Return a solid sphere, ``I = 2/5 m r^2``.

    Args:
        mass: m in kg.
        radius: r in m.
        friction: coefficient of Coulomb friction.
        restitution: coefficient of restitution.

    Example:
        >>> ball = rigid.sphere(mass=5.0, radius=0.1, restitution=0.8)
        >>> print(f"{ball.inertia.x:.3f} kg m^2 = 2/5 m r^2")
        0.020 kg m^2 = 2/5 m r^2
    """
    moment = 2 / 5 * jnp.asarray(mass) * jnp.asarray(radius) ** 2
    return body("sphere", mass, (moment,) * 3, (0, 0, 0), radius, friction, restitution)
