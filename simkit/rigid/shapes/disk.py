"""The flat disk in the x-z plane."""

import jax.numpy as jnp

from simkit.rigid.bodies.bodies import Bodies, Number, body
from simkit.rigid.shapes.solid import size, solid


@solid(
    values={"radius": size("radius")},
    excludes={"density": "which is flat and has no volume"},
)
def disk(mass: Number, radius: Number, friction: Number = 0.0, restitution: Number = 0.0) -> Bodies:
    """Return a flat disk that moves in the x-z plane, ``I = 1/2 m r^2`` about its axis y.

    Args:
        mass: m in kg.
        radius: r in m.
        friction: coefficient of Coulomb friction.
        restitution: coefficient of restitution.

    Example:
        >>> puck = rigid.disk(mass=0.2, radius=0.1)
        >>> print(f"{puck.inertia.y:.4f} kg m^2 = 1/2 m r^2")
        0.0010 kg m^2 = 1/2 m r^2
    """
    quarter = jnp.asarray(mass) * jnp.asarray(radius) ** 2 / 4
    return body("disk", mass, (quarter, 2 * quarter, quarter), (0, 0, 0), radius, friction, restitution)
